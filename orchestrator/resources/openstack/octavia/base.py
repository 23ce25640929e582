"""The base class of Octavia's types: verbs that follow from declarations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Final

from orchestrator.clients.openstack.networking.load_balancing import LoadBalancing
from orchestrator.clients.openstack.object_collections import Collection
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Context, Created, Observation, Property, ResourceType, Value
from orchestrator.resources.openstack.conflicts import temporary_conflicts
from orchestrator.resources.openstack.connection import openstack

NAME: Final = Property("string", "Name of the object. Default: the physical name.", update_allowed=True)
DESCRIPTION: Final = Property("string", "Description of the object.", default="", update_allowed=True)
ADMIN_STATE_UP: Final = Property(
    "boolean", "Whether the object is in operation.", default=True, update_allowed=True
)


def load_balancing(ctx: Context) -> LoadBalancing:
    """Return Octavia, called with the stack's credential."""
    return openstack(ctx).load_balancing


class OctaviaType(ResourceType):
    """A type whose resources are objects of a collection.

    A property is an attribute of the same name in requests, unless `api_names` gives another name. Values are
    converted by `to_api` and `from_api`.
    """

    service = "octavia"
    endpoint_type = "load-balancer"
    live_show = True
    collection: ClassVar[Collection]
    api_names: ClassVar[Mapping[str, str]] = {}  # of properties, where they differ
    parent_property: ClassVar[str] = ""  # the property with the parent, in a nested collection
    unreadable: ClassVar[frozenset[str]] = frozenset()  # updatable properties without an observed value
    id_key: ClassVar[str] = "id"

    # Conversions, overridden by types.

    def to_api(self, name: str, value: Value) -> Value:
        """Return the value of a property as the request has it."""
        return value

    def from_api(self, name: str, actual: JsonMapping) -> Value:
        """Return the value of a property from an object. A KeyError: the object does not report it."""
        return actual[self.api_names.get(name, name)]

    def shown(self, actual: JsonMapping) -> JsonObject:
        """Return an object as users see it."""
        return dict(actual)

    def new_values(self, ctx: Context, props: Mapping[str, Value]) -> JsonObject:
        """Return the attributes of a create request."""
        given = {name for name, value in props.items() if value is not None}
        return self.request_values(ctx, props, given | {"name"})

    def changed_values(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> JsonObject:
        """Return the attributes of an update request."""
        return self.request_values(ctx, props, changed)

    # Verbs.

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Create the object; while its load balancer is being changed, the request is repeated."""
        values = self.new_values(ctx, props)
        with temporary_conflicts():
            created = load_balancing(ctx).create(self.collection, values, parent=self.parent(props))
        return Created(str(created[self.id_key]))

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the object."""
        actual = self.read(ctx, physical_id)
        return Observation(exists=False) if actual is None else self.observation(ctx, actual)

    def list_objects(self, ctx: Context) -> Iterable[tuple[str, Value]]:
        """Yield the objects of the project, of types that declare `lists`."""
        return load_balancing(ctx).all_observed(self.collection.path, self.collection.plural)

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Change the attributes of the changed properties."""
        values = self.changed_values(ctx, physical_id, props, changed)
        if values:
            with temporary_conflicts():
                load_balancing(ctx).update(self.collection, physical_id, values, parent=self.parent(props))
        return Created(physical_id)

    def delete(self, ctx: Context, physical_id: str) -> Observation | None:
        """Delete the object; while it is in use or its load balancer is being changed, the request is
        repeated.
        """
        with temporary_conflicts():
            load_balancing(ctx).remove(self.collection, physical_id, parent=self.parent(ctx.properties))
        return None

    def read_attributes(self, ctx: Context, physical_id: str, names: frozenset[str]) -> Mapping[str, Value]:
        """Return live attributes, and the object itself as `show`."""
        parent = self.parent(ctx.properties)
        actual = load_balancing(ctx).find(self.collection, physical_id, parent=parent)
        if actual is None:
            return {}
        return {name: self.shown(actual) if name == "show" else actual.get(name) for name in names}

    # Parts of the verbs.

    def parent(self, props: Mapping[str, Value]) -> str:
        """Return the id of the parent object, "" if the collection is not nested."""
        return str(props[self.parent_property]) if self.parent_property else ""

    def read(self, ctx: Context, physical_id: str) -> JsonObject | None:
        """Return the object for an observation."""
        parent = self.parent(ctx.properties)
        return load_balancing(ctx).observed_object(self.collection, physical_id, parent=parent)

    def observation(self, ctx: Context, actual: JsonObject) -> Observation:
        """Return the observation of an existing object."""
        attributes = {
            name: actual.get(name) for name, attribute in self.attributes.items() if not attribute.live
        }
        return Observation(
            exists=True, attributes=attributes, properties=self.observed_properties(ctx, actual)
        )

    def observed_properties(self, ctx: Context, actual: JsonMapping) -> JsonObject:
        """Return the actual values of the updatable properties that the template sets."""
        values: JsonObject = {}
        for name, declared in self.properties.items():
            if not declared.update_allowed or name in self.unreadable or ctx.properties.get(name) is None:
                continue
            try:
                values[name] = self.from_api(name, actual)
            except KeyError:
                continue
        return values

    def request_values(self, ctx: Context, props: Mapping[str, Value], names: Iterable[str]) -> JsonObject:
        """Return the attributes of a request for these properties; None resets an attribute."""
        values: JsonObject = {}
        for name in set(names) & self.properties.keys() - {self.parent_property}:
            value = props.get(name) or ctx.physical_name if name == "name" else props.get(name)
            values[self.api_names.get(name, name)] = self.to_api(name, value)
        return values
