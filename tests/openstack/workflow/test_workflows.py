"""Workflows of Mistral, on the simulated cloud: the real control plane has none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.clients.openstack.platform_services.workflow import CRON_TRIGGERS, EXECUTIONS, WORKFLOWS
from orchestrator.errors import ProviderConflict
from orchestrator.lookups.kinds import LookupFault, look_up
from simulated_openstack.cloud import SimulatedCloud
from tests.openstack.conftest import DIRECTORY
from tests.openstack.driver import Driver

pytestmark = pytest.mark.skipif(bool(DIRECTORY), reason="the control plane has no Mistral")
WORKFLOW, TRIGGER = "OS::Mistral::Workflow", "OS::Mistral::CronTrigger"
EXTERNAL = "OS::Mistral::ExternalResource"
GIVEN: dict[str, Any] = {
    "type": "direct",
    "input": {"who": "me"},
    "output": {"resource_id": "id-<% $.who %>", "greeting": "hello <% $.who %>"},
    "tasks": [{"name": "t", "action": "std.noop", "on_success": ["u"]}, {"name": "u", "action": "std.noop"}],
}


def test_a_workflow_is_created_changed_executed_and_deleted(driver: Driver) -> None:
    name = driver.create(WORKFLOW, GIVEN)
    assert look_up(driver.openstack, "mistral.workflow", name) == name
    resource = driver.resources[name]
    attributes = driver.attributes(name)
    assert attributes["data"] == {"name": name, "input": {"who": "me"}}
    assert "Signature=" in attributes["alarm_url"]
    driver.update(name, tags=["a"], description="d")
    assert (driver.openstack.workflow.find(WORKFLOWS, name) or {})["tags"] == ["a"]
    signalled = resource.type.signal(resource.ctx, name, {"input": {"who": "you"}})
    resource.ctx = replace(resource.ctx, data=signalled.data or {})
    (execution,) = driver.attributes(name, "executions")["executions"]
    assert (execution["state"], execution["input"]) == ("SUCCESS", {"who": "you"})
    assert execution["output"]["greeting"] == "hello you"
    driver.delete(name)
    assert driver.openstack.workflow.find(WORKFLOWS, name) is None
    assert driver.openstack.workflow.find(EXECUTIONS, execution["id"]) is None
    with pytest.raises(LookupFault, match="could not be found"):
        look_up(driver.openstack, "mistral.workflow", name)


def test_the_workflow_of_another_user_is_a_conflict_and_is_kept(driver: Driver) -> None:
    name = driver.name()
    resource = driver.prepare(WORKFLOW, {**GIVEN, "name": name})
    created = resource.type.create(resource.ctx, resource.ctx.properties)
    driver.openstack.workflow.create_workflow(
        f"version: '2.0'\n{name}:\n  tasks:\n    t:\n      action: std.noop\n"
    )
    with pytest.raises(ProviderConflict, match=f"There is a workflow {name} already"):
        resource.type.create(resource.ctx, resource.ctx.properties)
    data = {**created.data, "requested_at": "2199-01-01T00:00:00+00:00"}  # later than the other workflow
    ctx = replace(resource.ctx, data=data)
    assert resource.type.observe(ctx, name).step == "define"
    with pytest.raises(ProviderConflict, match="Duplicate entry"):
        resource.type.advance(ctx, name, ctx.properties, "define")
    resource.type.delete(replace(ctx, action="DELETE"), name)
    assert not resource.type.observe(replace(ctx, action="DELETE"), name).exists
    assert driver.openstack.workflow.remove(WORKFLOWS, name)


def test_a_cron_trigger_is_created_checked_and_deleted(driver: Driver) -> None:
    workflow = driver.create(WORKFLOW, GIVEN)
    given = {"pattern": "0 1 * * *", "workflow": {"name": workflow, "input": {"who": "you"}}, "count": 3}
    trigger = driver.create(TRIGGER, given)
    assert driver.find(trigger) == [trigger]
    attributes = driver.attributes(trigger, "remaining_executions", "next_execution_time")
    assert attributes["remaining_executions"] == 3
    assert attributes["next_execution_time"]
    driver.openstack.workflow.remove(CRON_TRIGGERS, trigger)  # as Mistral does after the last execution
    assert driver.observe(trigger).exists
    driver.delete(trigger)


def test_workflows_manage_an_external_resource(driver: Driver) -> None:
    workflow = driver.create(WORKFLOW, GIVEN)
    actions = {action: {"workflow": workflow} for action in ("CREATE", "UPDATE", "DELETE")}
    external = driver.create(EXTERNAL, {"actions": actions, "input": {"who": "you"}})
    assert external == "id-you"
    assert driver.attributes(external)["output"] == {"resource_id": "id-you", "greeting": "hello you"}
    external = driver.update(external, input={"who": "them"})
    assert external == "id-them"
    assert driver.attributes(external, "show")["show"]["state"] == "SUCCESS"
    driver.delete(external)


def test_a_failed_execution_fails_the_resource(driver: Driver, simulated_cloud: SimulatedCloud) -> None:
    workflow = driver.create(WORKFLOW, GIVEN)
    simulated_cloud.faults.set({"execution": {"error": "out of luck", "times": 1}})
    with pytest.raises(AssertionError, match="out of luck"):
        driver.create(EXTERNAL, {"actions": {"CREATE": {"workflow": workflow}}})
    simulated_cloud.faults.set({})
