"""Software deployments whose agents have no access to the API: results and settings through Swift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import httpx
import orjson
import pytest

from orchestrator.errors import InvalidTemplate
from orchestrator.operations.software.type_store import DeploymentStore
from tests.openstack.stacks.cloud_world import CloudWorld
from tests.openstack.stacks.templates import of, ref

Config = Mapping[str, Any]
CONFIG = of("OS::Heat::SoftwareConfig", config="echo $a", inputs=[{"name": "a"}], outputs=[{"name": "said"}])


def resources(**deployment: Any) -> dict[str, Any]:
    """Return a server, a config, and its deployment."""
    given = {"signal_transport": "TEMP_URL_SIGNAL", "input_values": {"a": 1}, **deployment}
    return {
        "machine": of("OS::Heat::DeployedServer"),
        "config": CONFIG,
        "deployment": of(
            "OS::Heat::SoftwareDeployment", config=ref("config"), server=ref("machine"), **given
        ),
    }


def published(world: CloudWorld) -> Sequence[Config]:
    """Return the configs that the agent on the server receives."""
    (server,) = (row.physical_id for row in world.resources("machine"))
    return DeploymentStore.at(world.context, world.stack_row("s")).published(server)


def inputs(config: Config) -> dict[str, Any]:
    return {item["name"]: item["value"] for item in config["inputs"]}


def answer(config: Config, **outputs: Any) -> None:
    """Put the result as an agent does."""
    given = inputs(config)
    assert given["deploy_signal_verb"] == "PUT"
    assert httpx.put(given["deploy_signal_id"], content=orjson.dumps(outputs)).status_code == 201


def left_in_swift(world: CloudWorld) -> list[str]:
    return [kind for kind, _ in world.objects() if kind in ("swift.object", "swift.container")]


def test_a_deployment_receives_its_result_for_each_action(world: CloudWorld) -> None:
    outputs = {"said": {"value": {"get_attr": ["deployment", "said"]}}}
    uuid = world.create("s", resources(actions=["CREATE", "UPDATE", "DELETE"]), outputs=outputs)
    world.retry(2)
    assert world.state(uuid) == "CREATE_IN_PROGRESS", world.causes()
    (created,) = published(world)
    answer(created, said="one", deploy_status_code=0)
    world.retry(2)
    world.settle(uuid, "CREATE_COMPLETE")
    assert world.outputs("s") == {"said": "one"}
    changed = resources(actions=["CREATE", "UPDATE", "DELETE"], input_values={"a": 2})
    world.update("s", changed, outputs=outputs)
    world.retry(2)
    (updated,) = published(world)
    assert inputs(updated)["a"] == 2
    answer(created, said="late")  # of the earlier action
    world.retry(2)
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    answer(updated, said="two")
    world.retry(2)
    world.settle(uuid, "UPDATE_COMPLETE")
    assert world.outputs("s") == {"said": "two"}
    world.delete("s")
    world.retry(2)
    (deleted,) = published(world)
    assert inputs(deleted)["deploy_action"] == "DELETE"
    answer(deleted)
    world.settle_by_time(uuid, "DELETE_COMPLETE")
    assert left_in_swift(world) == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"deploy_status_code": 3}', "Deployment exited with non-zero status code: 3"),
        (b"nonsense", "Deployment exited with non-zero status code: 1"),
        (b"{" + b" " * 1024 * 1024 + b"}", "Deployment exited with non-zero status code: 1"),
    ],
)
def test_a_result_can_be_a_failure(world: CloudWorld, content: bytes, reason: str) -> None:
    uuid = world.create("s", resources())
    world.retry(2)
    (config,) = published(world)
    httpx.put(inputs(config)["deploy_signal_id"], content=content)
    world.retry(2)
    world.settle(uuid, "CREATE_FAILED")
    assert reason in dict(world.causes())["deployment"]
    world.delete("s")
    world.settle_by_time(uuid, "DELETE_COMPLETE")
    assert left_in_swift(world) == []


def read(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Read the metadata as an agent does, with its settings."""
    assert settings["collectors"] == ["request", "local"]
    response = httpx.get(settings["request"]["metadata_url"])
    assert response.status_code == 200
    found: dict[str, Any] = response.json()
    assert found["os-collect-config"] == settings
    return found


def polled(machine: dict[str, Any], **properties: Any) -> dict[str, Any]:
    """Return the template with a server whose agent polls an object."""
    given = machine["properties"] | {"software_config_transport": "POLL_TEMP_URL", **properties}
    return {**resources(), "machine": {**machine, "properties": given}}


NOVA = of(
    "OS::Nova::Server",
    image="cirros",
    flavor="m1.tiny",
    networks=[{"network": "private"}],
    user_data_format="SOFTWARE_CONFIG",
)


@pytest.mark.parametrize(
    ("machine", "properties"),
    [
        (of("OS::Heat::DeployedServer"), {}),
        (
            of("OS::Heat::DeployedServer"),
            {"deployment_swift_data": {"container": "given", "object": "machine"}},
        ),
        (NOVA, {}),
    ],
    ids=["deployed", "deployed in a given object", "nova"],
)
def test_an_agent_needs_nothing_but_an_object_store(
    world: CloudWorld, machine: dict[str, Any], properties: dict[str, Any]
) -> None:
    outputs = {"agent": {"value": {"get_attr": ["machine", "os_collect_config"]}}}
    template = polled({**machine, "metadata": {"own": "value"}}, **properties)
    uuid = world.create("s", template, outputs=outputs)
    for _ in range(20):
        world.retry(1)
        world.cloud.schedule.run_due()
        if world.resources("deployment")[0].status == "IN_PROGRESS" and published(world):
            break
    settings = world.outputs("s")["agent"]
    found = read(settings)
    assert found["own"] == "value"
    (config,) = found["deployments"]
    answer(config, said="hello")
    world.retry(2)
    world.settle(uuid, "CREATE_COMPLETE")
    template["deployment"]["properties"]["input_values"] = {"a": 2}
    world.update("s", template, outputs=outputs)
    world.retry(3)
    (config,) = read(settings)["deployments"]
    assert inputs(config)["a"] == 2
    answer(config, said="again")
    world.retry(2)
    world.settle(uuid, "UPDATE_COMPLETE")
    world.delete("s")
    world.settle_by_time(uuid, "DELETE_COMPLETE")
    assert left_in_swift(world) == []
    assert httpx.get(settings["request"]["metadata_url"]).status_code == 404


def test_an_agent_that_polls_an_object_learns_another_transport_there(world: CloudWorld) -> None:
    machine = of("OS::Heat::DeployedServer")
    outputs = {"agent": {"value": {"get_attr": ["machine", "os_collect_config"]}}}
    uuid = world.create("s", {"machine": polled(machine)["machine"]}, outputs=outputs)
    world.settle(uuid, "CREATE_COMPLETE")
    settings = world.outputs("s")["agent"]
    assert read(settings)["deployments"] == []
    world.update("s", {"machine": machine}, outputs=outputs)
    world.settle(uuid, "UPDATE_COMPLETE")
    found = httpx.get(settings["request"]["metadata_url"]).json()
    assert found["os-collect-config"] == world.outputs("s")["agent"]
    assert found["os-collect-config"]["collectors"] == ["cfn", "local"]
    world.delete("s")
    world.settle_by_time(uuid, "DELETE_COMPLETE")
    assert left_in_swift(world) == []


@pytest.mark.parametrize("name", ["ZAQAR_SIGNAL", "ZAQAR_MESSAGE"])
def test_transports_over_a_queue_are_not_supported_here(world: CloudWorld, name: str) -> None:
    given = resources(signal_transport=name) if name == "ZAQAR_SIGNAL" else resources()
    if name == "ZAQAR_MESSAGE":
        given["machine"] = of("OS::Heat::DeployedServer", software_config_transport=name)
    with pytest.raises(InvalidTemplate, match=f"{name} is not supported here"):
        world.create("s", given)
