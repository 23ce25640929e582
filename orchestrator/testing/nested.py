"""The contract of nested types (`orchestrator/resources/nested_type.py`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import orjson
import pytest

from orchestrator.json_types import JsonMapping
from orchestrator.resources.base import ResourceType, Value
from orchestrator.resources.nested_type import (
    Member,
    MemberConditions,
    NestedStep,
    NestedType,
    Pause,
    SetChild,
    Settled,
    Sibling,
)
from orchestrator.template.environment import Environment
from orchestrator.template.group_template import load_stored
from orchestrator.template.parse import Limits
from orchestrator.testing.contract import Declarations
from orchestrator.testing.operated import Operated
from orchestrator.testing.samples import Sample

MAX_STEPS: Final = 1_000  # maximum per operation

Read = Callable[[str], tuple[Mapping[str, str], Sequence[str]]]  # names and types, names of outputs


def as_template(text: str) -> tuple[Mapping[str, str], Sequence[str]]:
    """Return the resources of a template with their types, and its outputs."""
    template = load_stored(text, Limits())
    return {name: one.type for name, one in template.resources.items()}, list(template.outputs)


@dataclass
class Child:
    """A stack that reaches its requested state at once."""

    read: Read = as_template
    files: Mapping[str, str] = field(default_factory=dict)
    uuid: str | None = None
    arn: str | None = None
    template: str | None = None
    made_at: dict[str, float] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    output_names: Sequence[str] = ()

    def become(self, text: str) -> None:
        """Switch to the state that the text describes."""
        self.uuid, self.template = "11111111-2222-3333-4444-555555555555", text
        self.arn = f"arn:openstack:heat::p:stacks/s-a-abcdefghijkl/{self.uuid}"
        self.types, self.output_names = self.read(text)
        now = 1_000.0 + len(self.made_at)
        self.made_at = {name: self.made_at.get(name, now + i) for i, name in enumerate(self.types)}

    def sibling(self, id_: str) -> Sibling | None:
        """Return a sibling with any id."""
        return Sibling(id_, {}, {})

    def members(self) -> Sequence[Member]:
        """Return its resources, oldest first."""
        made = [
            Member(name, kind, "CREATE", "COMPLETE", f"id-{name}", f"id-{name}", self.made_at[name])
            for name, kind in self.types.items()
        ]
        return sorted(made, key=lambda member: member.created_at)

    def failed(self) -> Collection[str]:
        """Return no names: every member is healthy."""
        return ()

    def conditions(self) -> MemberConditions:
        """Return no names: every member is in service."""
        return MemberConditions()

    def names(self) -> Collection[str]:
        """Return the names of its resources."""
        return self.types.keys()

    def outputs(self) -> Mapping[str, Value]:
        """Return a value for each output."""
        return dict.fromkeys(self.output_names, "value")

    def file(self, name: str) -> str | None:
        """Return a file of the stack around it."""
        return self.files.get(name)

    def environment(self, parameters: Mapping[str, Value]) -> Environment:
        """Return an environment with these parameters."""
        return Environment(parameters)


class NestedContract(Declarations):
    """A type that describes its child step by step."""

    @pytest.fixture
    def child(self, sample: Sample) -> Child:
        """Return a substitute for the child; override it for types whose texts are not ordinary templates."""
        return Child(files=sample.files)

    @pytest.fixture
    def nested(self, kind: ResourceType, sample: Sample, request: pytest.FixtureRequest) -> Operated:
        """Return a resource that is not created yet."""
        for name in sample.fixtures:
            request.getfixturevalue(name)
        assert isinstance(kind, NestedType)
        return Operated(kind, sample.properties, sample)

    def test_it_is_made_step_by_step_and_comes_to_an_end(self, nested: Operated, child: Child) -> None:
        steps = run_to_end(nested, child, "CREATE")
        assert isinstance(steps[-1], Settled)
        assert all(orjson.loads(orjson.dumps(one.data)) == one.data for one in steps if one.data is not None)

    def test_the_first_step_asked_for_twice_is_the_same(self, nested: Operated, child: Child) -> None:
        assert _step(nested, child, 0) == _step(nested, child, 0)

    def test_an_update_of_nothing_asks_for_no_other_child(self, nested: Operated, child: Child) -> None:
        run_to_end(nested, child, "CREATE")
        before = set(child.types)
        run_to_end(nested, child, "UPDATE")
        assert set(child.types) == before

    def test_its_attributes_can_be_asked_for_at_any_time(self, nested: Operated, child: Child) -> None:
        kind = _kind(nested)
        names = [*kind.attributes, "show"]
        assert all(kind.has_attribute(name) for name in names)
        before = kind.child_attributes(nested.ctx, child, names)
        assert orjson.loads(orjson.dumps(before)) == before
        run_to_end(nested, child, "CREATE")
        after = kind.child_attributes(nested.ctx, child, names)
        assert set(after) <= set(names)
        assert orjson.loads(orjson.dumps(after)) == after

    def test_it_has_a_reference_once_there_is_a_child(self, nested: Operated, child: Child) -> None:
        kind = _kind(nested)
        kind.child_reference_id(nested.ctx, child)
        run_to_end(nested, child, "CREATE")
        assert isinstance(kind.child_reference_id(nested.ctx, child), str)


def run_to_end(nested: Operated, child: Child, action: str) -> list[NestedStep]:
    """Follow a type's steps to the end of an operation; return them."""
    nested.ctx = replace(nested.ctx, action=action)
    steps: list[NestedStep] = []
    while not steps or not isinstance(steps[-1], Settled):
        step = _step(nested, child, len(steps))
        match step:
            case SetChild(child=desired, data=data):
                child.become(desired.text)
                _keep(nested, data)
            case Pause(seconds=seconds, data=data):
                assert seconds >= 0
                _keep(nested, data)
            case Settled(data=data) if data is not None:
                _keep(nested, data)
        steps.append(step)
        assert len(steps) < MAX_STEPS, "it does not settle"
    return steps


def _step(nested: Operated, child: Child, turn: int) -> NestedStep:
    return _kind(nested).step(nested.ctx, nested.ctx.properties, child, turn)


def _keep(nested: Operated, data: JsonMapping) -> None:
    nested.ctx = replace(nested.ctx, data=dict(data))


def _kind(nested: Operated) -> NestedType:
    assert isinstance(nested.kind, NestedType)
    return nested.kind
