"""The base of types whose resources are objects of a collection: verbs that follow from declarations.

An ordinary type is a declaration: the collection, the properties, and where they differ, how they are
attributes of the object (`fields`). What is the same for all types of a service is declared by its base:
`mark` finds the object of a create request without an answer, `status` tells whether an object is ready.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar, Final, Literal

from orchestrator.clients.openstack.object_collections import Collection, Collections
from orchestrator.errors import ProviderError, ProviderNotFound
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Context, Created, Observation, Value
from orchestrator.resources.capabilities import derived
from orchestrator.resources.openstack.conflicts import temporary_conflicts
from orchestrator.resources.openstack.connection import openstack
from orchestrator.resources.openstack.property_rules import RuledType

Verb = Literal["create", "update", "delete"]
State = Literal["ready", "pending", "broken", "gone", "unknown"]

# The value of a request for a property that is removed, by its type.
NULLS: Final = MappingProxyType(
    dict.fromkeys(("string", "integer", "number", "boolean", "list", "map", "any"))
)


def unchanged(value: Value) -> Value:
    """Return the value."""
    return value


def or_none(value: Value) -> Value:
    """Return None for an empty value: null removes what a property names."""
    return value or None


def or_empty(value: Value) -> Value:
    """Return "" for null, as templates write a missing name."""
    return value or ""


def are_equal(before: Value, after: Value) -> bool:
    """Return whether two values are equal."""
    return bool(before == after)


def same_items(before: Value, after: Value) -> bool:
    """Return whether two lists have the same items: their order has no meaning."""
    if not all(value is None or isinstance(value, list) for value in (before, after)):
        return bool(before == after)
    return sorted(map(repr, before or ())) == sorted(map(repr, after or ()))


@dataclass(frozen=True, slots=True)
class Field:
    """A property as an attribute of an object."""

    key: str = ""  # the name of the attribute; "": the name of the property
    to_api: Callable[[Value], Value] = unchanged
    from_api: Callable[[Value], Value] = unchanged
    equal: Callable[[Value, Value], bool] = are_equal  # of two values of the property
    satisfies: Callable[[Value, Value], bool] | None = None  # whether the second is as the first; None: equal
    sent: bool = True  # in requests
    reported: bool = True  # as an actual value
    only: tuple[str, str] | None = None  # a property and its value, without which the field does not exist

    def applies(self, props: Mapping[str, Value]) -> bool:
        """Return whether an object with these properties has the attribute."""
        return self.only is None or props.get(self.only[0]) == self.only[1]


UNORDERED: Final = Field(equal=same_items)
APART: Final = Field(sent=False, reported=False)  # no attribute of the object


@dataclass(frozen=True, slots=True)
class Status:
    """The attribute with the state of an object that is built asynchronously. `ready` and `pending` None: all
    other values.
    """

    key: str = ""  # "": the object is always ready
    ready: frozenset[str] | None = None
    pending: frozenset[str] | None = frozenset()
    broken: frozenset[str] = frozenset({"ERROR"})
    gone: frozenset[str] = frozenset()
    poll_seconds: float = 5.0
    reason: str = ""  # of a pending object
    error: str = 'Went to status {} due to "Unknown"'  # of a broken object
    fails_deletes: bool = True  # an object in error that is being deleted

    def state_of(self, actual: JsonMapping) -> State:
        """Return the state of an object."""
        if not self.key:
            return "ready"
        value = str(actual.get(self.key))
        if value in self.gone:
            return "gone"
        if value in self.broken:
            return "broken"
        if self.ready is None:
            return "pending" if value in (self.pending or ()) else "ready"
        if value in self.ready:
            return "ready"
        return "pending" if self.pending is None or value in self.pending else "unknown"


class CreationMark:
    """How the object of a create request without an answer is found: by a token, or by its values."""

    key: str = "-"  # the attribute with a token that an update has to keep

    def marked(self, values: JsonObject, token: str) -> JsonObject:
        """Return the attributes of a create request with the token."""
        return values

    def kept(self, current: JsonMapping, value: Value) -> Value:
        """Return a new value of the attribute `key` with the token of the object."""
        return value

    def unmarked(self, actual: JsonMapping) -> JsonObject:
        """Return an object without the token."""
        return dict(actual)

    def find(self, type_: CollectionType, ctx: Context, token: str) -> str | Sequence[str] | None:
        """Return the ids of the objects with the token or the values."""
        raise NotImplementedError

    def stored(self, type_: CollectionType, token: str) -> JsonObject:
        """Return what is stored with the resource."""
        return {}

    def is_own(self, type_: CollectionType, ctx: Context, actual: JsonMapping) -> bool:
        """Return whether an object has the stored token or the values of the resource, as far as known."""
        return True


def _layout(type_: CollectionType | type[CollectionType]) -> Mapping[str, Field]:
    """Return the fields of all properties, with the names of their attributes."""
    made = {}
    for name in type_.properties:
        field = type_.fields.get(name) or type_.common_fields.get(name) or Field()
        field = Field(field) if isinstance(field, str) else field
        made[name] = APART if name == type_.parent_property else replace(field, key=field.key or name)
    return made


def _listed_collection(type_: CollectionType | type[CollectionType]) -> str:
    """Return the collection whose lists contain all that an observation needs, "" if there is none."""
    class_ = type_ if isinstance(type_, type) else type(type_)
    plain = class_.is_listed and not class_.parent_property and class_.observe is CollectionType.observe
    return class_.collection.plural if plain else ""


class CollectionType(RuledType):
    """A type whose resources are objects of a collection of its `service`."""

    live_show = True
    collection: ClassVar[Collection]
    fields: ClassVar[Mapping[str, str | Field]] = {}  # of properties, where they differ: a name, or a Field
    common_fields: ClassVar[Mapping[str, Field]] = {}  # of all types of a service
    layout: ClassVar[Mapping[str, Field]] = derived(_layout)
    mark: ClassVar[CreationMark] = CreationMark()
    status: ClassVar[Status] = Status()
    parent_property: ClassVar[str] = ""  # with the id of the parent; it is also stored
    removed: ClassVar[Mapping[str, Value]] = NULLS  # others are left out of requests
    reports_unset: ClassVar[bool] = False  # actual values of properties that are not set
    reports_fixed: ClassVar[bool] = False  # … and of properties that cannot be updated
    omits_null: ClassVar[bool] = False  # objects lack attributes without a value
    in_use: ClassVar[frozenset[Verb]] = frozenset()  # whose conflicts are temporary: the object is in use
    is_listed: ClassVar[bool] = False  # its list is observed
    lists: ClassVar[str] = derived(_listed_collection)
    answers_create: ClassVar[bool] = False  # the answer to a create is an observation
    ends_at_once: ClassVar[bool] = False  # the object does not exist after the answer to its delete
    checks_owner: ClassVar[bool] = False  # an object with the id may belong to another user

    # Conversions.

    def from_api(self, name: str, actual: JsonMapping) -> Value:
        """Return the value of a property from an object. A KeyError: the object does not report it."""
        field = self.layout[name]
        return field.from_api(actual.get(field.key) if self.omits_null else actual[field.key])

    def satisfies(self, name: str, desired: Value, actual: Value) -> bool:
        """Return whether the actual value of a property is as desired; the service may have added details."""
        compare = self.layout[name].satisfies
        return self.equal(name, desired, actual) if compare is None else compare(desired, actual)

    def shown(self, actual: JsonMapping) -> JsonObject:
        """Return an object as users see it."""
        return self.mark.unmarked(actual)

    def attribute_values(self, actual: JsonMapping) -> JsonObject:
        """Return the recorded attributes of an object, as users see it."""
        return {name: actual.get(name) for name, attribute in self.attributes.items() if not attribute.live}

    def parent(self, ctx: Context, props: Mapping[str, Value]) -> str:
        """Return the id of the parent object, "" if the collection is not nested."""
        name = self.parent_property
        return str(ctx.data.get(name) or props.get(name) or "") if name else ""

    def equal(self, name: str, before: Value, after: Value) -> bool:
        """Return whether two values of a property are equal."""
        field = self.layout.get(name)
        return bool(before == after) if field is None else field.equal(before, after)

    def api(self, ctx: Context) -> Collections:
        """Return the service, called with the stack's credential."""
        return openstack(ctx).collections(self.service)

    # Verbs.

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Create the object with the mark of the request.

        Raises:
            ProviderError: the parent object does not exist.
        """
        parent = self.parent(ctx, props)
        if self.parent_property and not parent:
            kind, given = self.parent_property.replace("_", ""), props.get(self.parent_property)
            raise ProviderError(f"The {kind} ({given}) could not be found.", "EntityNotFound")
        values = self.mark.marked(self.new_values(ctx, props), ctx.token)
        with _conflicts(self, "create"):
            created = self.api(ctx).create(self.collection, values, parent=parent)
        # A type that observes more than the object needs its own observation.
        complete = self.answers_create and type(self).observe is CollectionType.observe
        return Created(
            str(created[self.collection.id_key]),
            {**({self.parent_property: parent} if parent else {}), **self.mark.stored(self, ctx.token)},
            observation=self.observation(ctx, created) if complete else None,
        )

    def find(self, ctx: Context, token: str) -> str | Sequence[str] | None:
        """Return the ids of the objects with the mark of the request."""
        return self.mark.find(self, ctx, token) or None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the object. It ends with its parent."""
        parent = self.parent(ctx, ctx.properties)
        if self.parent_property and not parent:
            return Observation(exists=False)
        actual = self.api(ctx).observed_object(self.collection, physical_id, parent=parent)
        if actual is None or (ctx.action == "DELETE" and not _is_own(self, ctx, actual)):
            return Observation(exists=False)
        return self.observation(ctx, actual)

    def list_objects(self, ctx: Context) -> Iterable[tuple[str, Value]]:
        """Yield the objects of the project, of types with `lists`."""
        return self.api(ctx).all_observed(self.collection.path, self.collection.plural)

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Change the attributes of the changed properties."""
        values = self.changed_values(ctx, physical_id, props, changed)
        if values:
            with _conflicts(self, "update"):
                self.send_update(ctx, physical_id, values)
        return Created(physical_id, ctx.data)

    def delete(self, ctx: Context, physical_id: str) -> Observation | None:
        """Delete the object, if it belongs to the resource; while it is in use, the request is repeated."""
        api, collection, parent = self.api(ctx), self.collection, self.parent(ctx, ctx.properties)
        ended = Observation(exists=False) if self.ends_at_once else None
        if self.parent_property and not parent:
            return ended
        if self.checks_owner:
            found = api.find(collection, physical_id, parent=parent)
            if found is None or not _is_own(self, ctx, found):
                return ended
        with _conflicts(self, "delete"):
            api.remove(collection, physical_id, parent=parent)
        return ended

    def rename(self, ctx: Context, physical_id: str, name: str) -> None:
        """Change the name of the object."""
        with suppress(ProviderNotFound):
            self.api(ctx).update(self.collection, physical_id, {"name": name})

    def read_attributes(self, ctx: Context, physical_id: str, names: frozenset[str]) -> Mapping[str, Value]:
        """Return live attributes, and the object itself as `show`."""
        parent = self.parent(ctx, ctx.properties)
        actual = self.api(ctx).find(self.collection, physical_id, parent=parent)
        if actual is None:
            return {}
        return {name: self.live_attribute(ctx, name, actual) for name in names}

    def live_attribute(self, ctx: Context, name: str, actual: JsonObject) -> Value:
        """Return a live attribute of an object."""
        return self.shown(actual) if name == "show" else actual.get(name)

    # Parts of the verbs.

    def new_values(self, ctx: Context, props: Mapping[str, Value]) -> JsonObject:
        """Return the attributes of a create request; the physical name is the default of a name."""
        return self.request_values(ctx, props, {*props, "name"})

    def changed_values(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> JsonObject:
        """Return the attributes of an update request; the mark stays."""
        values, key = self.request_values(ctx, props, changed), self.mark.key
        if key in values:
            parent = self.parent(ctx, props)
            current = self.api(ctx).find(self.collection, physical_id, parent=parent) or {}
            values[key] = self.mark.kept(current, values[key])
        return values

    def request_values(self, ctx: Context, props: Mapping[str, Value], names: Iterable[str]) -> JsonObject:
        """Return the attributes of a request for these properties."""
        values: JsonObject = {}
        wanted = set(names)
        for name, field in self.layout.items():
            kind = self.properties[name].type
            known = name in props or name == "name" or kind in self.removed
            if name not in wanted or not (field.sent and known and field.applies(props)):
                continue
            value = props[name] if name in props else self.removed.get(kind)
            values[field.key] = field.to_api(value or ctx.physical_name if name == "name" else value)
        return values

    def send_update(self, ctx: Context, physical_id: str, values: JsonMapping) -> None:
        """Request a change of the object."""
        parent = self.parent(ctx, ctx.properties)
        self.api(ctx).update(self.collection, physical_id, values, parent=parent)

    def observation(self, ctx: Context, actual: JsonObject) -> Observation:
        """Return the observation of an existing object."""
        status, state, value = self.status, self.status.state_of(actual), actual.get(self.status.key)
        if state == "gone":
            return Observation(exists=False)
        if state == "broken" and (ctx.action != "DELETE" or status.fails_deletes):
            return self.failure(ctx, actual)
        reason = status.reason.format(value)
        if ctx.action == "DELETE":
            return Observation(exists=True, ready=False, retry_after=status.poll_seconds, reason=reason)
        shown = self.shown(actual)
        attributes = self.attribute_values(shown)
        if state == "pending":
            return Observation(
                exists=True,
                ready=False,
                retry_after=status.poll_seconds,
                attributes=attributes,
                reason=reason,
            )
        properties = self.actual_properties(ctx, shown)
        if state == "unknown":
            error = f'Resource is not built - Unknown status {value} due to "Unknown"'
            kind = "ResourceUnknownStatus"
            return Observation(exists=True, error=error, error_kind=kind, properties=properties)
        step = self.next_step(ctx, actual)
        return Observation(exists=True, step=step, attributes=attributes, properties=properties)

    def failure(self, ctx: Context, actual: JsonMapping) -> Observation:
        """Return the observation of an object in error."""
        error = self.status.error.format(actual.get(self.status.key))
        return Observation(exists=True, error=error, replaceable=True)

    def next_step(self, ctx: Context, actual: JsonMapping) -> str:
        """Return the next step of an unfinished operation, "" if it is complete."""
        return ""

    def actual_properties(self, ctx: Context, actual: JsonMapping) -> JsonObject:
        """Return the actual values of properties, as far as the object, as users see it, reports them."""
        values: JsonObject = {}
        for name, field in self.layout.items():
            if not field.reported or not (self.reports_fixed or self.properties[name].update_allowed):
                continue
            if not field.applies(ctx.properties):
                continue
            if not self.reports_unset and name not in ctx.properties:
                continue
            try:
                values[name] = self.actual_property(ctx, name, actual)
            except KeyError:
                continue
        return values

    def actual_property(self, ctx: Context, name: str, actual: JsonMapping) -> Value:
        """Return the actual value of a property; the desired value if the actual value is as desired."""
        value, given = self.from_api(name, actual), ctx.properties.get(name)
        if name == "name" and not given and value == ctx.physical_name:
            return given
        return given if name in ctx.properties and self.satisfies(name, given, value) else value


def _is_own(type_: CollectionType, ctx: Context, actual: JsonMapping) -> bool:
    """Return whether an object with the id of the resource's object is this object."""
    return not type_.checks_owner or type_.mark.is_own(type_, ctx, actual)


def _conflicts(type_: CollectionType, verb: Verb) -> AbstractContextManager[None]:
    """Report a conflict as temporary if the type says so."""
    return temporary_conflicts() if verb in type_.in_use else nullcontext()
