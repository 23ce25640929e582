"""Many children with the same template: it is parsed once, and each child has its own values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from orchestrator.operations.children import loader
from orchestrator.template.parameters import ParameterValues
from tests.scenarios.trees import CHILD, child, deliver, nested, text
from tests.scenarios.world import World

CONDITIONAL = """
heat_template_version: 2021-04-16
parameters:
  value: {type: string, default: v, constraints: [{allowed_values: [v, many, one]}]}
conditions:
  many: {equals: [{get_param: value}, many]}
resources:
  a: {type: 'OS::Heat::Value', properties: {value: {if: [many, 'of many', 'of one']}}}
  b: {type: 'OS::Heat::Value', condition: many, properties: {value: x}}
outputs:
  of_many: {condition: many, value: {get_attr: [b, value]}}
"""


def value(of: Any) -> dict[str, Any]:
    return {"type": "OS::Heat::Value", "properties": {"value": of}}


PLAIN = text({"a": value({"get_param": "value"})})


@pytest.fixture
def world(postgres_url: str) -> Iterator[World]:
    made = World(postgres_url)
    yield made
    made.close()


def made_in(world: World, *resources: str) -> list[dict[str, Any]]:
    """Return the values of all that is in these children."""
    query = "SELECT name, properties->>'value' AS value FROM resource WHERE stack_id = :s ORDER BY name"
    return [
        {row.name: row.value for row in world.rows(query, s=child(world, resource).id)}
        for resource in resources
    ]


def test_each_is_made_with_its_own_values(world: World):
    uuid = world.create("s", {n: nested(value=n) for n in ("x", "y", "z")}, files={CHILD: PLAIN})
    deliver(world)
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert made_in(world, "x", "y", "z") == [{"a": "x"}, {"a": "y"}, {"a": "z"}]


def test_conditions_are_decided_for_each(world: World):
    resources = {"x": nested(value="many"), "y": nested(value="one"), "z": nested(value="many")}
    uuid = world.create("s", resources, files={CHILD: CONDITIONAL})
    deliver(world)
    assert world.state(uuid) == "CREATE_COMPLETE"
    many, item = {"a": "of many", "b": "x"}, {"a": "of one"}
    assert made_in(world, "x", "y", "z") == [many, item, many]
    reported = [world.outputs(child(world, name).uuid) for name in ("x", "y", "z")]
    assert reported == [{"of_many": "x"}, {}, {"of_many": "x"}]


def test_a_text_without_conditions_is_read_once(world: World, monkeypatch: pytest.MonkeyPatch):
    texts = []
    read = loader.read_stored
    monkeypatch.setattr(loader, "read_stored", lambda *given: texts.append(given[0]) or read(*given))
    world.create("s", {f"c{n}": nested(value=str(n)) for n in range(5)}, files={CHILD: PLAIN})
    deliver(world)
    assert texts == [PLAIN]


def test_a_plan_that_writes_a_part_of_a_template_leaves_it_whole_for_the_next(world: World):
    files = {CHILD: text({"a": value({"get_param": "value"}), "b": value("same")})}
    uuid = world.create("s", {"x": nested(value="1"), "y": nested(value="1")}, files=files)
    deliver(world)
    world.update("s", {"x": nested(value="2"), "y": nested(value="1")}, files=files)
    deliver(world)
    world.update("s", {"x": nested(value="2"), "y": nested(value="3"), "z": nested(value="4")}, files=files)
    deliver(world)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert made_in(world, "x", "y", "z") == [{"a": n, "b": "same"} for n in "234"]


def test_a_template_with_more_than_most_is_not_had_though_it_is_kept(world: World):
    world.create("s", {"a": value("v"), "b": value("w")})
    deliver(world)
    [row] = world.rows("SELECT encode(template_hash, 'hex') AS hash FROM revision")
    stacks, values = world.engine.stacks, ParameterValues.build({}, {}, {}, {})
    assert stacks.template(row.hash, values, 2) is not None
    assert stacks.template(row.hash, values, 1) is None
    assert stacks.template(row.hash, values, 2) is not None
