"""A group's child without an engine: each requested change is applied at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from orchestrator.resources.base import Context, read_update_policy
from orchestrator.resources.groups.adjustments import Adjustment
from orchestrator.resources.groups.capacity import utc_now
from orchestrator.resources.groups.group_type import GroupType
from orchestrator.resources.groups.scaling_group import ScalingGroup
from orchestrator.resources.nested_type import (
    Member,
    MemberConditions,
    NestedStep,
    Pause,
    SetChild,
    Settled,
    Sibling,
)
from orchestrator.template.environment import Environment
from orchestrator.template.group_template import PARAMETER, Members


@dataclass
class Child:
    """The child: `made` has the definition of each member, the oldest first."""

    template: str | None = None
    made: dict[str, Any] = field(default_factory=dict)
    sick: set[str] = field(default_factory=set)
    stuck: set[str] = field(default_factory=set)
    unready: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)  # without a row
    neighbours: dict[str, Sibling] = field(default_factory=dict)
    read: int = 0  # how often all members were read

    @property
    def uuid(self) -> str | None:
        return None if self.template is None else "child-id"

    @property
    def arn(self) -> str | None:
        return None

    def sibling(self, id_: str) -> Sibling | None:
        return self.neighbours.get(id_)

    def file(self, name: str) -> str | None:
        raise AssertionError(name)

    def environment(self, parameters: Mapping[str, Any]) -> Environment:
        return Environment(parameters)

    def members(self) -> list[Member]:
        self.read += 1
        return [
            Member(
                name,
                body["type"],
                "CREATE",
                "FAILED" if name in self.sick else "COMPLETE",
                f"id-{name}",
                None,
                float(place),
                {"ip": f"10.0.0.{place}", "nets": {"a": [name]}, "PublicIp": f"1.1.1.{place}"},
            )
            for place, (name, body) in enumerate(self.made.items())
        ]

    def failed(self) -> set[str]:
        return self.sick

    def conditions(self) -> MemberConditions:
        total = len(self.made) - len(self.missing)
        return MemberConditions(self.stuck, self.sick - self.stuck, (), self.unready, total)

    def names(self) -> list[str]:
        return [name for name in self.made if name not in self.missing]

    def outputs(self) -> dict[str, Any]:
        return {}

    def bring(self, step: SetChild) -> None:
        self.template = step.child.text
        members = Members.parse(step.child.text)
        held = step.child.environment.parameters[PARAMETER]
        expected = {}
        for part in members.parts:
            for name in members.names(part.members):
                expected[name] = {"type": part.type, "digest": part.digest, **held[part.digest]}
        self.sick = {name for name in self.sick if self.made.get(name) == expected.get(name)}
        kept = {name: expected[name] for name in self.made if name in expected}
        self.made = {**kept, **{name: expected[name] for name in expected if name not in kept}}


@dataclass
class Operated:
    """A group and its child."""

    kind: GroupType
    properties: dict[str, Any]
    update_policy: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    timeout: float = 3600.0
    child: Child = field(default_factory=Child)
    data: dict[str, Any] = field(default_factory=dict)
    way: list[list[str]] = field(default_factory=list)  # the names after each step of the last operation
    pauses: list[float] = field(default_factory=list)
    steps: int = 0
    rejections: list[str] = field(default_factory=list)  # of the last adjustments

    def context(self, action: str = "CHECK") -> Context:
        policy, faults = read_update_policy(self.kind, self.update_policy)
        assert faults == []
        return Context(
            name="g",
            physical_name="s-g-abc",
            token="token-1",
            action=action,
            properties=self.given,
            data=self.data,
            metadata=self.metadata,
            stack_timeout_seconds=self.timeout,
            update_policy=policy,
        )

    @property
    def given(self) -> dict[str, Any]:
        supplied, faults = self.kind.read_properties(self.properties)
        assert faults == []
        assert list(self.kind.validate(supplied, self.timeout)) == []
        return supplied

    def begin(self, **properties: Any) -> None:
        """Create or update it, the first step."""
        self.properties |= properties
        self.way, self.pauses, self.turn = [], [], -1
        self.action = "CREATE" if self.child.template is None else "UPDATE"
        self.go_on()

    def go_on(self) -> bool:
        """Take the next step; False when nothing is left to do."""
        self.turn += 1
        ctx = self.context(self.action)
        step = self.kind.step(ctx, ctx.properties, self.child, self.turn)
        again = self.kind.step(ctx, ctx.properties, self.child, self.turn)
        assert timeless(step) == timeless(again), "asked twice, told alike"
        match step:
            case Settled(data=data, metadata=metadata):
                self.data = self.data if data is None else dict(data)
                self.metadata = self.metadata if metadata is None else dict(metadata)
                return False
            case Pause(seconds=seconds, data=data):
                self.pauses.append(seconds)
                self.data = dict(data)
            case SetChild(data=data):
                self.child.bring(step)
                self.data = dict(data)
                self.way.append(self.names)
        return True

    def apply(self, **properties: Any) -> list[str]:
        """Create or update it to the end; return its members."""
        self.begin(**properties)
        for _ in range(60):
            if not self.go_on():
                return self.names
        raise AssertionError("it does not end")

    def scale(self, amount: float = 0, later: float = 0, **options: Any) -> bool:
        """Scale it as a signal does; whether anything was done."""
        assert isinstance(self.kind, ScalingGroup)
        ctx = self.context()
        now = utc_now() + timedelta(seconds=later)
        scaled = self.kind.scaled(ctx, ctx.properties, self.child, [Adjustment(amount, **options)], now)
        self.rejections = [rejection.reason for rejection in scaled.rejections if rejection is not None]
        if scaled.step is None:
            return False
        self.child.bring(scaled.step)
        self.data = dict(scaled.step.data)
        return True

    @property
    def names(self) -> list[str]:
        return list(self.child.made)

    def values(self, name: str) -> list[Any]:
        """Return a property of each member."""
        return [body["properties"][name] for body in self.child.made.values()]

    def attribute(self, name: str) -> Any:
        ctx = self.context()
        return self.kind.child_attributes(ctx, self.child, [name]).get(name)

    def again(self) -> Operated:
        """Return the same with its own memory."""
        return replace(self, child=replace(self.child, made=dict(self.child.made)), data=dict(self.data))


def timeless(step: NestedStep) -> NestedStep:
    """Return a step without its time."""
    return replace(step, metadata=None) if isinstance(step, Settled) else step


def faults(kind, **properties):
    supplied, invalid = kind.read_properties(properties)
    return [fault.message for fault in invalid] + [fault.message for fault in kind.validate(supplied, 60)]
