"""Software deployments from publication to the agent's signal, on the real engine and store."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from orchestrator.operations.context import Body
from orchestrator.operations.preview.update import preview_update
from orchestrator.operations.software.type_store import DeploymentStore
from orchestrator.resources.software_api import ConfigDraft, DeploymentDraft
from orchestrator.resources.stack_context import StackLocation
from tests.scenarios.software.deployments import (
    CONFIG,
    SERVER,
    deployment,
    inputs,
    published,
    resource,
    server_id,
    software,
    stack,
    status,
)
from tests.scenarios.world import World


def test_a_deployment_is_published_and_waits_for_nothing_but_the_signal(world: World):
    outputs = {"said": {"value": {"get_attr": ["dep", "result"]}}}
    uuid = world.create("s", stack(input_values={"who": "me", "extra": [1]}), outputs=outputs)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    assert world.rows("SELECT due_at FROM graph_node WHERE label = 'dep' AND due_at < 'infinity'") == []
    [config] = published(world)
    assert (config["group"], config["config"]) == ("script", "echo $foo")
    assert config["name"].startswith("s-config-")
    supplied = inputs(config)
    assert {name: supplied[name] for name in ("foo", "who", "extra")} == {
        "foo": "bar",
        "who": "me",
        "extra": [1],
    }
    assert supplied["deploy_server_id"] == server_id(world)
    assert supplied["deploy_action"] == "CREATE"
    assert supplied["deploy_stack_id"] == f"s/{uuid}"
    assert supplied["deploy_resource_name"] == "dep"
    assert supplied["deploy_signal_transport"] == "CFN_SIGNAL"
    assert (supplied["deploy_signal_verb"], bool(supplied["deploy_signal_id"])) == ("POST", True)
    world.signal("s", "dep", {"deploy_stdout": "fine", "deploy_status_code": 0, "result": "done"})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert world.outputs("s") == {"said": "done"}
    assert status(world) == ("CREATE", "COMPLETE", "Outputs received")
    [reported] = [line for line in world.event_reasons(uuid, "dep") if line.startswith("SIGNAL")]
    assert reported.startswith("SIGNAL_IN_PROGRESS Signal: deployment ")
    assert reported.endswith(" succeeded")


@pytest.mark.parametrize(
    ("details", "reason"),
    [
        (
            {"deploy_status_code": 2},
            "deploy_status_code : Deployment exited with non-zero status code: 2",
        ),
        ({"deploy_status_code": "0", "complaint": "no disk"}, "complaint : no disk"),
    ],
)
def test_a_failed_deployment_fails_the_stack_in_heats_words(world: World, details: Any, reason: str):
    uuid = world.create("s", stack())
    world.deliver_all()
    world.signal("s", "dep", details)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    [(reported,)] = world.rows("SELECT status_reason FROM stack")
    assert reported == f"Resource CREATE failed: Error: resources.dep: Deployment to server failed: {reason}"


def test_without_a_signal_there_is_no_wait(world: World):
    uuid = world.create("s", stack(signal_transport="NO_SIGNAL"))
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert status(world) == ("CREATE", "COMPLETE", "Not waiting for outputs signal")
    assert len(published(world)) == 1


def test_another_input_is_deployed_in_place_with_a_new_config(world: World):
    uuid = world.create("s", stack(signal_transport="NO_SIGNAL"))
    world.deliver_all()
    [before] = published(world)
    [(item,)] = world.rows("SELECT uuid FROM software_deployment")
    world.update("s", stack(signal_transport="NO_SIGNAL", input_values={"foo": "new"}))
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    [after] = published(world)
    assert before["id"] != after["id"]
    assert (inputs(after)["foo"], inputs(after)["deploy_action"]) == ("new", "UPDATE")
    assert world.rows("SELECT uuid FROM software_deployment") == [(item,)]
    assert len(world.rows("SELECT 1 FROM software_config")) == 2  # the source, and the derived config


def test_an_input_that_replaces_on_change_makes_another_deployment(world: World):
    uuid = world.create("s", stack(signal_transport="NO_SIGNAL", input_values={"who": "me"}))
    world.deliver_all()
    [(item,)] = world.rows("SELECT uuid FROM software_deployment")
    world.update("s", stack(signal_transport="NO_SIGNAL", input_values={"who": "you"}))
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    [(other,)] = world.rows("SELECT uuid FROM software_deployment")
    assert item != other
    assert inputs(published(world)[0])["deploy_action"] == "CREATE"


def test_an_update_over_a_silent_agent_makes_another_deployment(world: World):
    uuid = world.create("s", stack())
    world.deliver_all()
    [(item,)] = world.rows("SELECT uuid FROM software_deployment")
    world.update("s", stack(input_values={"foo": "again"}))
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    world.signal("s", "dep", {})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    [(other,)] = world.rows("SELECT uuid FROM software_deployment")
    assert item != other
    assert inputs(published(world)[0])["foo"] == "again"


def test_an_update_that_changes_nothing_of_it_goes_on_waiting(world: World):
    uuid = world.create("s", stack())
    world.deliver_all()
    [before] = published(world)
    world.update("s", {**stack(), "more": {"type": "OS::Heat::Value", "properties": {"value": 1}}})
    world.deliver_all()
    assert published(world) == [before]
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    world.signal("s", "dep", {})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"


def test_a_cancelled_create_cancels_the_deployment(world: World):
    uuid = world.create("s", stack())
    world.deliver_all()
    world.act("s", "cancel_without_rollback")
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    assert status(world) == ("CREATE", "FAILED", "Deployment cancelled.")
    assert resource(world) == "CREATE_FAILED"
    assert world.rows("SELECT 1 FROM resource WHERE op IS NOT NULL") == []


def test_a_stack_whose_time_is_over_waits_for_no_agent(world: World):
    uuid = world.create("s", stack(), timeout_mins=1)
    world.deliver_all()
    world.elapse(120, "action")
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    assert status(world) == ("CREATE", "FAILED", "Deployment cancelled.")
    assert world.rows("SELECT 1 FROM resource WHERE op IS NOT NULL") == []


def test_structured_deployments_put_their_inputs_in(world: World):
    structured = {
        "type": "OS::Heat::StructuredConfig",
        "properties": {"config": {"a": [{"get_input": "foo"}], "b": {"get_input": "none"}}},
    }
    dep = deployment(input_values={"foo": {"deep": 1}}, signal_transport="NO_SIGNAL")
    dep["type"] = "OS::Heat::StructuredDeployment"
    world.create("s", {"server": SERVER, "config": structured, "dep": dep})
    world.deliver_all()
    assert published(world)[0]["config"] == {"a": [{"deep": 1}], "b": None}


def test_a_strict_deployment_misses_an_input_in_heats_words(world: World):
    structured = {
        "type": "OS::Heat::StructuredConfig",
        "properties": {"config": {"b": {"get_input": "none"}}},
    }
    dep = deployment(input_values_validate="STRICT")
    dep["type"] = "OS::Heat::StructuredDeployment"
    uuid = world.create("s", {"server": SERVER, "config": structured, "dep": dep})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    [(reported,)] = world.rows("SELECT status_reason FROM stack")
    assert reported.endswith("UserParameterMissing: resources.dep: The Parameter (none) was not provided.")


def test_a_config_that_is_not_there_is_named(world: World):
    uuid = world.create("s", {"server": SERVER, "dep": deployment(config="nonesuch")})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    [(reported,)] = world.rows("SELECT status_reason FROM stack")
    assert "NotFound: resources.dep: Software config with id nonesuch not found" in reported


def test_secrets_are_stored_sealed_and_reach_the_machine(world: World):
    parameters = {"password": {"type": "string", "hidden": True}}
    supplied = {"who": {"get_param": "password"}}
    resources = stack(input_values=supplied, signal_transport="NO_SIGNAL")
    template = {"heat_template_version": "2021-04-16", "parameters": parameters, "resources": resources}
    uuid = world.submit("s", template, parameters={"password": "hush-hush"})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert inputs(published(world)[0])["who"] == "hush-hush"
    for table in ("software_config", "software_deployment", "resource", "event"):
        assert world.rows(f"SELECT 1 FROM {table} AS t WHERE t::text LIKE '%hush-hush%'") == [], table


def test_after_a_death_behind_publishing_the_next_worker_publishes_nothing_new(world: World):
    world.create("s", stack())
    world.deliver_all()
    [before] = published(world)
    with world.database.engine.begin() as connection:  # as if the publication had not been recorded
        connection.exec_driver_sql(
            "UPDATE resource SET physical_id = NULL, data = NULL WHERE name = 'dep' AND op = 'CREATE'"
        )
        connection.exec_driver_sql(
            "UPDATE graph_node SET due_at = now() WHERE label = 'dep' AND state = 'waiting'"
        )
    world.deliver_all()
    assert published(world) == [before]
    world.signal("s", "dep", {})
    world.deliver_all()
    assert resource(world) == "CREATE_COMPLETE"


def test_the_same_step_publishes_once_and_the_next_step_again(world: World):
    uuid = world.create("s", stack())
    world.deliver_all()
    [row] = world.rows("SELECT id, uuid::text FROM software_deployment")
    [(stack_id, resource_id)] = world.rows("SELECT stack_id, id FROM resource WHERE name = 'dep'")
    place = StackLocation(world.caller.project_id, "s", uuid, "dep")
    here = DeploymentStore(
        world.database.connect,
        world.database,
        world.cipher,
        world.settings,
        place,
        stack_id,
        resource_id,
        traversal=1,
    )
    draft = DeploymentDraft(server_id(world), "CREATE", ConfigDraft("other"), None, waits=True)
    [before] = published(world)
    here.deploy(row.uuid, draft, secret=False)
    assert published(world) == [before]
    replace(here, traversal=2).deploy(row.uuid, draft, secret=False)
    [after] = published(world)
    assert (after["name"], after["id"] == before["id"]) == ("other", False)


def test_an_observing_preview_reports_a_deleted_config(world: World):
    world.create("s", {"config": CONFIG, "server": SERVER})
    world.deliver_all()
    template = {"heat_template_version": "2021-04-16", "resources": {"config": CONFIG, "server": SERVER}}
    body = Body(orjson.dumps({"template": template, "converge": True}))

    def foreseen() -> dict[str, str]:
        preview = preview_update(world.context, world.stack_row("s"), body)
        return {item.expected.name: turn for turn, items in preview.items.items() for item in items}

    assert foreseen() == {}
    [(config_id,)] = world.rows("SELECT physical_id FROM resource WHERE name = 'config'")
    software(world).remove_config(config_id)
    assert foreseen()["config"] == "replaced"


def test_another_project_reaches_nothing(world: World):
    world.create("s", stack())
    world.deliver_all()
    theirs = DeploymentStore(
        world.database.connect, world.database, world.cipher, world.settings, StackLocation("p2")
    )
    [config] = published(world)
    [(deployment_id,)] = world.rows("SELECT uuid::text FROM software_deployment")
    assert theirs.published(server_id(world)) == []
    assert theirs.config(config["id"]) is None
    assert theirs.deployment(deployment_id) is None
    assert not theirs.has_server(server_id(world))
    for forget in (theirs.remove_config, theirs.remove_deployment, theirs.remove_server, theirs.forget):
        for id_ in (config["id"], deployment_id, server_id(world)):
            forget(id_)
    assert published(world) == [config]
    assert software(world).has_server(server_id(world))
