"""What a resource type is: the plugin API. Start here to write a type.

A type declares its properties and attributes and has four verbs: `create`, `update` and `delete` ask and
return at once, `observe` only looks. "Not yet" is an observation, never a wait. Any verb may run twice:
`create` sends `ctx.token`, `find` looks for what an earlier try may have made, `delete` accepts "already
gone". Types register under the entry point group `orchestrator.resource_types`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal, Protocol

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.clients.region_catalog import Catalog
from orchestrator.resources.software_api import UNCONNECTED, SoftwareStore
from orchestrator.resources.stack_context import NOBODY, Grant, Peers, Place, StackUsers
from orchestrator.schema.properties import Property, PropertyFault, convert
from orchestrator.schema.translation import Finder, Rule, translate
from orchestrator.template.definition import ResourceDefinition
from orchestrator.template.environment import Environment

__all__ = [
    "NOTHING_TYPE",
    "Around",
    "Attribute",
    "Change",
    "Context",
    "Created",
    "Fault",
    "Grant",
    "Observation",
    "Property",
    "Resize",
    "ResourceType",
    "Signalled",
    "Value",
    "wait",
]

Value = Any  # what JSON can say
NOWHERE: Final = Catalog()
CALL_SECONDS: Final = 20.0
NOTHING_TYPE: Final = "OS::Heat::None"  # what it is put in the place of stays as it is

Change = Literal["keep", "update", "replace"]

_NEVER = object()  # is no value


@dataclass(frozen=True, slots=True)
class Attribute:
    """An output of a type; `secret` values are encrypted at rest and masked in answers, events and logs."""

    doc: str
    type: str = "any"
    secret: bool = False


class Around(Protocol):
    """The stack around a resource, as it is wanted now; read when asked for."""

    def file(self, name: str) -> str | None:
        """Return one of its files, None when there is none of that name."""

    def files(self) -> Mapping[str, str]:
        """Return all of them by name."""

    def environment(self, parameters: Mapping[str, Value]) -> Environment:
        """Return the environment of a stack nested in the resource: what is inherited, and these values."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a verb may know besides its properties."""

    name: str  # the logical name
    physical_name: str
    token: str  # the request token: the same for every try of one operation
    action: str  # the resource's action: CREATE, UPDATE, DELETE …; CHECK when nothing is going on
    elapsed_seconds: float = 0.0  # since the open operation started, by the database's clock
    properties: Mapping[str, Value] = field(default_factory=dict)  # resolved; when deleting, as built with
    data: Mapping[str, Value] = field(default_factory=dict)  # what `create` or `update` asked to keep
    metadata: Mapping[str, Value] = field(default_factory=dict)  # as it is now
    deadline_seconds: float = CALL_SECONDS  # for one call; less than the lease
    stack_timeout_seconds: float = 3600.0
    update_policy: Mapping[str, Value] = field(default_factory=dict)  # of a resource that is a stack
    secret: bool = False  # whether anything secret went into the properties
    software: SoftwareStore = UNCONNECTED  # configs and deployments
    project_id: str = ""
    catalog: Catalog = NOWHERE  # where the project finds what others serve
    cloud: Cloud | None = None  # the project's cloud, as who is acted for calls it; None without Keystone
    around: Around | None = None  # None where nothing of the stack is known any more
    place: Place = field(default_factory=Place)
    peers: Peers = NOBODY  # for types with `is_claimed`
    users: StackUsers | None = None  # the same; None where stacks have no users at Keystone


@dataclass(frozen=True, slots=True)
class Created:
    """What `create` asked for: its physical id, and data to keep (encrypted when `secret`).

    `access` is given before the resource is written, and taken back when the resource goes.
    """

    physical_id: str
    data: Mapping[str, Value] = field(default_factory=dict)
    secret: bool = False
    access: Grant | None = None  # for types with `is_claimed`


@dataclass(frozen=True, slots=True)
class Observation:
    """What is there now.

    `ready=False` says look again in `retry_after` seconds (None: only when told to). `error` says the thing
    itself went wrong: with `replaceable` it is removed and made again, up to `action_retry_limit` times;
    otherwise it is final.
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
    properties: Mapping[str, Value] | None = None  # as they really are, as far as the provider tells


@dataclass(frozen=True, slots=True)
class Resize:
    """A group of the same stack is to be resized: which, by its reference id, and what is asked of it."""

    group: str
    asked: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Signalled:
    """What a signal did, and data or metadata to keep instead of what was kept.

    `reason` is told as `Signal: …`; without one, what came is told.
    """

    reason: str = ""
    data: Mapping[str, Value] | None = None
    metadata: Mapping[str, Value] | None = None
    resize: Resize | None = None


def wait(ctx: Context, seconds: float) -> Observation | None:
    """Return "not ready yet" until `seconds` have passed since the operation began, None from then on.

    Negative seconds never pass: such a thing is looked at again only when something else asks for it.
    """
    if seconds < 0:
        return Observation(exists=True, ready=False, retry_after=None)
    left = seconds - ctx.elapsed_seconds
    return Observation(exists=True, ready=False, retry_after=left) if left > 0 else None


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with a resource's properties, found by a type's own rule."""

    message: str
    property: str = ""  # the property to blame, "" for the whole
    alone: bool = False  # the message is told by itself, without its place


class ResourceType:
    """One type of resource. Subclass it, fill in the class variables, write the verbs."""

    name: ClassVar[str]
    doc: ClassVar[str] = ""
    properties: ClassVar[Mapping[str, Property]] = {}
    attributes: ClassVar[Mapping[str, Attribute]] = {}
    update_policy: ClassVar[Mapping[str, Property]] = {}  # what a definition's update_policy may hold
    translation: ClassVar[tuple[Rule, ...]] = ()  # done to given properties before they are converted
    calls_out: ClassVar[bool] = True  # False: its verbs touch nothing but our own row
    flight_seconds: ClassVar[float] = 30.0  # how long after its deadline a lost create may still land
    any_properties: ClassVar[bool] = False  # accepts names that are not declared
    can_snapshot: ClassVar[bool] = False  # supports the deletion policy Snapshot
    preemptible: ClassVar[frozenset[str]] = frozenset()  # operations that a newer template need not wait for
    adjustable: ClassVar[frozenset[str]] = frozenset()  # operations that a newer template changes on the way
    signals_always: ClassVar[bool] = False  # takes signals while the stack is suspended or deleted, too
    publishes: ClassVar[bool] = False  # its metadata is for a machine: shown as it is, with `published`
    claimed_first: ClassVar[bool] = False  # its verbs use `ctx.peers` or give access
    always_visited: ClassVar[bool] = False  # by every update, also when nothing it is made from changed
    open_metadata: ClassVar[bool] = False  # what signals put there is shown, whatever else is secret
    hidden: ClassVar[bool] = False
    support_status: ClassVar[str] = "SUPPORTED"
    support_message: ClassVar[str | None] = None  # what to use instead, for one
    support_version: ClassVar[str | None] = None

    def read_properties(
        self,
        given: Mapping[str, Value],
        *,
        path: str = "",
        unknown: object = _NEVER,
        resolve: Finder | None = None,
    ) -> tuple[dict[str, Value], list[PropertyFault]]:
        """Return given properties, functions evaluated, as the verbs see them, and everything that is wrong.

        They are translated, then converted. `unknown` stands for values not known yet, `resolve` turns names
        into ids (see `translation.Resolve`), and places are named under `path`.
        """
        values, wrong = translate(self.translation, given, path=path, resolve=resolve, unknown=unknown)
        seen, faults = convert(
            self.properties, values, path=path, unknown=unknown, any_properties=self.any_properties
        )
        return seen, wrong + faults

    def read_update_policy(
        self, given: Mapping[str, Value], *, path: str = "", unknown: object = _NEVER
    ) -> tuple[dict[str, Value], list[PropertyFault]]:
        """Return a given update policy with its defaults, and everything that is wrong with it."""
        return convert(
            self.update_policy, given, path=path, unknown=unknown, any_properties=self.any_properties
        )

    def implicit_requires(
        self, definition: ResourceDefinition, resources: Mapping[str, ResourceDefinition]
    ) -> Iterable[str]:
        """Return the names of resources of the same template that this one needs without saying so.

        Values are not known yet: look at the snippets as written.
        """
        return ()

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """Return what is wrong beyond the schema; values not known yet are absent."""
        return ()

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
    ) -> Sequence[Fault]:
        """Return what is wrong with the resource of that name among the others of its template; values not
        known yet are absent.
        """
        return ()

    def inquire(self, ctx: Context, props: Mapping[str, Value]) -> Sequence[Fault]:
        """Ask the provider what is wrong with properties in which nothing else is wrong.

        Before a stack is accepted, while a user waits: `ctx.deadline_seconds` counts. Values not known yet
        are absent, and nothing is changed.
        """
        return ()

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Ask for the thing and return at once."""
        raise NotImplementedError(self.name)

    def grants(self, ctx: Context, physical_id: str) -> Grant | None:
        """Return the access that what was made gives, where `Created` did not say: the same each time."""
        return None

    def find(self, ctx: Context, token: str) -> str | None:
        """Return the physical id of what an earlier try with this token made, None when there is nothing.

        A type that calls out and cannot look up leaves this as it is; its creates are then never repeated.
        """
        raise NotImplementedError(self.name)

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Look, and change nothing."""
        raise NotImplementedError(self.name)

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Ask for the change in place; only properties declared `update_allowed` come here."""
        raise NotImplementedError(self.name)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Ask for removal; already gone is fine. `observe` then says when it is."""
        raise NotImplementedError(self.name)

    def suspend(self, ctx: Context, physical_id: str) -> None:
        """Ask for a pause; `observe` then says when it has come. By default there is nothing to pause."""

    def resume(self, ctx: Context, physical_id: str) -> None:
        """Ask for the end of a pause; `observe` then says when it is over."""

    def check(self, ctx: Context, physical_id: str) -> None:
        """Ask the thing to look after itself; `observe` then says how it found itself.

        By default looking is all there is to a check.
        """

    def snapshot(self, ctx: Context, physical_id: str) -> Mapping[str, Value]:
        """Ask for a copy and return what is needed to find it again; `observe` then says when it is there.

        `ctx.token` is the same for every try, so that one copy is made.
        """
        return {}

    def delete_snapshot(self, ctx: Context, kept: Mapping[str, Value]) -> None:
        """Ask for the removal of the copy that `snapshot` told of; already gone is fine.

        `kept` is empty when its answer was lost: `ctx.token` then says which copy it is, if there is one.
        """

    def restored(self, properties: Mapping[str, Value], kept: Mapping[str, Value]) -> Mapping[str, Value]:
        """Return properties as written, changed so that the thing is made from what `snapshot` told of.

        They become part of the stack's template, which is shown: put no secret in them.
        """
        return properties

    def signal(self, ctx: Context, physical_id: str, details: Value) -> Signalled:
        """Take in what was sent. Runs while nobody else operates on the resource; may run twice.

        What is thrown ends the signal, with an event; after ProviderBusy it is tried again.
        """
        raise NotImplementedError(self.name)

    def must_replace(self, ctx: Context, physical_id: str, props: Mapping[str, Value]) -> bool:
        """Return whether a change to `props` that could be made in place takes another thing after all. May
        look, changes nothing.
        """
        return False

    def cancel(self, ctx: Context, physical_id: str) -> str:
        """Wait no longer for an operation in `preemptible` that is open; return what became of it.

        Asked when the stack has given up, or wants something else of the thing. Once it is answered the
        operation has failed.
        """
        raise NotImplementedError(self.name)

    def published(self, ctx: Context, physical_id: str) -> Mapping[str, Value]:
        """Return what is shown with the resource's metadata, of a type that `publishes`."""
        return {}

    def survives_failure(self, ctx: Context, physical_id: str) -> bool:
        """Return whether a resource that has failed is fine by now and need not be replaced
        (docs/internals/engine-semantics.md §6). May look, changes nothing.
        """
        return False

    def change(
        self,
        before: Mapping[str, Value],
        after: Mapping[str, Value],
        changed: frozenset[str],
    ) -> Change:
        """Return what turning the properties `before` into `after` takes; `changed` are those that differ."""
        if not changed:
            return "keep"
        fixed = any(
            name not in self.properties or not self.properties[name].update_allowed for name in changed
        )
        return "replace" if fixed else "update"

    def has_attribute(self, name: str) -> bool:
        """Whether `get_attr` may ask for `name`; every type has `show`."""
        return name in self.attributes or name == "show"

    @property
    def can_check(self) -> bool:
        """Whether there is anything to look at: what lives in our own row is there."""
        return self.calls_out

    @property
    def checks_itself(self) -> bool:
        """Whether a check asks anything of a provider besides looking."""
        return type(self).check is not ResourceType.check

    @property
    def can_pause(self) -> bool:
        """Whether suspending and resuming ask anything of a provider."""
        return type(self).suspend is not ResourceType.suspend

    @property
    def can_cancel(self) -> bool:
        """Whether an open operation can be given up."""
        return type(self).cancel is not ResourceType.cancel

    @property
    def can_copy(self) -> bool:
        """Whether a snapshot asks anything of a provider."""
        return type(self).snapshot is not ResourceType.snapshot

    @property
    def takes_signals(self) -> bool:
        """Whether it has a `signal`."""
        return type(self).signal is not ResourceType.signal

    @property
    def is_claimed(self) -> bool:
        """Whether a visit takes the resource before it looks: others are called, or may write its row."""
        return self.calls_out or self.takes_signals or self.claimed_first

    @property
    def can_find(self) -> bool:
        """Whether a create whose outcome is unknown can be looked up."""
        return not self.calls_out or type(self).find is not ResourceType.find
