"""The plugin API: resource types. Start here to write a type.

A type declares its properties and attributes and implements verbs. `create`, `update` and `delete` send a
request and return at once; `observe` only reads. "Not yet" is an observation, never a wait. Any verb may run
twice: `create` sends `ctx.token`, `find` looks up the result of an earlier attempt, `delete` accepts "already
gone". Types register under the entry point group `orchestrator.resource_types`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.clients.region_catalog import Catalog
from orchestrator.deprecation import (
    RenamedAttribute,
    adopt_renamed_methods,
    renamed_fields,
    renamed_names,
)
from orchestrator.resources.capabilities import derived, implements
from orchestrator.resources.software_api import UNCONNECTED, SoftwareStore
from orchestrator.resources.stack_context import (
    NO_REQUIRED_RESOURCES,
    Grant,
    RequiredResources,
    StackContext,
    StackLocation,
    StackUsers,
)
from orchestrator.schema.properties import Property, PropertyFault, convert
from orchestrator.schema.translation import Finder, Rule, translate
from orchestrator.template.definition import ResourceDefinition

__all__ = [
    "NOTHING_TYPE",
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
    "StackContext",
    "Value",
    "wait",
]

Value = Any  # a JSON value
EMPTY_CATALOG: Final = Catalog()
CALL_SECONDS: Final = 20.0
NOTHING_TYPE: Final = "OS::Heat::None"  # a resource that this type shadows is left unchanged

Change = Literal["keep", "update", "replace"]

RENAMED_HOOKS: Final = {
    "survives_failure": "is_healthy_after_failure",
    "checks_itself": "has_provider_check",
    "is_claimed": "needs_lease",
}

_NEVER = object()  # equals no value


@dataclass(frozen=True, slots=True)
class Attribute:
    """An output of a type; `secret` values are encrypted at rest and masked in responses, events and logs."""

    doc: str
    type: str = "any"
    secret: bool = False


@renamed_fields(around="stack_context", place="location", peers="required_resources")
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


@dataclass(frozen=True, slots=True)
class Created:
    """The result of `create`: the physical id, and data to store (encrypted when `secret`).

    `access` is granted before the resource's row is written, and revoked when the resource is deleted.
    """

    physical_id: str
    data: Mapping[str, Value] = field(default_factory=dict)
    secret: bool = False
    access: Grant | None = None  # for types with `needs_lease`


@dataclass(frozen=True, slots=True)
class Observation:
    """The observed state.

    `ready=False` schedules another observation after `retry_after` seconds (None: only after a signal).
    `error` reports that the object itself failed: with `replaceable` it is deleted and created again, up to
    `action_retry_limit` times; otherwise the failure is final.
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


@renamed_fields(asked="request")
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


class ResourceType:
    """A type of resource. Subclass it, set the class variables, implement the verbs."""

    name: ClassVar[str]
    doc: ClassVar[str] = ""
    properties: ClassVar[Mapping[str, Property]] = {}
    attributes: ClassVar[Mapping[str, Attribute]] = {}
    update_policy: ClassVar[Mapping[str, Property]] = {}  # schema of a definition's update_policy
    translation: ClassVar[tuple[Rule, ...]] = ()  # applied to given properties before conversion
    calls_out: ClassVar[bool] = True  # False: a local type, whose verbs touch nothing but our own row
    service: ClassVar[str] = ""  # types of a service share a circuit breaker; "": the name of the type
    flight_seconds: ClassVar[float] = 30.0  # after its deadline, how long a lost create may still arrive
    ready_timeout_seconds: ClassVar[float | None] = None  # of a create or update; None: the stack's timeout
    any_properties: ClassVar[bool] = False  # accepts undeclared properties
    can_snapshot: ClassVar[bool] = False  # supports the deletion policy Snapshot
    preemptible: ClassVar[frozenset[str]] = frozenset()  # operations that a newer template may interrupt
    adjustable: ClassVar[frozenset[str]] = frozenset()  # operations that a newer template may modify
    signals_always: ClassVar[bool] = False  # accepts signals also while the stack is suspended or deleted
    publishes: ClassVar[bool] = False  # metadata is for an agent: shown unmasked, with `published`
    claimed_first: ClassVar[bool] = False  # the verbs use `ctx.required_resources` or grant access
    always_visited: ClassVar[bool] = False  # visited by every update, even if its inputs are unchanged
    open_metadata: ClassVar[bool] = False  # metadata set by signals is never masked
    hidden: ClassVar[bool] = False
    support_status: ClassVar[str] = "SUPPORTED"
    support_message: ClassVar[str | None] = None  # for example the type to use instead
    support_version: ClassVar[str | None] = None

    # Capabilities that the engine reads. They follow from the declarations and the verbs of a type.
    can_check: ClassVar[bool] = derived(lambda class_: class_.calls_out)  # a check observes the provider
    can_pause: ClassVar[bool] = implements("suspend")  # suspend and resume call the provider
    can_cancel: ClassVar[bool] = implements("cancel")  # an open operation can be aborted
    can_copy: ClassVar[bool] = implements("snapshot")  # a snapshot calls the provider
    takes_signals: ClassVar[bool] = implements("signal")
    has_provider_check: ClassVar[bool] = implements("check")  # a check requests more than an observation
    judges_health: ClassVar[bool] = implements("is_healthy_after_failure")  # otherwise it is observed
    can_find: ClassVar[bool] = implements(  # a create with an unknown outcome can be looked up
        "find", or_if=lambda class_: not class_.calls_out
    )
    needs_lease: ClassVar[bool] = derived(  # a visit must lease the resource before it reads the row
        lambda class_: class_.calls_out or class_.takes_signals or class_.claimed_first
    )

    def __init_subclass__(cls, **options: Any) -> None:
        """Accept hooks under their deprecated names."""
        super().__init_subclass__(**options)
        adopt_renamed_methods(cls, RENAMED_HOOKS)

    def read_properties(
        self,
        raw_properties: Mapping[str, Value],
        *,
        path: str = "",
        unknown: object = _NEVER,
        resolve: Finder | None = None,
    ) -> tuple[dict[str, Value], list[PropertyFault]]:
        """Return evaluated properties as the verbs receive them, and all faults in them.

        Properties are translated, then converted. `unknown` marks values that are not known yet, `resolve`
        turns names into ids (see `translation.Resolve`), and fault locations begin with `path`.
        """
        values, translation_faults = translate(
            self.translation, raw_properties, path=path, resolve=resolve, unknown=unknown
        )
        converted, faults = convert(
            self.properties, values, path=path, unknown=unknown, any_properties=self.any_properties
        )
        return converted, translation_faults + faults

    def implicit_requires(
        self, definition: ResourceDefinition, resources: Mapping[str, ResourceDefinition]
    ) -> Iterable[str]:
        """Return the names of required resources of the same template that the definition does not reference.

        Values are not known yet: inspect the definitions as written.
        """
        return ()

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """Return faults that the schema cannot express; values that are not known yet are absent."""
        return ()

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
    ) -> Sequence[Fault]:
        """Return faults of the resource `name` in relation to the other resources of its template; values
        that are not known yet are absent.
        """
        return ()

    def inquire(self, ctx: Context, props: Mapping[str, Value]) -> Sequence[Fault]:
        """Return faults that only the provider can report, in otherwise valid properties.

        Called before a stack is accepted, while a user waits: respect `ctx.deadline_seconds`. Values that are
        not known yet are absent. Must not change anything.
        """
        return ()

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Request the object and return at once."""
        raise NotImplementedError(self.name)

    def grants(self, ctx: Context, physical_id: str) -> Grant | None:
        """Return the access that the resource grants if `Created` did not name it; always the same."""
        return None

    def find(self, ctx: Context, token: str) -> str | None:
        """Return the physical id of the object that an earlier attempt with this token created, or None.

        An external type that cannot look up objects does not override `find`; its creates are then never
        repeated.
        """
        raise NotImplementedError(self.name)

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the state of the object; change nothing."""
        raise NotImplementedError(self.name)

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Request an update in place; `changed` has only properties declared `update_allowed`."""
        raise NotImplementedError(self.name)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Request deletion; an object that is already gone is no error. `observe` reports the end."""
        raise NotImplementedError(self.name)

    def suspend(self, ctx: Context, physical_id: str) -> None:
        """Request suspension; `observe` reports its end. The default has nothing to suspend."""

    def resume(self, ctx: Context, physical_id: str) -> None:
        """Request the end of a suspension; `observe` reports when it is over."""

    def check(self, ctx: Context, physical_id: str) -> None:
        """Request that the object checks itself; `observe` reports the result. The default only observes."""

    def snapshot(self, ctx: Context, physical_id: str) -> Mapping[str, Value]:
        """Request a snapshot and return the data needed to find it again; `observe` reports its end.

        `ctx.token` is the same for every attempt, so that only one snapshot is created.
        """
        return {}

    def delete_snapshot(self, ctx: Context, snapshot_data: Mapping[str, Value]) -> None:
        """Request the deletion of a snapshot; a snapshot that is already gone is no error.

        `snapshot_data` is the result of `snapshot`, or empty if that result was lost: `ctx.token` then
        identifies the snapshot, if it exists.
        """

    def restored(self, properties: Mapping[str, Value], snapshot: Mapping[str, Value]) -> Mapping[str, Value]:
        """Return properties as written in a template, changed to create the object from a snapshot.

        `snapshot` is the result of the verb `snapshot`. The properties become part of the stack's template,
        which is public: they must not contain secrets.
        """
        return properties

    def signal(self, ctx: Context, physical_id: str, details: Value) -> Signalled:
        """Process a signal. No other operation runs on the resource; may run twice.

        An exception ends the signal, with an event; after ProviderBusy the signal is tried again.
        """
        raise NotImplementedError(self.name)

    def must_replace(self, ctx: Context, physical_id: str, props: Mapping[str, Value]) -> bool:
        """Return whether an update in place to `props` is impossible after all. May read, changes nothing."""
        return False

    def cancel(self, ctx: Context, physical_id: str) -> str:
        """Abort an open operation listed in `preemptible`; return the reason for the event.

        Called when the stack has failed, or has a newer desired state for the resource. The operation has
        failed as soon as `cancel` returns.
        """
        raise NotImplementedError(self.name)

    def published(self, ctx: Context, physical_id: str) -> Mapping[str, Value]:
        """Return the data shown with the resource's metadata; only for types that set `publishes`."""
        return {}

    def is_healthy_after_failure(self, ctx: Context, physical_id: str) -> bool:
        """Return whether a failed resource has recovered; it is observed instead without this verb."""
        return False

    def change(
        self, before: Mapping[str, Value], after: Mapping[str, Value], changed: frozenset[str]
    ) -> Change:
        """Return the step from properties `before` to `after`; `changed` names those that differ."""
        if not changed:
            return "keep"
        fixed = any(
            name not in self.properties or not self.properties[name].update_allowed for name in changed
        )
        return "replace" if fixed else "update"

    def has_attribute(self, name: str) -> bool:
        """Return whether `get_attr` may request `name`; every type has `show`."""
        return name in self.attributes or name == "show"


for _old, _new in RENAMED_HOOKS.items():
    setattr(ResourceType, _old, RenamedAttribute(_old, _new))


def read_update_policy(
    resource_type: ResourceType, raw: Mapping[str, Value], *, path: str = "", unknown: object = _NEVER
) -> tuple[dict[str, Value], list[PropertyFault]]:
    """Return a definition's update policy with its defaults, and all faults in it."""
    schema, any_properties = resource_type.update_policy, resource_type.any_properties
    return convert(schema, raw, path=path, unknown=unknown, any_properties=any_properties)


if not TYPE_CHECKING:
    __getattr__ = renamed_names(__name__, {"Around": "StackContext", "NOWHERE": "EMPTY_CATALOG"})
