"""Agents and alarms with only the data of a template: policies, deployments, machines
(docs/internals/rest-api.md §14).
"""

from __future__ import annotations

import json

import pytest
from flask.testing import FlaskClient

from orchestrator.resources.ec2_signatures import signature_v2
from tests.scenarios.keystone.access_world import code, out, served, tampered
from tests.scenarios.signals.test_wait_conditions import drain
from tests.scenarios.world import World, test_resource

HOST = "127.0.0.1:8004"


@pytest.fixture
def api(world: World) -> FlaskClient:
    return served(world, auth="token")


def test_an_alarm_scales_a_group_by_the_url_of_its_policy(world: World, api):
    resources = {
        "g": {
            "type": "OS::Heat::AutoScalingGroup",
            "properties": {"min_size": 1, "max_size": 5, "resource": test_resource()},
        },
        "p": {
            "type": "OS::Heat::ScalingPolicy",
            "properties": {
                "auto_scaling_group_id": {"get_resource": "g"},
                "adjustment_type": "change_in_capacity",
                "scaling_adjustment": 1,
            },
        },
    }
    url, native = out(world, [{"get_attr": ["p", item]} for item in ("alarm_url", "signal_url")], resources)
    assert native.endswith(f"/stacks/s/{world.stack_row('s').uuid}/resources/p/signal")
    assert "Timestamp" not in url
    assert code(api.post(tampered(url, Signature="x"))) == (403, "AccessDenied")
    answer = api.post(url, data=json.dumps({"previous": "ok", "current": "alarm", "reason": "hot"}))
    assert (answer.status_code, answer.data) == (200, b"null")
    world.deliver_all()
    members = """SELECT 1 FROM resource r JOIN stack s ON s.id = r.stack_id
        WHERE s.owner_id IS NOT NULL AND NOT r.deposed"""
    assert len(world.rows(members)) == 2


def agent(world, transport):
    """Make a machine with something to do; return the settings of its agent."""
    resources = {
        "m": {"type": "OS::Heat::DeployedServer"},
        "c": {"type": "OS::Heat::SoftwareConfig", "properties": {"config": "echo", "group": "script"}},
        "d": {
            "type": "OS::Heat::SoftwareDeployment",
            "properties": {
                "config": {"get_resource": "c"},
                "server": {"get_resource": "m"},
                "signal_transport": transport,
            },
        },
    }
    return out(world, {"get_attr": ["m", "os_collect_config"]}, resources)["cfn"]


def described(api, settings, **changes):
    """Ask for the machine's metadata as os-collect-config does."""
    params = {
        "Action": "DescribeStackResource",
        "StackName": settings["stack_name"],
        "LogicalResourceId": settings["path"].partition(".")[0],
        "AWSAccessKeyId": settings["access_key_id"],
        "SignatureVersion": "2",
        "ContentType": "JSON",
        **changes,
    }
    params["Signature"] = signature_v2(settings["secret_access_key"], "GET", HOST, "/v1/", params)
    return api.get("/v1/", query_string=params, base_url=f"http://{HOST}")


@pytest.mark.parametrize("transport", ["CFN_SIGNAL", "HEAT_SIGNAL"])
def test_an_agent_reads_its_configs_and_signals_their_results(world: World, api, transport):
    settings = agent(world, transport)
    assert settings["metadata_url"] == f"http://{HOST}/v1/"
    answer = described(api, settings)
    assert answer.status_code == 200, answer.text
    result = answer.json["DescribeStackResourceResponse"]["DescribeStackResourceResult"]
    [config] = json.loads(result["StackResourceDetail"]["Metadata"])["deployments"]
    reported = {item["name"]: item["value"] for item in config["inputs"]}
    said = {"deploy_status_code": 0, "deploy_stdout": "done"}
    if transport == "CFN_SIGNAL":
        assert reported["deploy_signal_verb"] == "POST"
        signalled = api.post(reported["deploy_signal_id"], data=json.dumps(said))
    else:
        headers = {"X-Auth-Token": reported["deploy_password"]}
        place = f"/v1/{reported['deploy_project_id']}/stacks/{reported['deploy_stack_id']}"
        assert api.get(place, headers=headers).status_code == 403
        where = f"{place}/resources/{reported['deploy_resource_name']}/signal"
        signalled = api.post(where, json=said, headers=headers)
    assert signalled.status_code == 200, signalled.text
    world.deliver_all()
    assert world.rows("SELECT status FROM stack")[0].status == "COMPLETE"


def test_an_agent_reads_no_other_resource_and_nothing_when_its_machine_is_gone(world: World, api):
    settings = agent(world, "CFN_SIGNAL")
    assert described(api, settings, LogicalResourceId="d").status_code == 403
    world.delete("s")
    world.deliver_all()
    assert described(api, settings).status_code == 403
    drain(world)
