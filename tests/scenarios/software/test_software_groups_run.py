"""Groups of software deployments on the real engine: a child stack with a deployment for each machine."""

from __future__ import annotations

from typing import Any

from tests.scenarios.software.deployments import CONFIG, inputs, software
from tests.scenarios.world import World


def group(**properties: Any) -> dict[str, Any]:
    supplied = {"config": {"get_resource": "config"}, "servers": {"a": "one", "b": "two"}, **properties}
    return {"config": CONFIG, "group": {"type": "OS::Heat::SoftwareDeploymentGroup", "properties": supplied}}


def child(world: World) -> str:
    [(uuid,)] = world.rows("SELECT uuid::text FROM stack WHERE owner_id IS NOT NULL AND deleted_at IS NULL")
    return str(uuid)


def deployed(world: World, server: str) -> dict[str, Any]:
    [config] = software(world).published(server)
    return inputs(config)


def test_each_server_has_its_deployment_and_the_group_completes_after_all_signals(world: World):
    outputs = {
        "results": {"value": {"get_attr": ["group", "result"]}},
        "out": {"value": {"get_attr": ["group", "deploy_stdouts"]}},
    }
    uuid = world.create("s", group(input_values={"who": "me"}), outputs=outputs)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    assert {server: deployed(world, server)["deploy_resource_name"] for server in ("one", "two")} == {
        "one": "a",
        "two": "b",
    }
    assert deployed(world, "one")["who"] == "me"
    assert deployed(world, "one")["deploy_stack_id"].endswith(f"/{child(world)}")
    world.signal(child(world), "a", {"result": 1, "deploy_stdout": "x"})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    world.signal(child(world), "b", {"result": 2, "deploy_stdout": "y"})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert world.outputs("s") == {"results": {"a": 1, "b": 2}, "out": {"a": "x", "b": "y"}}


def test_an_update_deploys_existing_members_in_place_and_creates_new_members(world: World):
    uuid = world.create("s", group(signal_transport="NO_SIGNAL"))
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    before = dict(world.rows("SELECT server_id, uuid FROM software_deployment"))
    servers = {"b": "two", "c": "three"}
    world.update("s", group(signal_transport="NO_SIGNAL", servers=servers, input_values={"foo": "new"}))
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    after = dict(world.rows("SELECT server_id, uuid FROM software_deployment"))
    assert set(after) == {"two", "three"}
    assert after["two"] == before["two"]
    assert (deployed(world, "two")["foo"], deployed(world, "two")["deploy_action"]) == ("new", "UPDATE")
    assert deployed(world, "three")["deploy_action"] == "CREATE"
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert world.rows("SELECT 1 FROM software_deployment") == []


def test_the_type_that_takes_the_place_of_a_deprecated_type_keeps_its_deployments(world: World):
    template = group(signal_transport="NO_SIGNAL")
    old = {**template["group"], "type": "OS::Heat::SoftwareDeployments"}
    uuid = world.create("s", {**template, "group": old})
    world.deliver_all()
    query = "SELECT physical_id FROM resource WHERE name = 'group'"
    before = world.rows(query), world.rows("SELECT uuid FROM software_deployment")
    world.update("s", template)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert (world.rows(query), world.rows("SELECT uuid FROM software_deployment")) == before
    assert world.rows("SELECT type FROM resource WHERE name = 'group'") == [(template["group"]["type"],)]


def test_a_failing_server_fails_the_group_and_is_named(world: World):
    uuid = world.create("s", group())
    world.deliver_all()
    world.signal(child(world), "a", {"deploy_status_code": 1})
    world.signal(child(world), "b", {})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    [(reported,)] = world.rows("SELECT status_reason FROM stack WHERE owner_id IS NULL")
    assert reported == (
        "Resource CREATE failed: Error: resources.group.resources.a: Deployment to server failed: "
        "deploy_status_code : Deployment exited with non-zero status code: 1"
    )


def test_a_group_that_is_given_up_waits_for_no_machine(world: World):
    uuid = world.create("s", group())
    world.deliver_all()
    world.act("s", "cancel_without_rollback")
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert world.rows("SELECT 1 FROM software_deployment") == []


def test_secrets_stay_sealed_in_the_child(world: World):
    template = {
        "heat_template_version": "2021-04-16",
        "parameters": {"password": {"type": "string", "hidden": True}},
        "resources": group(signal_transport="NO_SIGNAL", input_values={"who": {"get_param": "password"}}),
    }
    uuid = world.submit("s", template, parameters={"password": "hush-hush"})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert deployed(world, "one")["who"] == "hush-hush"
    for table in ("resource", "revision", "event", "software_config", "resource_definition"):
        assert world.rows(f"SELECT 1 FROM {table} AS t WHERE t::text LIKE '%hush-hush%'") == [], table
    assert world.rows("SELECT 1 FROM content WHERE position('hush-hush'::bytea IN body) > 0") == []


def test_a_group_is_changed_in_batches_that_the_policy_says(world: World):
    rolling = {"rolling_update": {"max_batch_size": 1, "pause_time": 0}}
    resources = group()
    resources["group"]["update_policy"] = rolling
    uuid = world.create("s", resources)
    world.deliver_all()
    for name in ("a", "b"):
        world.signal(child(world), name, {})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    resources = group(input_values={"foo": "new"})
    resources["group"]["update_policy"] = rolling
    world.update("s", resources)
    world.deliver_all()
    assert (deployed(world, "one")["foo"], deployed(world, "two")["foo"]) == ("new", "bar")
    world.signal(child(world), "a", {})
    world.deliver_all()
    assert (deployed(world, "one")["foo"], deployed(world, "two")["foo"]) == ("new", "new")
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    world.signal(child(world), "b", {})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
