"""Alarms of Aodh, on the simulated cloud: the real control plane has no Aodh."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.clients.openstack.platform_services.alarming import ALARMS
from orchestrator.errors import ProviderError
from tests.openstack.conftest import DIRECTORY
from tests.openstack.driver import Driver
from tests.openstack.network.ground import lives

pytestmark = pytest.mark.skipif(bool(DIRECTORY), reason="the control plane has no Aodh")

URL = "http://127.0.0.1:8004/v1/up"
POOL = "00000000-0000-4000-8000-000000000000"  # an id is not looked up
MEASURED = {"threshold": 50, "aggregation_method": "mean", "comparison_operator": "gt"}
RESOURCE = {"metric": "cpu_util", "resource_type": "instance", **MEASURED}


@pytest.mark.parametrize(
    ("type_name", "given", "changes"),
    [
        (
            "OS::Aodh::GnocchiResourcesAlarm",
            {**RESOURCE, "resource_id": "r1", "alarm_actions": [URL], "alarm_queues": ["q"]},
            ({"threshold": 60.5, "granularity": 300}, {"alarm_actions": [], "alarm_queues": ["p", "q"]}),
        ),
        (
            "OS::Aodh::GnocchiAggregationByResourcesAlarm",
            {**RESOURCE, "query": '{"=": {"server_group": "g"}}', "evaluation_periods": 2},
            ({"query": '{"=": {"server_group": "h"}}'}, {"severity": "critical", "enabled": False}),
        ),
        (
            "OS::Aodh::GnocchiAggregationByMetricsAlarm",
            {**MEASURED, "metrics": ["m1", "m2"]},
            ({"metrics": ["m3"]}, {"description": "d", "repeat_actions": False}),
        ),
        (
            "OS::Aodh::PrometheusAlarm",
            {"query": "up", "threshold": 1, "comparison_operator": "lt"},
            ({"query": "down", "ok_actions": [URL]},),
        ),
        (
            "OS::Aodh::EventAlarm",
            {"query": [{"field": "traits.id", "op": "eq", "value": "x"}]},
            ({"event_type": "compute.instance.update"}, {"insufficient_data_actions": [URL]}),
        ),
        (
            "OS::Aodh::LBMemberHealthAlarm",
            {"pool": POOL, "stack": "s1", "autoscaling_group_id": "g1"},
            ({"pool": POOL.replace("0", "1"), "autoscaling_group_id": "g2"},),
        ),
        (
            "OS::Aodh::CompositeAlarm",
            {
                "composite_rule": {
                    "operator": "or",
                    "rules": [
                        {"type": "prometheus", "query": "up", "threshold": 1},
                        {"and": [{"type": "prometheus", "query": "x", "threshold": 2}]},
                    ],
                }
            },
            (
                {
                    "composite_rule": {
                        "operator": "and",
                        "rules": [
                            {"type": "prometheus", "query": "up", "threshold": 1},
                            {"type": "prometheus", "query": "y", "threshold": 3},
                        ],
                    }
                },
            ),
        ),
        (
            "OS::Aodh::Alarm",
            {"meter_name": "cpu_util", "threshold": 50, "matching_metadata": {"metering.stack": "x"}},
            ({"matching_metadata": {"stack": "y"}}, {"query": [{"field": "a", "op": "eq", "value": "1"}]}),
        ),
        (
            "AWS::CloudWatch::Alarm",
            {
                "MetricName": "cpu_util",
                "Period": "60",
                "EvaluationPeriods": "1",
                "Threshold": "50",
                "Statistic": "Average",
                "ComparisonOperator": "GreaterThanThreshold",
                "AlarmActions": [URL],
                "Dimensions": [{"Name": "AutoScalingGroupName", "Value": "group"}],
            },
            ({"Threshold": "90", "Statistic": "Maximum"}, {"AlarmDescription": "too warm"}),
        ),
    ],
)
def test_an_alarm_is_created_changed_checked_and_deleted(
    driver: Driver, type_name: str, given: dict[str, Any], changes: tuple[dict[str, Any], ...]
) -> None:
    alarm = lives(driver, type_name, given, *changes)
    driver.delete(alarm)
    assert driver.openstack.alarming.find(ALARMS, alarm) is None


def test_an_update_keeps_the_state_of_an_alarm(driver: Driver) -> None:
    alarm = driver.create("OS::Aodh::PrometheusAlarm", {"query": "up", "threshold": 1})
    aodh = driver.openstack.alarming
    aodh.exchange("PUT", f"/alarms/{alarm}/state", "alarm")
    driver.update(alarm, threshold=2)
    found = aodh.find(ALARMS, alarm) or {}
    assert (found["state"], found["prometheus_rule"]["threshold"]) == ("alarm", 2.0)


def test_a_suspended_alarm_is_disabled_and_enabled_again(driver: Driver) -> None:
    query = '{"=": {"server_group": "g"}}'
    given = {**RESOURCE, "query": query}
    alarm = driver.create("OS::Aodh::GnocchiAggregationByResourcesAlarm", given)
    resource = driver.resources[alarm]
    for action, enabled in (("SUSPEND", False), ("RESUME", True)):
        ctx = replace(resource.ctx, action=action)
        assert not resource.type.observe(ctx, alarm).ready
        getattr(resource.type, action.lower())(ctx, alarm)
        assert resource.type.observe(ctx, alarm).ready
        assert (driver.openstack.alarming.find(ALARMS, alarm) or {})["enabled"] is enabled
    assert driver.drift(alarm) == {}


def test_aodh_refuses_an_action_that_is_no_url(driver: Driver) -> None:
    given = {"query": "up", "threshold": 1, "alarm_actions": ["policy"]}
    with pytest.raises(ProviderError, match="Unsupported action policy"):
        driver.create("OS::Aodh::PrometheusAlarm", given)
