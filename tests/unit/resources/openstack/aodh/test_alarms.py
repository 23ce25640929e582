"""The types of Aodh, and AWS::CloudWatch::Alarm."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.resources.aws.cloudwatch.alarm import UNITS, CloudWatchAlarm, dimensions
from orchestrator.resources.base import Context, ResourceType
from orchestrator.resources.openstack.aodh.alarm import Alarm
from orchestrator.resources.openstack.aodh.combination_alarm import CombinationAlarm
from orchestrator.resources.openstack.aodh.composite_alarm import CompositeAlarm
from orchestrator.resources.openstack.aodh.event_alarm import EventAlarm
from orchestrator.resources.openstack.aodh.gnocchi_aggregation_alarm import GnocchiAggregationByResourcesAlarm
from orchestrator.resources.openstack.aodh.gnocchi_resources_alarm import GnocchiResourcesAlarm
from orchestrator.resources.openstack.aodh.member_health_alarm import LBMemberHealthAlarm
from orchestrator.resources.openstack.aodh.prometheus_alarm import PrometheusAlarm
from orchestrator.testing.scripted_cloud import ScriptedCloud

RESOURCE = {
    "metric": "cpu_util",
    "resource_id": "r1",
    "resource_type": "instance",
    "threshold": 50,
    "aggregation_method": "mean",
}
METER = {"meter_name": "MemoryUtilization", "threshold": 50}
CLOUDWATCH = {
    "MetricName": "MemoryUtilization",
    "Period": "60",
    "EvaluationPeriods": "1",
    "Threshold": "50",
    "Statistic": "Average",
    "ComparisonOperator": "GreaterThanThreshold",
}


@pytest.fixture
def script() -> ScriptedCloud:
    return ScriptedCloud()


def context(kind: ResourceType, script: ScriptedCloud, action: str = "CREATE", **given: Any) -> Context:
    properties, faults = kind.read_properties(given)
    assert faults == []
    return Context(
        name="it",
        physical_name="stack-it-abc",
        token="00000000-1",
        action=action,
        properties=properties,
        cloud=script.cloud,
    )


def created(kind: ResourceType, script: ScriptedCloud, **given: Any) -> dict[str, Any]:
    """Return the body of the request that creates an alarm."""
    script.answers("POST", "/alarms", {"alarm_id": "a1"}, status=201)
    ctx = context(kind, script, **given)
    assert kind.create(ctx, ctx.properties).physical_id == "a1"
    body: dict[str, Any] = script.sent("POST")[0].body
    return body


def test_an_alarm_has_the_name_of_the_resource_and_a_rule(script):
    body = created(GnocchiResourcesAlarm(), script, **RESOURCE, description="d", comparison_operator="gt")
    assert body == {
        "name": "stack-it-abc",
        "type": "gnocchi_resources_threshold",
        "description": "d",
        "enabled": True,
        "repeat_actions": True,
        "severity": "low",
        "time_constraints": [],
        "alarm_actions": [],
        "ok_actions": [],
        "insufficient_data_actions": [],
        "gnocchi_resources_threshold_rule": {**RESOURCE, "threshold": 50, "comparison_operator": "gt"},
    }


def test_queues_are_actions_of_zaqar(script):
    given = {"alarm_actions": ["http://x/1", ""], "alarm_queues": ["a b"], "ok_queues": ["c"]}
    body = created(GnocchiResourcesAlarm(), script, **RESOURCE, **given)
    assert body["alarm_actions"] == ["http://x/1", "trust+zaqar://?queue_name=a+b"]
    assert body["ok_actions"] == ["trust+zaqar://?queue_name=c"]
    assert "alarm_queues" not in body


def test_the_alarm_of_a_lost_response_is_found_by_its_name(script):
    kind = PrometheusAlarm()
    ctx = context(kind, script, query="up", threshold=1)
    target = "/alarms?q.field=name&q.op=eq&q.value=stack-it-abc"
    script.answers("GET", r"/alarms\?.*", [{"alarm_id": "a1"}])
    assert kind.find(ctx, ctx.token) == ["a1"]
    assert script.requests[0].target == target
    script.answers("GET", r"/alarms\?.*", [])
    assert kind.find(ctx, ctx.token) is None


def test_an_update_replaces_the_alarm_and_keeps_its_state(script):
    kind = PrometheusAlarm()
    script.answers("GET", "/alarms/a1", {"alarm_id": "a1", "state": "alarm"})
    script.answers("PUT", "/alarms/a1", {})
    ctx = context(kind, script, "UPDATE", query="up", threshold=2)
    kind.update(ctx, "a1", ctx.properties, frozenset({"threshold"}))
    (request,) = script.sent("PUT")
    assert request.body["prometheus_rule"] == {"query": "up", "threshold": 2}
    assert request.body["state"] == "alarm"


@pytest.mark.parametrize(("action", "enabled"), [("SUSPEND", False), ("RESUME", True)])
def test_suspend_and_resume_disable_and_enable(script, action, enabled):
    kind = PrometheusAlarm()
    script.answers("GET", "/alarms/a1", {"alarm_id": "a1", "state": "ok", "enabled": not enabled})
    script.answers("PUT", "/alarms/a1", {})
    ctx = context(kind, script, action, query="up", threshold=2)
    assert not kind.observe(ctx, "a1").ready
    getattr(kind, action.lower())(ctx, "a1")
    assert script.sent("PUT")[0].body["enabled"] is enabled


def test_an_alarm_that_the_template_disables_stays_disabled_after_a_resume(script):
    kind = PrometheusAlarm()
    script.answers("GET", "/alarms/a1", {"alarm_id": "a1", "enabled": False})
    script.answers("PUT", "/alarms/a1", {})
    ctx = context(kind, script, "RESUME", query="up", threshold=2, enabled=False)
    kind.resume(ctx, "a1")
    assert script.sent("PUT")[0].body["enabled"] is False
    assert kind.observe(ctx, "a1").ready


def test_a_missing_alarm_is_absent_and_its_delete_is_no_error(script):
    kind = PrometheusAlarm()
    error = {"error_message": {"faultstring": "Alarm a1 not found", "faultcode": "Client"}}
    for method in ("GET", "DELETE"):
        script.answers(method, "/alarms/a1", error, status=404)
    ctx = context(kind, script, "DELETE", query="up", threshold=2)
    kind.delete(ctx, "a1")
    assert not kind.observe(ctx, "a1").exists


def test_defaults_that_aodh_adds_are_no_difference(script):
    kind = GnocchiAggregationByResourcesAlarm()
    constraint = {"name": "night", "start": "0 23 * * *", "duration": 10}
    given = {
        **{name: value for name, value in RESOURCE.items() if name != "resource_id"},
        "query": '{"=": {"a": "b"}}',
        "time_constraints": [constraint],
        "alarm_actions": ["http://x/2", "http://x/1"],
        "alarm_queues": ["q"],
    }
    rule = {**given, "threshold": 50.0, "granularity": 60}
    rule["query"] = '{"and": [{"=": {"created_by_project_id": "p"}}, {"=": {"a": "b"}}]}'
    alarm = {
        "description": "set by Aodh",
        "time_constraints": [{**constraint, "description": "x", "timezone": ""}],
        "alarm_actions": ["trust+zaqar://?queue_name=q", "http://x/1", "http://x/2"],
        "ok_actions": [],
        "enabled": True,
        "repeat_actions": True,
        "severity": "low",
        "gnocchi_aggregation_by_resources_threshold_rule": rule,
    }
    ctx = context(kind, script, "CHECK", **given)
    script.answers("GET", "/alarms/a1", alarm)
    observed = kind.observe(ctx, "a1").properties
    assert {name: value for name, value in observed.items() if ctx.properties[name] != value} == {}
    rule["query"] = '{"=": {"a": "c"}}'
    alarm |= {"enabled": False, "alarm_actions": ["http://x/1"]}
    observed = kind.observe(ctx, "a1").properties
    assert (observed["enabled"], observed["alarm_actions"]) == (False, ["http://x/1"])
    assert observed["query"] == '{"=": {"a": "c"}}'


def test_show_masks_the_signatures_of_urls(script):
    kind = PrometheusAlarm()
    url = "http://x/signal?Timestamp=1&AWSAccessKeyId=k&Signature=s3cret%3D"
    script.answers("GET", "/alarms/a1", {"alarm_id": "a1", "alarm_actions": [url, "http://x"]})
    ctx = context(kind, script, query="up", threshold=2)
    shown = kind.read_attributes(ctx, "a1", frozenset({"show"}))["show"]
    assert shown["alarm_actions"] == [
        "http://x/signal?Timestamp=1&AWSAccessKeyId=k&Signature=******",
        "http://x",
    ]


def test_time_constraints_replace_an_alarm_and_the_rest_changes_it():
    kind = GnocchiResourcesAlarm()
    assert kind.change({}, {}, frozenset({"time_constraints"})) == "replace"
    others = frozenset(kind.properties) - {"time_constraints"}
    assert kind.change({}, {}, others) == "update"


@pytest.mark.parametrize(
    ("kind", "name"), [(PrometheusAlarm(), "ok_actions"), (CloudWatchAlarm(), "OKActions")]
)
def test_an_action_is_not_the_name_of_a_resource(kind, name):
    (fault,) = kind.validate_among("a", {name: ["http://x", "policy"]}, {"policy": None})
    assert fault.message.startswith("policy is the name of a resource")
    assert fault.property == name


def test_an_event_alarm_without_a_query_has_none(script):
    assert created(EventAlarm(), script)["event_rule"] == {"event_type": "*"}


def test_a_composite_rule_has_its_operator_as_the_key(script):
    rules = [{"type": "prometheus"}, {"and": [{"type": "x"}, {"type": "y"}]}]
    body = created(CompositeAlarm(), script, composite_rule={"operator": "or", "rules": rules})
    assert body["composite_rule"] == {"or": rules}


def test_a_composite_rule_needs_two_rules():
    _, faults = CompositeAlarm().read_properties({"composite_rule": {"operator": "or", "rules": [{}]}})
    assert faults


def test_the_health_of_members_has_ids_in_its_rule(script):
    body = created(LBMemberHealthAlarm(), script, pool="p", stack="s", autoscaling_group_id="g")
    assert body["loadbalancer_member_health_rule"] == {
        "pool_id": "p",
        "stack_id": "s",
        "autoscaling_group_id": "g",
    }
    assert LBMemberHealthAlarm().change({}, {}, frozenset({"stack"})) == "replace"


@pytest.mark.parametrize(
    ("meter", "key", "field"),
    [
        ("MemoryUtilization", "stack", "metadata.metering.stack"),
        ("cpu_util", "stack", "metadata.user_metadata.stack"),
        ("disk.device.read.bytes.rate", "metering.stack", "metadata.user_metadata.stack"),
        ("x", "metadata.metering.stack", "metadata.metering.stack"),
        ("x", "metadata.user_metadata.a.b", "metadata.metering.a.b"),
    ],
)
def test_metadata_are_conditions_of_a_threshold_alarm(script, meter, key, field):
    given = {**METER, "meter_name": meter, "matching_metadata": {key: 1}}
    rule = created(Alarm(), script, **given)["threshold_rule"]
    assert rule["query"] == [{"field": field, "op": "eq", "value": "1"}]


def test_metadata_and_query_are_compared_together(script):
    kind = Alarm()
    query = [{"field": "a", "op": "gt", "value": "1"}]
    ctx = context(kind, script, "CHECK", **METER, matching_metadata={"x": 1}, query=query)
    metadata = {"field": "metadata.metering.x", "op": "eq", "value": "1"}
    alarm = {"threshold_rule": {**METER, "query": [*query, metadata]}}
    script.answers("GET", "/alarms/a1", alarm)
    assert {"query", "matching_metadata"}.isdisjoint(kind.observe(ctx, "a1").properties)
    alarm["threshold_rule"]["query"] = [{**metadata, "value": "2"}]
    observed = kind.observe(ctx, "a1").properties
    assert (observed["query"], observed["matching_metadata"]) == ([], {"x": "2"})


def test_a_threshold_alarm_names_its_successor():
    assert (Alarm.support_status, Alarm.support_version) == ("DEPRECATED", "10.0.0")
    assert "GnocchiAggregationByResourcesAlarm" in Alarm.support_message


def test_a_combination_alarm_is_a_placeholder():
    kind = CombinationAlarm()
    assert (kind.hidden, kind.endpoint_type) == (True, "alarming")
    assert kind.read_properties({"anything": 1})[1] == []


class TestCloudWatch:
    def test_it_is_a_threshold_alarm(self, script):
        given = {
            **CLOUDWATCH,
            "AlarmActions": ["http://x", ""],
            "Dimensions": [{"Name": "metering.group", "Value": "g"}],
        }
        body = created(CloudWatchAlarm(), script, **given)
        assert body["threshold_rule"] == {
            "meter_name": "MemoryUtilization",
            "period": 60,
            "evaluation_periods": 1,
            "threshold": 50,
            "statistic": "avg",
            "comparison_operator": "gt",
            "query": [{"field": "metadata.metering.group", "op": "eq", "value": "g"}],
        }
        assert (body["type"], body["description"]) == ("threshold", "An alarm")
        assert (body["repeat_actions"], body["alarm_actions"]) == (True, ["http://x"])

    def test_dimensions_may_be_texts_of_the_query_interface(self):
        texts = [".member.0.Name=a", ".member.0.Value=b=c", ".member.1.Name=d"]
        assert dimensions(texts) == {"a": "b=c", "d": ""}

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("Period", "Value 'often' is not an integer"),
            ("EvaluationPeriods", "Value 'often' is not an integer"),
            ("Threshold", "Value 'often' is not a number"),
        ],
    )
    def test_numbers_are_checked(self, name, message):
        kind = CloudWatchAlarm()
        (fault,) = kind.validate({**CLOUDWATCH, name: "often"}, 60.0)
        assert (fault.message, fault.property) == (message, name)
        assert kind.validate(CLOUDWATCH, 60.0) == []

    def test_units_are_those_of_cloudwatch(self):
        assert len(UNITS) == len(set(UNITS)) == 27

    def test_differences_have_cloudwatchs_names(self, script):
        kind = CloudWatchAlarm()
        ctx = context(kind, script, "CHECK", **CLOUDWATCH)
        rule = {"meter_name": "MemoryUtilization", "period": 60, "evaluation_periods": 1}
        rule |= {"threshold": 50.0, "statistic": "max", "comparison_operator": "gt"}
        alarm = {"description": "An alarm", "enabled": True, "threshold_rule": rule}
        script.answers("GET", "/alarms/a1", alarm)
        observed = kind.observe(ctx, "a1").properties
        differing = {name for name, value in observed.items() if ctx.properties.get(name) != value}
        assert differing == {"Statistic"}
        assert observed["Statistic"] == "Maximum"

    def test_another_metric_replaces_it(self):
        kind = CloudWatchAlarm()
        assert kind.change({}, {}, frozenset({"MetricName"})) == "replace"
        assert kind.change({}, {}, frozenset(kind.properties) - {"MetricName"}) == "update"
