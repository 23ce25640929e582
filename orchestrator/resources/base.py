"""The plugin API: resource types. Start here to write a type.

A type declares its properties and attributes and implements verbs. `create`, `update` and `delete` send a
request and return at once; `observe` only reads. "Not yet" is an observation, never a wait. Any verb may run
twice: `create` sends `ctx.token`, `find` looks up the result of an earlier attempt, `delete` accepts "already
gone". Types register under the entry point group `orchestrator.resource_types`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Final

from orchestrator.resources.capabilities import derived, implements, names_of_live_attributes
from orchestrator.resources.stack_context import Grant, StackContext
from orchestrator.resources.verbs.optional import OptionalVerbs
from orchestrator.resources.verbs.values import (
    CALL_SECONDS,
    EMPTY_CATALOG,
    NOTHING_TYPE,
    Attribute,
    Change,
    Context,
    Created,
    Fault,
    Observation,
    Resize,
    Signalled,
    Unique,
    Value,
    wait,
)
from orchestrator.schema.properties import Property, PropertyFault, convert
from orchestrator.schema.translation import Finder, Rule, translate
from orchestrator.template.definition import ResourceDefinition

__all__ = [
    "CALL_SECONDS",
    "EMPTY_CATALOG",
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
    "Unique",
    "Value",
    "wait",
]

GIVEN_UP: Final = ("delete", "rename")  # rules by which an object gives up its name

_NEVER = object()  # equals no value


class ResourceType(OptionalVerbs):
    """A type of resource. Subclass it, set the class variables, implement the verbs."""

    name: ClassVar[str]
    doc: ClassVar[str] = ""
    properties: ClassVar[Mapping[str, Property]] = {}
    attributes: ClassVar[Mapping[str, Attribute]] = {}
    update_policy: ClassVar[Mapping[str, Property]] = {}  # schema of a definition's update_policy
    translation: ClassVar[tuple[Rule, ...]] = ()  # applied to given properties before conversion
    calls_out: ClassVar[bool] = True  # False: a local type, whose verbs touch nothing but our own row
    service: ClassVar[str] = ""  # types of a service share a circuit breaker; "": the name of the type
    endpoint_type: ClassVar[str] = ""  # service type in the catalog without which the type is unavailable
    flight_seconds: ClassVar[float] = 20.0  # after its deadline, how long a lost create may still arrive
    finds_by_token: ClassVar[bool] = True  # False: `find` also finds equal objects of other owners
    shares_objects: ClassVar[bool] = False  # incarnations of a resource with the same id are the same object
    unique: ClassVar[Unique | None] = None  # names that a replacement cannot share with the replaced object
    delete_retry_seconds: ClassVar[float] = 60.0  # between deletes of an object in error; 0: they fail
    delete_stalled_seconds: ClassVar[float] = 0.0  # after which a delete without an end is repeated; 0: never
    physical_name_limit: ClassVar[int | None] = None  # longest physical name, if the provider has a limit
    early_attributes: ClassVar[frozenset[str]] = frozenset()  # known before the resource is ready
    needs_ready: ClassVar[bool | frozenset[str]] = False  # waits for ready requirements (of these properties)
    lists: ClassVar[str] = ""  # types of a service with the same word share a list of their objects
    live_show: ClassVar[bool] = False  # the attribute `show` is live
    ready_timeout_seconds: ClassVar[float | None] = None  # of a create or update; None: the stack's timeout
    any_properties: ClassVar[bool] = False  # accepts undeclared properties
    can_snapshot: ClassVar[bool] = False  # supports the deletion policy Snapshot
    preemptible: ClassVar[frozenset[str]] = frozenset()  # operations that a newer template may interrupt
    adjustable: ClassVar[frozenset[str]] = frozenset()  # operations that a newer template may modify
    signals_always: ClassVar[bool] = False  # accepts signals also while the stack is suspended or deleted
    publishes: ClassVar[bool] = False  # metadata is for an agent: shown unmasked, with `published`
    claimed_first: ClassVar[bool] = False  # the verbs use `ctx.required_resources` or grant access
    stateful: ClassVar[bool] = False  # holds data: replaced automatically only after an approval
    stateful_in_groups: ClassVar[bool] = True  # False: members of a group are replaceable
    undone_in_place: ClassVar[bool] = False  # a service may undo it when its requirements change in place
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
    can_recover: ClassVar[bool] = implements("recover")  # an object in error can be repaired
    deletes_first: ClassVar[bool] = derived(  # a replaced object, before a replacement of the same name
        lambda class_: class_.unique is not None and class_.unique.rule == "delete"
    )
    can_release: ClassVar[bool] = implements(  # a replaced object gives up what it holds
        "release", or_if=lambda class_: class_.unique is not None and class_.unique.rule in GIVEN_UP
    )
    can_reclaim: ClassVar[bool] = implements(  # and takes it back in a rollback
        "reclaim", or_if=lambda class_: not class_.deletes_first
    )
    can_copy: ClassVar[bool] = implements("snapshot")  # a snapshot calls the provider
    takes_signals: ClassVar[bool] = implements("signal")
    live_attributes: ClassVar[frozenset[str]] = derived(names_of_live_attributes)  # `show` with `live_show`
    has_provider_check: ClassVar[bool] = implements("check")  # a check requests more than an observation
    judges_health: ClassVar[bool] = implements("is_healthy_after_failure")  # otherwise it is observed
    can_find: ClassVar[bool] = implements(  # a create with an unknown outcome can be looked up
        "find", or_if=lambda class_: not class_.calls_out
    )
    needs_lease: ClassVar[bool] = derived(  # a visit must lease the resource before it reads the row
        lambda class_: class_.calls_out or class_.takes_signals or class_.claimed_first
    )

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

    def find(self, ctx: Context, token: str) -> str | Sequence[str] | None:
        """Return the physical id of the object that an earlier attempt with this token created, or None.

        Of several objects return all ids: the first is kept, the others are deleted.
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

    def delete(self, ctx: Context, physical_id: str) -> Observation | None:
        """Request deletion; an object that is already gone is no error. `observe` reports the end, at first
        the answer of the provider if that is returned.
        """
        raise NotImplementedError(self.name)

    def equal(self, name: str, before: Value, after: Value) -> bool:
        """Return whether two values of the property `name` mean the same to the provider."""
        return bool(before == after)

    def chosen(self, ctx: Context) -> Mapping[str, Value]:
        """Return values of properties that `create` set although `ctx.properties` does not contain them, such
        as a generated name. A different observed value is drift.
        """
        return {}

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


def read_update_policy(
    resource_type: ResourceType, raw: Mapping[str, Value], *, path: str = "", unknown: object = _NEVER
) -> tuple[dict[str, Value], list[PropertyFault]]:
    """Return a definition's update policy with its defaults, and all faults in it."""
    schema, any_properties = resource_type.update_policy, resource_type.any_properties
    return convert(schema, raw, path=path, unknown=unknown, any_properties=any_properties)
