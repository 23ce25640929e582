"""Software deployments in delete, suspend and resume: each action has its own config."""

from __future__ import annotations

from tests.scenarios.software.deployments import (
    CONFIG,
    SERVER,
    deployment,
    inputs,
    published,
    server_id,
    stack,
    status,
)
from tests.scenarios.world import World


def test_deletion_has_the_machine_undo_it_first_when_asked_to(world: World):
    uuid = world.create("s", stack(actions=["DELETE"]))
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"  # nothing to do yet
    assert world.rows("SELECT 1 FROM software_deployment") == []
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_IN_PROGRESS"
    [config] = published(world)
    assert inputs(config)["deploy_action"] == "DELETE"
    world.signal("s", "dep", {})
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    for table in ("software_deployment", "software_config", "software_agent"):
        assert world.rows(f"SELECT 1 FROM {table}") == [], table


def test_a_failed_delete_action_is_reported_and_repeated_by_the_next_delete(world: World):
    uuid = world.create("s", stack(actions=["DELETE"]))
    world.deliver_all()
    world.delete("s")
    world.deliver_all()
    world.signal("s", "dep", {"deploy_status_code": 1})
    world.deliver_all()
    assert world.state(uuid) == "DELETE_FAILED"
    world.delete("s")
    world.deliver_all()
    assert status(world)[:2] == ("DELETE", "IN_PROGRESS")
    world.signal("s", "dep", {})
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"


def test_nothing_is_undone_on_a_machine_that_is_gone(world: World):
    existing = world.create("there", {"server": SERVER})
    world.deliver_all()
    machine = server_id(world)
    actions = ["CREATE", "DELETE"]
    uuid = world.create("s", {"config": CONFIG, "dep": deployment(server=machine, actions=actions)})
    world.deliver_all()
    world.signal("s", "dep", {})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    world.delete("there")
    world.deliver_all()
    assert world.state(existing) == "DELETE_COMPLETE"
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"


def test_a_deployment_waiting_for_its_undo_continues_when_the_server_is_deleted(world: World):
    world.create("there", {"server": SERVER})
    world.deliver_all()
    machine = server_id(world)
    actions = ["CREATE", "DELETE"]
    uuid = world.create("s", {"config": CONFIG, "dep": deployment(server=machine, actions=actions)})
    world.deliver_all()
    world.signal("s", "dep", {})
    world.deliver_all()
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_IN_PROGRESS"
    world.delete("there")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"


def test_suspend_and_resume_are_deployed_when_listed(world: World):
    uuid = world.create("s", stack(actions=["SUSPEND"]))
    world.deliver_all()
    world.act("s", "suspend")
    world.deliver_all()
    assert world.state(uuid) == "SUSPEND_IN_PROGRESS"
    assert inputs(published(world)[0])["deploy_action"] == "SUSPEND"
    world.signal("s", "dep", {})
    world.deliver_all()
    assert world.state(uuid) == "SUSPEND_COMPLETE"
    world.act("s", "resume")
    world.deliver_all()
    assert world.state(uuid) == "RESUME_COMPLETE"  # not listed


def test_a_component_declares_its_actions(world: World):
    component = {
        "type": "OS::Heat::SoftwareComponent",
        "properties": {"configs": [{"actions": ["SUSPEND"], "tool": "script", "config": "stop"}]},
    }
    uuid = world.create("s", {"server": SERVER, "config": component, "dep": deployment()})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    world.act("s", "suspend")
    world.deliver_all()
    [config] = published(world)
    assert (config["group"], config["config"]["configs"][0]["config"]) == ("component", "stop")
