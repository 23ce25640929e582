"""A stack with a deployment on a server, and readers of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.operations.software.type_store import DeploymentStore
from orchestrator.resources.stack_context import StackLocation
from tests.scenarios.world import World

SERVER = {"type": "OS::Heat::DeployedServer"}
CONFIG = {
    "type": "OS::Heat::SoftwareConfig",
    "properties": {
        "group": "script",
        "config": "echo $foo",
        "inputs": [{"name": "foo", "default": "bar"}, {"name": "who", "replace_on_change": True}],
        "outputs": [{"name": "result"}, {"name": "complaint", "error_output": True}],
    },
}


def deployment(**properties: Any) -> dict[str, Any]:
    supplied = {"config": {"get_resource": "config"}, "server": {"get_resource": "server"}, **properties}
    return {"type": "OS::Heat::SoftwareDeployment", "properties": supplied}


def stack(**properties: Any) -> dict[str, Any]:
    return {"server": SERVER, "config": CONFIG, "dep": deployment(**properties)}


def software(world: World) -> DeploymentStore:
    """The store as an agent's request sees it."""
    place = StackLocation(world.caller.project_id)
    return DeploymentStore(world.database.connect, world.database, world.cipher, world.settings, place)


def server_id(world: World) -> str:
    [(rows,)] = world.rows("SELECT physical_id FROM resource WHERE name = 'server'")
    return str(rows)


def published(world: World) -> list[dict[str, Any]]:
    """The metadata that the agent on the server reads."""
    return [dict(item) for item in software(world).published(server_id(world))]


def inputs(config: Mapping[str, Any]) -> dict[str, Any]:
    return {item["name"]: item["value"] for item in config["inputs"]}


def status(world: World) -> tuple[Any, ...]:
    [row] = world.rows("SELECT action, status, status_reason FROM software_deployment")
    return tuple(row)


def resource(world: World, name: str = "dep") -> str:
    query = "SELECT action || '_' || status FROM resource WHERE name = :n AND NOT deposed"
    [(state,)] = world.rows(query, n=name)
    return str(state)
