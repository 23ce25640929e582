"""Values that cannot be stored, or are too large: the request is refused, and nothing hangs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.errors import InvalidTemplate
from tests.scenarios.world import World


def value(of: Any) -> dict[str, Any]:
    return {"type": "OS::Heat::Value", "properties": {"value": of}}


def reason(world: World, uuid: str) -> str:
    [row] = world.rows("SELECT status_reason FROM stack WHERE uuid = :u", u=uuid)
    return str(row.status_reason)


@pytest.mark.parametrize(
    "text", ["\0", "\ud800", 2**64, float("nan"), float("inf")], ids=["nul", "half", "large", "nan", "inf"]
)
def test_json_text_with_unstorable_values_is_refused(world: World, text: Any) -> None:
    written = json.dumps([text])
    with pytest.raises(InvalidTemplate):
        world.submit(
            "s",
            {
                "AWSTemplateFormatVersion": "2010-09-09",
                "Resources": {
                    "a": {
                        "Type": "OS::Heat::Value",
                        "Properties": {"value": {"Fn::Select": ["0", written]}},
                    }
                },
            },
        )
    parameters = {"p": {"type": "json", "default": written}}
    with pytest.raises(InvalidTemplate):
        world.create("s", {"a": value({"get_param": "p"})}, parameters=parameters)


@pytest.mark.parametrize("expression", ["'a\\u0000'", "'\\ud800'", "dict('\\u0000' => 1)"])
def test_an_expression_with_an_unstorable_value_is_refused(world: World, expression: str) -> None:
    with pytest.raises(InvalidTemplate):
        world.create("s", {"a": value({"yaql": {"expression": expression, "data": {}}})})


def test_values_made_of_each_other_end_where_they_become_too_large(world: World) -> None:
    resources = {"r0": value(["x"])}
    for level in range(1, 22):
        part = {"get_attr": [f"r{level - 1}", "value"]}
        resources[f"r{level}"] = value([part, part])
    uuid = world.create("s", resources)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    assert "more than 250000 values" in reason(world, uuid)


def test_values_inside_each_other_end_where_they_become_too_deep(world: World) -> None:
    resources = {"r0": value("x")}
    for level in range(1, 6):
        inner: Any = {"get_attr": [f"r{level - 1}", "value"]}
        for _ in range(80):
            inner = [inner]
        resources[f"r{level}"] = value(inner)
    uuid = world.create("s", resources)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    assert "nested deeper than 200 levels" in reason(world, uuid)


def test_an_inserted_key_becomes_a_text(world: World) -> None:
    keys = {"a": 2, "b": True, "c": "d"}
    made = {"map_replace": [{"a": "x", "b": "y", "c": "z"}, {"keys": keys}]}
    uuid = world.create("s", {"a": value(made)}, outputs={"o": {"value": {"get_attr": ["a", "value"]}}})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert world.outputs("s") == {"o": {"2": "x", "true": "y", "d": "z"}}


@pytest.mark.parametrize(
    ("key", "bound"), [("properties", 250_000), ("metadata", 1_000_000), ("update_policy", 1_000_000)]
)
def test_a_large_value_referenced_many_times_is_refused_everywhere(
    world: World, key: str, bound: int
) -> None:
    parameters = {"p": {"type": "json", "default": ["x"] * 10_000}}
    many = {"type": "OS::Heat::Value", "properties": {"value": 1}}
    many |= {key: {"value": [{"get_param": "p"}] * 200}}
    with pytest.raises(InvalidTemplate, match=f"would hold more than {bound} values"):
        world.create("s", {"a": many}, parameters=parameters)
