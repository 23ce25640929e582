"""Inputs and results of the verbs of a resource type."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.clients.provider_calls import ProviderCalls
from orchestrator.clients.region_catalog import Catalog
from orchestrator.resources.software_api import UNCONNECTED, SoftwareStore
from orchestrator.resources.stack_context import (
    NO_REQUIRED_RESOURCES,
    Grant,
    RequiredResources,
    StackContext,
    StackLocation,
    StackUsers,
)

Value = Any  # a JSON value
EMPTY_CATALOG: Final = Catalog()
CALL_SECONDS: Final = 20.0
NOTHING_TYPE: Final = "OS::Heat::None"  # a resource that this type shadows is left unchanged

Change = Literal["keep", "update", "replace"]
NameRule = Literal["delete", "rename", "take over", "refuse"]


@dataclass(frozen=True, slots=True)
class Unique:
    """Names that a service gives to one object at a time, and what becomes of the holder of a name before its
    replacement is created with the same name.

    `delete`: it is deleted. `rename`: it gets another name (the verb `rename`). `take over`: nothing, the
    create takes over the object. `refuse`: nothing, the service refuses the replacement.
    """

    keys: tuple[tuple[str, ...], ...]  # properties; the first is the name, the others qualify it
    rule: NameRule
    searched: bool = False  # whether `find` searches a given name, without a token

    def is_shared(self, before: Mapping[str, Value], after: Mapping[str, Value]) -> bool:
        """Return whether objects with these properties have a given name in common."""
        return any(
            before.get(key[0]) is not None and all(before.get(one) == after.get(one) for one in key)
            for key in self.keys
        )


@dataclass(frozen=True, slots=True)
class Attribute:
    """An output of a type; `secret` values are encrypted at rest and masked in responses, events and logs.

    `live` values are not recorded by an observation: `read_attributes` returns them when they are read. Those
    that give access to an object are for callers who may update the stack (`gives_access`).
    """

    doc: str
    type: str = "any"
    secret: bool = False
    live: bool = False
    gives_access: bool = False


@dataclass(frozen=True, slots=True)
class Context:
    """The input of a verb besides its properties."""

    name: str  # the logical name
    physical_name: str
    token: str  # the request token: the same for every attempt of one operation
    action: str  # the resource's action: CREATE, UPDATE, DELETE …; CHECK when no operation is open
    elapsed_seconds: float = 0.0  # since the open operation started, by the database's clock
    properties: Mapping[str, Value] = field(default_factory=dict)  # resolved; for DELETE, as recorded
    data: Mapping[str, Value] = field(default_factory=dict)  # stored by `create` or `update`
    metadata: Mapping[str, Value] = field(default_factory=dict)  # current value
    deadline_seconds: float = CALL_SECONDS  # for one call; less than the lease
    stack_timeout_seconds: float = 3600.0
    update_policy: Mapping[str, Value] = field(default_factory=dict)  # of a nested type
    secret: bool = False  # whether a property was computed from a secret
    software: SoftwareStore = UNCONNECTED  # configs and deployments
    project_id: str = ""
    catalog: Catalog = EMPTY_CATALOG  # endpoints in other regions that the project may call
    cloud: Cloud | None = None  # the project's cloud, called as the stack's user; None without Keystone
    stack_context: StackContext | None = None  # None when the stack's revision is no longer stored
    location: StackLocation = field(default_factory=StackLocation)
    required_resources: RequiredResources = NO_REQUIRED_RESOURCES  # for types with `needs_lease`
    users: StackUsers | None = None  # for types with `needs_lease`; None without stack users at Keystone
    step: str = ""  # of the open operation, started last
    used_attributes: frozenset[str] = frozenset()  # live attributes that the template uses
    # of a nested type: the keys that the template applies to an attribute, by attribute
    attribute_paths: Mapping[str, Collection[tuple[str | int, ...]]] = field(default_factory=dict)
    early_pending: bool = False  # dependents wait for the object to exist, or for its early attributes
    listed: Mapping[str, Value] | None = None  # in a round of the observation: objects in lists, by id
    unchanged: bool = False  # of a nested type: only its child stack has changed, or is to be repaired
    copy_first: bool = False  # DELETE: the deletion policy Snapshot demands a copy before the delete
    calls: ProviderCalls = field(default_factory=ProviderCalls, compare=False)  # for clients of services


@dataclass(frozen=True, slots=True)
class Created:
    """The result of `create`: the physical id, and data to store (encrypted when `secret`).

    `access` is granted before the resource's row is written, and revoked when the resource is deleted.
    `observation` of a `create` is the object as the provider's answer describes it: it replaces the first
    call of `observe`.
    """

    physical_id: str
    data: Mapping[str, Value] = field(default_factory=dict)
    secret: bool = False
    access: Grant | None = None  # for types with `needs_lease`
    observation: Observation | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """The observed state.

    `ready=False` schedules another observation after `retry_after` seconds (None: only after a signal).
    `error` reports that the object itself failed: with `replaceable` it is deleted and created again, up to
    `action_retry_limit` times; otherwise the failure is final.
    `step` names the next step of an unfinished operation: the verb `advance` carries it out.
    `busy`: the provider works on an object in error, which may end the error; or an object that takes back
    what it has released does not have it yet.
    """

    exists: bool
    ready: bool = True
    attributes: Mapping[str, Value] = field(default_factory=dict)
    reference_id: str | None = None  # None: the physical id
    retry_after: float | None = 5.0
    reason: str = ""
    error: str = ""
    error_kind: str = "ResourceInError"
    replaceable: bool = False
    properties: Mapping[str, Value] | None = None  # actual values, as far as the provider reports them
    step: str = ""  # next step of an operation that is not finished; implies `ready=False`
    released: bool = True  # whether a requested release is complete
    busy: bool = False  # with an error, or a reclaim: a task of the provider is in progress

    def __post_init__(self) -> None:
        """An operation with a further step is not finished."""
        if self.step:
            object.__setattr__(self, "ready", False)


@dataclass(frozen=True, slots=True)
class Resize:
    """A request to resize a group in the same stack; `group` is the group's reference id."""

    group: str
    request: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Signalled:
    """The result of a signal, with new data or metadata to store (None: unchanged).

    `reason` is reported as `Signal: …`; without a reason the signal's details are reported.
    """

    reason: str = ""
    data: Mapping[str, Value] | None = None
    metadata: Mapping[str, Value] | None = None
    resize: Resize | None = None


def wait(ctx: Context, seconds: float) -> Observation | None:
    """Return "not ready" until `seconds` have passed since the operation started, None from then on.

    Negative seconds never pass: the resource is observed again only when another event requires it.
    """
    if seconds < 0:
        return Observation(exists=True, ready=False, retry_after=None)
    remaining = seconds - ctx.elapsed_seconds
    return Observation(exists=True, ready=False, retry_after=remaining) if remaining > 0 else None


@dataclass(frozen=True, slots=True)
class Fault:
    """An error in a resource's properties, found by a rule of the type."""

    message: str
    property: str = ""  # the faulty property, "" for the whole resource
    alone: bool = False  # report the message without its path


def found_ids(found: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the physical ids in a result of `find`."""
    if found is None:
        return ()
    return (found,) if isinstance(found, str) else tuple(found)
