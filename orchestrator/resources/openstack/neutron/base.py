"""The base class of Neutron's types: what they have in common beside the verbs of collections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Final

from orchestrator.clients.openstack.networking.network import Network
from orchestrator.errors import ProviderError
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Attribute, Context, Created, Fault, Property, Value
from orchestrator.resources.openstack.collection_type import (
    CollectionType,
    CreationMark,
    Field,
    Status,
    Verb,
    same_items,
)
from orchestrator.resources.openstack.conflicts import temporary_conflicts
from orchestrator.resources.openstack.connection import openstack
from orchestrator.resources.openstack.creation_marks import TokenInDescription

POLL_SECONDS: Final = 2.0
FORBIDDEN: Final = "Forbidden"
BUILT: Final = Status(  # of objects that are built asynchronously
    "status",
    ready=frozenset({"ACTIVE", "DOWN"}),
    pending=frozenset({"BUILD"}),
    broken=frozenset({"ERROR", "DEGRADED"}),
    poll_seconds=POLL_SECONDS,
    fails_deletes=False,
)

VALUE_SPECS: Final = Property(
    "map", "Further attributes of the request, passed on unchanged.", default={}, update_allowed=True
)
TAGS: Final = Property(
    "list", "Tags of the object.", update_allowed=True, schema=Property("string", "A tag.")
)


def network(ctx: Context) -> Network:
    """Return Neutron, called with the stack's credential."""
    return openstack(ctx).network


class NeutronType(CollectionType):
    """An object of Neutron. Tags have their own request, and an update depends on the revision number."""

    service = "neutron"
    endpoint_type = "network"
    common_fields = {"value_specs": Field(sent=False), "tags": Field(sent=False, equal=same_items)}
    mark: ClassVar[CreationMark] = TokenInDescription()
    status: ClassVar[Status] = Status(poll_seconds=POLL_SECONDS)
    removed: ClassVar[Mapping[str, Value]] = {"string": "", "list": [], "map": {}}
    reports_unset = True
    in_use: ClassVar[frozenset[Verb]] = frozenset({"create", "update", "delete"})
    is_listed = True
    answers_create = True
    ends_at_once = True
    posts_tags: ClassVar[bool] = False  # a POST accepts tags

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """Reject further attributes that are properties, or that belong to the owner of the object."""
        given = properties.get("value_specs") or {}
        found = [name for name in given if name in self.properties or name in ("shared", "tenant_id")]
        faults = super().validate(properties, stack_timeout_seconds)
        if found:
            return (Fault(f"{', '.join(found)} not allowed in value_specs", alone=True), *faults)
        return faults

    def chosen(self, ctx: Context) -> Mapping[str, Value]:
        """Return the generated name."""
        return {"name": ctx.physical_name} if "name" in self.properties else {}

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
        """Change the attributes of the changed properties, then the tags."""
        updated = super().update(ctx, physical_id, props, changed)
        if "tags" in changed:
            with temporary_conflicts():
                network(ctx).set_tags(self.collection, physical_id, props.get("tags") or ())
        return updated

    def request_values(self, ctx: Context, props: Mapping[str, Value], names: Iterable[str]) -> JsonObject:
        """Return the attributes of a request, with those in `value_specs`."""
        names = set(names)
        values = super().request_values(ctx, props, names)
        return values | (props.get("value_specs") or {}) if "value_specs" in names else values

    def new_values(self, ctx: Context, props: Mapping[str, Value]) -> JsonObject:
        """Return the attributes of a create request."""
        values = super().new_values(ctx, props)
        return {**values, "tags": props["tags"]} if self.posts_tags and props.get("tags") else values

    def changed_values(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> JsonObject:
        """Return the attributes of an update request; those in `value_specs` only if they differ."""
        if "value_specs" not in changed:
            return super().changed_values(ctx, physical_id, props, changed)
        parent = self.parent(ctx, props)
        current = network(ctx).find(self.collection, physical_id, parent=parent) or {}
        values = self.request_values(ctx, props, changed - {"value_specs"})
        values |= self.changed_specs(props.get("value_specs") or {}, self.shown(current))
        if self.mark.key in values:
            values[self.mark.key] = self.mark.kept(current, values[self.mark.key])
        return values

    def changed_specs(self, given: JsonMapping, current: JsonMapping) -> JsonObject:
        """Return the attributes in `value_specs` that differ from the object's."""
        return {name: value for name, value in given.items() if current.get(name) != value}

    def send_update(self, ctx: Context, physical_id: str, values: JsonMapping) -> None:
        """Send an update that has no effect after a newer update of the object. Some attributes may not even
        be sent by everybody, with whichever value: if Neutron forbids the update, the attributes that the
        object has already are left out.
        """
        neutron, props = network(ctx), ctx.properties
        collection, parent = self.collection, self.parent(ctx, props)
        revision = (neutron.find(collection, physical_id, parent=parent) or {}).get("revision_number")
        try:
            neutron.update(collection, physical_id, values, parent=parent, revision=revision)
        except ProviderError as error:
            if error.kind != FORBIDDEN:
                raise
            current = neutron.find(collection, physical_id, parent=parent)
            actual = {} if current is None else self.actual_properties(ctx, self.shown(current))
            equal = [name for name, value in actual.items() if self.equal(name, props.get(name), value)]
            remaining = values.keys() - {self.layout[name].key for name in equal}
            if len(remaining) == len(values):
                raise
            if remaining:
                allowed = {name: values[name] for name in remaining}
                neutron.update(collection, physical_id, allowed, parent=parent, revision=revision)

    def next_step(self, ctx: Context, actual: JsonMapping) -> str:
        """Return the next step of an unfinished create, "" if it is complete."""
        tags = ctx.properties.get("tags")
        if ctx.action == "CREATE" and tags and sorted(tags) != sorted(actual.get("tags") or ()):
            return "set_tags"
        return ""

    def actual_property(self, ctx: Context, name: str, actual: JsonMapping) -> Value:
        """Return the actual value of a property: of `value_specs`, those that are given."""
        if name != "value_specs":
            return super().actual_property(ctx, name, actual)
        given = ctx.properties.get("value_specs") or {}
        return {key: actual.get(key, value) for key, value in given.items()}


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
