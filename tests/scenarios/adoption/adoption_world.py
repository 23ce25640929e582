"""Exports, abandons and adoptions of a stack of three resources."""

from __future__ import annotations

from typing import Any

import orjson

from orchestrator.operations.adoption import adopt_abandon
from orchestrator.operations.context import Body
from orchestrator.operations.stacks import create_delete
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.world import World


def export(world: World, name: str = "s") -> dict[str, Any]:
    return orjson.loads(b"".join(adopt_abandon.exported(world.context, world.stack_row(name))))


def abandon(world: World, name: str = "s") -> dict[str, Any]:
    abandoned = adopt_abandon.abandon(world.context, world.stack_row(name))
    world.messages += abandoned.messages
    with abandoned.document as document:
        return orjson.loads(document.read())


def adopt(world: World, data: dict[str, Any], name: str = "s", **request: Any) -> str:
    body = {"stack_name": name, "adopt_stack_data": orjson.dumps(data).decode(), **request}
    accepted = create_delete.create(world.context, Body(orjson.dumps(body)))
    world.messages += accepted.messages
    return accepted.uuid


def three(**changes: Any) -> dict[str, Any]:
    made = {
        "a": cloud_thing(value="va", type="Cloud::Server"),
        "b": cloud_thing(value={"get_attr": ["a", "value"]}),
        "pw": {"type": "OS::Heat::RandomString"},
        **changes,
    }
    return {name: body for name, body in made.items() if body is not None}


def touched(cloud: Cloud) -> list[str]:
    return [call for call in cloud.calls if not call.startswith(("observe", "find"))]
