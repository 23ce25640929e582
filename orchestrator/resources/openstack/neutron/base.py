"""The base class of Neutron's types: verbs that follow from declarations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Final

from orchestrator.clients.openstack.networking.network import Network
from orchestrator.clients.openstack.object_collections import Collection
from orchestrator.errors import ProviderError
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import (
    Attribute,
    Context,
    Created,
    Fault,
    Observation,
    Property,
    Value,
)
from orchestrator.resources.capabilities import derived
from orchestrator.resources.openstack.admission import AdmittedType
from orchestrator.resources.openstack.conflicts import temporary_conflicts
from orchestrator.resources.openstack.connection import openstack
from orchestrator.resources.openstack.neutron.request_token import described, marked, unmarked

POLL_SECONDS: Final = 2.0
FORBIDDEN: Final = "Forbidden"
_EMPTY: Final[JsonMapping] = {"string": "", "list": [], "map": {}}  # for a property that is removed
READY: Final = frozenset({"ACTIVE", "DOWN"})
BROKEN: Final = frozenset({"ERROR", "DEGRADED"})

VALUE_SPECS: Final = Property(
    "map", "Further attributes of the request, passed on unchanged.", default={}, update_allowed=True
)
TAGS: Final = Property(
    "list", "Tags of the object.", update_allowed=True, schema=Property("string", "A tag.")
)


def network(ctx: Context) -> Network:
    """Return Neutron, called with the stack's credential."""
    return openstack(ctx).network


class NeutronType(AdmittedType):
    """A type whose resources are objects of a collection.

    A property is an attribute of the same name in requests, unless `api_names` gives another name or
    `separate` excludes it. Values are converted by `to_api` and `from_api`.
    """

    service = "neutron"
    endpoint_type = "network"
    live_show = True
    collection: ClassVar[Collection]
    lists: ClassVar[str] = derived(lambda type_: type_.listed_collection())
    api_names: ClassVar[Mapping[str, str]] = {}  # of properties, where they differ
    separate: ClassVar[frozenset[str]] = frozenset()  # properties that are not part of requests
    unordered: ClassVar[frozenset[str]] = frozenset({"tags"})  # lists whose order has no meaning
    has_token: ClassVar[bool] = True  # the description contains the request token
    has_status: ClassVar[bool] = False  # the object is built asynchronously
    posts_tags: ClassVar[bool] = False  # a POST accepts tags

    # Conversions, overridden by types.

    def to_api(self, name: str, value: Value) -> Value:
        """Return the value of a property as the request has it."""
        return value

    def from_api(self, name: str, actual: JsonMapping) -> Value:
        """Return the value of a property from an object. A KeyError: the object does not report it."""
        return actual[self.api_names.get(name, name)]

    def satisfies(self, name: str, desired: Value, actual: Value) -> bool:
        """Return whether the actual value of a property is as desired; the service may have added details."""
        return self.equal(name, desired, actual)

    @classmethod
    def listed_collection(cls) -> str:
        """Return the collection whose lists contain all that an observation needs, "" if there is none."""
        nested = "{parent}" in cls.collection.path or cls.parent is not NeutronType.parent
        return "" if nested or cls.observe is not NeutronType.observe else cls.collection.plural

    def attribute_values(self, actual: JsonMapping) -> JsonObject:
        """Return the recorded attributes of an object."""
        shown = self.shown(actual)
        return {name: shown.get(name) for name, attribute in self.attributes.items() if not attribute.live}

    def parent(self, ctx: Context, props: Mapping[str, Value]) -> str:
        """Return the id of the parent object, "" if the collection is not nested."""
        return ""

    # Rules.

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """Reject further attributes that are properties, or that belong to the owner of the object."""
        given = properties.get("value_specs") or {}
        found = [name for name in given if name in self.properties or name in ("shared", "tenant_id")]
        if found:
            return (Fault(f"{', '.join(found)} not allowed in value_specs", alone=True),)
        return ()

    def equal(self, name: str, before: Value, after: Value) -> bool:
        """Return whether two values of a property are equal: the order of some lists has no meaning."""
        if name in self.unordered and isinstance(before, list) and isinstance(after, list):
            return sorted(map(repr, before)) == sorted(map(repr, after))
        return bool(before == after)

    def chosen(self, ctx: Context) -> Mapping[str, Value]:
        """Return the generated name."""
        return {"name": ctx.physical_name} if "name" in self.properties else {}

    # Verbs.

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Create the object with the request token in its description."""
        values = self.request_values(ctx, props, props)
        if self.has_token:
            values["description"] = marked(values.get("description") or "", ctx.token)
        if self.posts_tags and props.get("tags"):
            values["tags"] = props["tags"]
        with temporary_conflicts():
            created = network(ctx).create(self.collection, values, parent=self.parent(ctx, props))
        # A type that observes more than the object needs its own observation.
        complete = type(self).observe is NeutronType.observe
        return Created(created["id"], observation=self.observation(ctx, created) if complete else None)

    def find(self, ctx: Context, token: str) -> str | Sequence[str] | None:
        """Return the ids of the objects with this token."""
        neutron = network(ctx)
        specs = ctx.properties.get("value_specs") or {}
        exact = marked(str(ctx.properties.get("description") or specs.get("description") or ""), token)
        found = [found["id"] for found in neutron.search(self.collection, description=exact, fields=("id",))]
        if not found and exact != marked("", token):  # the description may have changed since
            found = [
                found["id"]
                for found in neutron.search(self.collection, fields=("id", "description"))
                if str(found.get("description") or "").endswith(marked("", token))
            ]
        return found

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the object."""
        parent = self.parent(ctx, ctx.properties)
        actual = network(ctx).observed_object(self.collection, physical_id, parent=parent)
        return Observation(exists=False) if actual is None else self.observation(ctx, actual)

    def list_objects(self, ctx: Context) -> Iterable[tuple[str, Value]]:
        """Yield the objects of the project."""
        return network(ctx).all_observed(self.collection.path, self.collection.plural)

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        """Set the tags of a new object."""
        if step == "set_tags":
            network(ctx).set_tags(self.collection, physical_id, props.get("tags") or ())
        return None

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Change the attributes of the changed properties."""
        neutron, parent = network(ctx), self.parent(ctx, props)
        values = self.request_values(ctx, props, changed - {"value_specs"})
        if ("description" in changed and self.has_token) or "value_specs" in changed:
            current = neutron.find(self.collection, physical_id, parent=parent) or {}
            if "value_specs" in changed:
                values |= self.changed_specs(props.get("value_specs") or {}, self.shown(current))
            if "description" in values:
                values["description"] = described(current.get("description"), values["description"] or "")
        with temporary_conflicts():
            if values:
                _send_update(self, ctx, physical_id, values)
            if "tags" in changed:
                neutron.set_tags(self.collection, physical_id, props.get("tags") or ())
        return Created(physical_id, ctx.data)

    def delete(self, ctx: Context, physical_id: str) -> Observation | None:
        """Delete the object, which does not exist after the answer; while it is in use, the request is
        repeated.
        """
        with temporary_conflicts():
            network(ctx).remove(self.collection, physical_id, parent=self.parent(ctx, ctx.properties))
        return Observation(exists=False)

    def read_attributes(self, ctx: Context, physical_id: str, names: frozenset[str]) -> Mapping[str, Value]:
        """Return live attributes, and the object itself as `show`."""
        actual = network(ctx).find(self.collection, physical_id, parent=self.parent(ctx, ctx.properties))
        if actual is None:
            return {}
        return {name: self.live_attribute(ctx, name, actual) for name in names}

    def live_attribute(self, ctx: Context, name: str, actual: JsonObject) -> Value:
        """Return a live attribute of an object."""
        return self.shown(actual) if name == "show" else actual.get(name)

    # Parts of the verbs.

    def request_values(self, ctx: Context, props: Mapping[str, Value], names: Iterable[str]) -> JsonObject:
        """Return the attributes of a request for these properties."""
        wanted = set(names)
        values: JsonObject = {}
        for name in wanted - self.separate - {"tags", "name"}:
            if name == "value_specs":
                values |= props.get(name) or {}
            elif name in props or (name in self.properties and self.properties[name].type in _EMPTY):
                value = props[name] if name in props else _EMPTY[self.properties[name].type]
                values[self.api_names.get(name, name)] = self.to_api(name, value)
        if "name" in self.properties and ("name" in wanted or ctx.action == "CREATE"):
            values["name"] = props.get("name") or ctx.physical_name
        return values

    def changed_specs(self, given: JsonMapping, current: JsonMapping) -> JsonObject:
        """Return the attributes in `value_specs` that differ from those of the object."""
        return {name: value for name, value in given.items() if current.get(name) != value}

    def observation(self, ctx: Context, actual: JsonObject) -> Observation:
        """Return the observation of an existing object."""
        if ctx.action == "DELETE":
            return Observation(exists=True, ready=False, retry_after=POLL_SECONDS)
        properties, attributes = self.actual_properties(ctx, actual), self.attribute_values(actual)
        status = str(actual.get("status")) if self.has_status else "ACTIVE"
        if status in BROKEN:
            error = f'Went to status {status} due to "Unknown"'
            return Observation(exists=True, error=error, replaceable=True, properties=properties)
        if status == "BUILD":
            return Observation(exists=True, ready=False, retry_after=POLL_SECONDS, attributes=attributes)
        if status not in READY:
            error = f'Resource is not built - Unknown status {status} due to "Unknown"'
            return Observation(
                exists=True, error=error, error_kind="ResourceUnknownStatus", properties=properties
            )
        step = self.next_step(ctx, actual)
        return Observation(
            exists=True, ready=not step, step=step, attributes=attributes, properties=properties
        )

    def next_step(self, ctx: Context, actual: JsonMapping) -> str:
        """Return the next step of an unfinished create, "" if it is complete."""
        tags = ctx.properties.get("tags")
        if ctx.action == "CREATE" and tags and sorted(tags) != sorted(actual.get("tags") or ()):
            return "set_tags"
        return ""

    def actual_properties(self, ctx: Context, actual: JsonMapping) -> JsonObject:
        """Return the actual values of updatable properties, as far as the object reports them."""
        values: JsonObject = {}
        for name, declared in self.properties.items():
            if not declared.update_allowed:
                continue
            try:
                values[name] = self._actual_property(ctx, name, actual)
            except KeyError:
                continue
        return values

    def _actual_property(self, ctx: Context, name: str, actual: JsonMapping) -> Value:
        if name == "name":
            is_default = not ctx.properties.get("name") and actual["name"] == ctx.physical_name
            return ctx.properties.get("name") if is_default else actual["name"]
        if name == "description":
            return unmarked(actual["description"])
        if name == "value_specs":
            given = ctx.properties.get("value_specs") or {}
            shown = self.shown(actual)
            return {key: shown.get(key, value) for key, value in given.items()}
        value = self.from_api(name, actual)
        if name not in ctx.properties:
            return value
        desired = ctx.properties[name]
        return desired if self.satisfies(name, desired, value) else value

    def shown(self, actual: JsonMapping) -> JsonObject:
        """Return an object as users see it."""
        if not self.has_token or "description" not in actual:
            return dict(actual)
        return {**actual, "description": unmarked(actual["description"])}


def _send_update(type_: NeutronType, ctx: Context, physical_id: str, values: JsonMapping) -> None:
    """Send an update that has no effect after a newer update of the object. Some attributes may not even be
    sent by everybody, with whichever value: if Neutron forbids the update, the attributes that the object has
    already are left out.
    """
    neutron, props = network(ctx), ctx.properties
    collection, parent = type_.collection, type_.parent(ctx, props)
    revision = (neutron.find(collection, physical_id, parent=parent) or {}).get("revision_number")
    try:
        neutron.update(collection, physical_id, values, parent=parent, revision=revision)
    except ProviderError as error:
        if error.kind != FORBIDDEN:
            raise
        current = neutron.find(collection, physical_id, parent=parent)
        actual = {} if current is None else type_.actual_properties(ctx, current)
        equal = [name for name, value in actual.items() if type_.equal(name, props.get(name), value)]
        remaining = values.keys() - {type_.api_names.get(name, name) for name in equal}
        if len(remaining) == len(values):
            raise
        if remaining:
            allowed = {name: values[name] for name in remaining}
            neutron.update(collection, physical_id, allowed, parent=parent, revision=revision)


def attributes(**docs: str) -> dict[str, Attribute]:
    """Return attributes of type string; a text before a colon is another type: "list: Subnets."."""
    made = {}
    for name, text in docs.items():
        kind, colon, doc = text.partition(": ")
        made[name] = (
            Attribute(doc, type=kind)
            if colon and kind in _ATTRIBUTE_TYPES
            else Attribute(text, type="string")
        )
    return made


_ATTRIBUTE_TYPES: Final = frozenset({"list", "map", "integer", "boolean", "any"})
