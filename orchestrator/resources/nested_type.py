"""What a nested type is: a resource type whose thing is a stack of its own, its *child*.

A nested type makes nothing and waits for nothing. It says, one step after the other, what its child is to be;
the engine brings the child there by tasks of the child's own, and comes back when the child has ended. How
the child is deleted, checked, suspended or copied is the same for all of them and no business of the type
(docs/internals/engine-semantics.md §13).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from orchestrator.resources.base import Context, Created, Observation, ResourceType, Value
from orchestrator.template.environment import Environment

__all__ = [
    "Beside",
    "Bring",
    "ChildTemplate",
    "ChildView",
    "Member",
    "Named",
    "NestedStep",
    "NestedType",
    "Pause",
    "Settled",
]


@dataclass(frozen=True, slots=True)
class ChildTemplate:
    """What a child is made from; `environment` has its parameters.

    The files of the stack around it come along by themselves.
    """

    url: str  # the name of the text among the files, or its address; "" for a text made by the type
    text: str
    environment: Environment
    timeout_mins: int | None = None  # None: the parent's


@dataclass(frozen=True, slots=True)
class Member:
    """A resource of the child as it is now."""

    name: str
    type: str
    action: str
    status: str
    physical_id: str | None
    reference_id: str | None
    created_at: float  # seconds since the epoch
    attributes: Mapping[str, Value] = field(default_factory=dict)  # as last observed
    unhealthy: bool = False

    @property
    def failed(self) -> bool:
        """Whether it counts as broken: to go first, and not to be counted on."""
        return self.status == "FAILED" or self.unhealthy


@dataclass(frozen=True, slots=True)
class Named:
    """A template named by its address, with values for its parameters."""

    url: str
    parameters: Mapping[str, Value]
    url_property: str  # the property that named it
    parameters_property: str  # the one that holds the values


@dataclass(frozen=True, slots=True)
class Beside:
    """A resource of the stack around a child, as it was made."""

    name: str
    properties: Mapping[str, Value]
    metadata: Mapping[str, Value]


class ChildView(Protocol):
    """The child as it is now, read when asked for."""

    @property
    def uuid(self) -> str | None:
        """Its id; None while there is no child."""

    @property
    def arn(self) -> str | None:
        """How it is called where an ARN is wanted."""

    @property
    def template(self) -> str | None:
        """The text that it was last asked to be, None while there is no child."""

    def beside(self, id_: str) -> Beside | None:
        """Return the resource of the stack around the child with this reference or physical id."""

    def members(self) -> Sequence[Member]:
        """Return its resources, oldest first, without what is to go. Reads all of them: ask when needed."""

    def failed(self) -> Collection[str]:
        """Return the names of those of its members that count as broken, reading no others."""

    def outputs(self) -> Mapping[str, Value]:
        """Return the values of its outputs; one that cannot be evaluated is None."""

    def file(self, name: str) -> str | None:
        """Return a file of the stack around it, None when there is none of that name."""

    def environment(self, parameters: Mapping[str, Value]) -> Environment:
        """Return the environment that a stack nested here has: what it inherits, and these parameters."""


@dataclass(frozen=True, slots=True)
class Bring:
    """Bring the child to this template, then ask for the next step."""

    child: ChildTemplate
    data: Mapping[str, Value] = field(default_factory=dict)  # kept, for the next step and for ever after
    keeps_files: bool = (
        False  # part of it is as before, and so may need files that have left the stack around
    )


@dataclass(frozen=True, slots=True)
class Pause:
    """Ask again in so many seconds."""

    seconds: float
    data: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Settled:
    """Nothing is left to do."""

    data: Mapping[str, Value] | None = None  # None: what was kept stays
    metadata: Mapping[str, Value] | None = None  # as signals leave it; None: it stays
    batched: bool = False  # the child got here in several steps


NestedStep = Bring | Pause | Settled


class NestedType(ResourceType):
    """A resource type whose thing is a stack."""

    calls_out = False
    secret_parameters: frozenset[str] = frozenset()  # names of the child's parameters to be hidden

    def step(self, ctx: Context, props: Mapping[str, Value], child: ChildView, turn: int) -> NestedStep:
        """Return what is to be done next.

        Asked when a CREATE or an UPDATE of the resource begins (`turn` 0; `ctx.action` says which) and again
        after each step before it has succeeded (`turn` 1, 2, …). May be asked twice for the same turn, and
        must then answer alike; a newer template begins at turn 0 whatever was going on. `ctx.data` is what
        the step before kept.
        """
        raise NotImplementedError(self.name)

    def template_of(self, props: Mapping[str, Value]) -> Named | None:
        """Return which template the child is to be made from, as far as known.

        For a type that names a template it does not make itself, so that it is looked into before a stack is
        accepted; values not known yet are absent.
        """
        return None

    def child_attributes(self, ctx: Context, child: ChildView, asked: Collection[str]) -> Mapping[str, Value]:
        """Return those of the attributes `asked` for that there are; by default they are the child's outputs.

        They are kept with the resource when it settles: `asked` are the names that the template around it
        uses.
        """
        outputs = child.outputs()
        return {name: outputs[name] for name in asked if name in outputs}

    def child_reference_id(self, ctx: Context, child: ChildView) -> str | None:
        """Return what `get_resource` gives, by default the child's ARN."""
        return child.arn

    @property
    def can_check(self) -> bool:
        """A child can be checked."""
        return True

    @property
    def can_pause(self) -> bool:
        """A child can be suspended."""
        return True

    @property
    def can_copy(self) -> bool:
        """A child can be copied."""
        return True

    # The engine deals with a child itself; nothing of a nested type is called with these.

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Is done by the engine."""
        raise NotImplementedError(self.name)

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Is done by the engine."""
        raise NotImplementedError(self.name)
