"""Groups of software deployments: the desired members of the child, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson
import pytest

from orchestrator.resources.base import Context
from orchestrator.resources.builtin.software_deployment_group import SoftwareDeploymentGroup
from orchestrator.resources.builtin.structured_deployment_group import StructuredDeploymentGroup
from orchestrator.resources.nested_type import Member, Pause, SetChild, Settled
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.parse import Limits
from orchestrator.template.template import load

KIND = SoftwareDeploymentGroup()


@dataclass
class Child:
    """A child as a step sees it."""

    template: str | None = None
    uuid: str | None = "a child"
    arn: str | None = "its arn"
    inside: tuple[Member, ...] = ()

    def members(self) -> tuple[Member, ...]:
        return self.inside

    def outputs(self) -> dict[str, Any]:
        return {}


def read(kind: SoftwareDeploymentGroup = KIND, **supplied: Any) -> dict[str, Any]:
    properties, faults = kind.read_properties(supplied)
    assert faults == []
    return properties


def context(**options: Any) -> Context:
    return Context("group", "s-group-x", "token-1", "CREATE", **options)


def batches(size: int = 1, pause: float = 0) -> dict[str, Any]:
    return {
        name: {"max_batch_size": size, "pause_time": pause} for name in ("rolling_update", "batch_create")
    }


def members(step: Any, kind: type = SoftwareDeploymentGroup) -> dict[str, Any]:
    """The members that a step asks for, their properties evaluated as the child's would be."""
    assert isinstance(step, SetChild)
    document = orjson.loads(step.child.text)
    values = step.child.environment.parameters
    result = {}
    for name, snippet in document["resources"].items():
        assert snippet["type"] == kind.member.name  # type: ignore[attr-defined]
        result[name] = {
            key: values[value["get_param"][0]][value["get_param"][1]] if isinstance(value, dict) else value
            for key, value in snippet["properties"].items()
        }
    return result


def run(props: Mapping[str, Any], ctx: Context, child: Child) -> list[Any]:
    """Go through the steps until nothing is left to do, as the engine does."""
    reported: list[Any] = []
    for turn in range(50):
        step = KIND.step(ctx, props, child, turn)
        reported.append(step)
        if isinstance(step, Settled):
            return reported
        ctx = replace(ctx, data=orjson.loads(orjson.dumps(dict(step.data))))
        if isinstance(step, SetChild):
            child.template = step.child.text
    raise AssertionError("it never ends")


def test_each_server_gets_a_deployment_of_its_name():
    props = read(
        servers={"a": "s1", "b": "s2"}, config="c", input_values={"x": {"get_attr": ["no", "function"]}}
    )
    step = KIND.step(context(), props, Child(), 0)
    result = members(step)
    assert {name: item["server"] for name, item in result.items()} == {"a": "s1", "b": "s2"}
    assert result["a"]["input_values"] == {"x": {"get_attr": ["no", "function"]}}
    assert result["a"]["actions"] == ["CREATE", "UPDATE"]
    assert "servers" not in result["a"]


def test_the_child_is_a_template():
    props = read(servers={"a": "s1"}, config="c")
    step = KIND.step(context(), props, Child(), 0)
    values = ParameterValues.build(
        load(step.child.text, Limits()).parameters, step.child.environment.parameters, {}, {}
    )
    template = load(step.child.text, Limits(), values)
    assert list(template.resources) == ["a"]
    assert not any(parameter.hidden for parameter in template.parameters.values())


def test_secret_properties_become_hidden_parameters():
    props = read(servers={"a": "s1"}, input_values={"password": "hush"})
    step = KIND.step(context(secret=True), props, Child(), 0)
    assert "hush" not in step.child.text
    assert all(parameter.hidden for parameter in load(step.child.text, Limits()).parameters.values())


def test_without_a_policy_all_are_made_at_once():
    reported = run(read(servers={"a": "1", "b": "2"}), context(), Child())
    assert [type(step) for step in reported] == [SetChild, Settled]


def test_a_new_group_is_made_in_batches_with_pauses_between():
    props = read(servers={name: name for name in "abcde"})
    reported = run(props, context(update_policy=batches(2, 3)), Child())
    assert [type(step) for step in reported] == [SetChild, Pause, SetChild, Pause, SetChild, Settled]
    assert [len(members(step)) for step in reported if isinstance(step, SetChild)] == [2, 4, 5]
    assert {step.seconds for step in reported if isinstance(step, Pause)} == {3.0}


def test_a_rolling_update_changes_a_batch_at_a_time_and_keeps_the_rest():
    child, ctx = Child(), context(update_policy=batches(2))
    first = run(read(servers={name: name for name in "abc"}, config="old"), ctx, child)[-1]
    servers = {"b": "b", "c": "c", "d": "d", "e": "e"}
    reported = run(read(servers=servers, config="new"), replace(ctx, data=first.data), child)
    observed = [{name: item["config"] for name, item in members(step).items()} for step in reported[:-1]]
    assert observed == [
        {"b": "new", "c": "new"},
        {"b": "new", "c": "new", "d": "new", "e": "new"},
    ]


def test_a_group_that_nothing_changed_in_is_brought_once_more_and_settles():
    child, ctx = Child(), context(update_policy=batches())
    props = read(servers={"a": "1", "b": "2"})
    first = run(props, ctx, child)[-1]
    reported = run(props, replace(ctx, data=first.data), child)
    assert [type(step) for step in reported] == [SetChild, Settled]


def test_a_child_that_is_gone_is_made_from_nothing():
    ctx = context(update_policy=batches())
    first = run(read(servers={"a": "1", "b": "2"}), ctx, Child())[-1]
    step = KIND.step(replace(ctx, data=first.data), read(servers={"a": "1", "b": "2"}), Child(), 0)
    assert list(members(step)) == ["a"]


def test_no_servers_is_a_group_of_none():
    reported = run(read(servers={}), context(), Child())
    assert members(reported[0]) == {}


def test_attributes_are_maps_by_the_deployments_names():
    def member(name: str, **attributes: Any) -> Member:
        return Member(name, KIND.member.name, "CREATE", "COMPLETE", name, name, 0.0, attributes)

    inside = (member("a", deploy_stdout="x", result=1), member("b", deploy_stdout="y"))
    child = Child(inside=inside)
    result = KIND.child_attributes(context(), child, ["result", "show"])
    assert result["result"] == {"a": 1, "b": None}
    assert result["deploy_stdouts"] == {"a": "x", "b": "y"}
    assert KIND.child_reference_id(context(), child) == "a child"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"servers": {"a/b": "1"}}, '"a/b" cannot be the name of a deployment'),
        ({"servers": {"a": {"b": 1}}}, 'The server of "a" must be a string'),
        (
            {"servers": {}, "signal_transport": "ZAQAR_SIGNAL"},
            "ZAQAR_SIGNAL is not supported here.",
        ),
    ],
)
def test_impossible_requests_are_refused(given: dict[str, Any], message: str):
    assert [fault.message for fault in KIND.validate(read(**given), 3600.0)] == [message]


def test_a_structured_group_has_structured_deployments():
    resource_type = StructuredDeploymentGroup()
    props = read(resource_type, servers={"a": "1"}, input_key="take")
    [result] = members(resource_type.step(context(), props, Child(), 0), StructuredDeploymentGroup).values()
    assert (result["input_key"], result["input_values_validate"]) == ("take", "LAX")
