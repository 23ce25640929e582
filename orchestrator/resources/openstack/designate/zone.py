"""OS::Designate::Zone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Attribute, Context, Created, Fault, Property, Unique, Value
from orchestrator.resources.openstack.creation_times import is_created_by
from orchestrator.resources.openstack.designate.designate_type import (
    DESCRIPTION,
    TTL,
    DesignateType,
    designate,
)
from orchestrator.schema.constraints import AllowedValues, Length
from orchestrator.schema.translation import Replace
from orchestrator.template.definition import ResourceDefinition

PRIMARY, SECONDARY = "PRIMARY", "SECONDARY"
# By type of zone, the properties that Designate refuses: they are ignored.
IGNORED: Final = {PRIMARY: frozenset({"masters"}), SECONDARY: frozenset({"email", "ttl"})}
PORT: Final = ":53"  # of a primary server by default


class Zone(DesignateType):
    """A DNS zone."""

    name = "OS::Designate::Zone"
    unique = Unique((("name",),), "delete", searched=True)
    properties = {
        "name": Property(
            "string",
            "Name of the zone, with a dot at its end.",
            required=True,
            constraints=(Length(max=255),),
        ),
        "ttl": TTL,
        "description": DESCRIPTION,
        "email": Property(
            "string", "Address in the SOA record. Required for a PRIMARY zone.", update_allowed=True
        ),
        "type": Property(
            "string",
            "PRIMARY: Designate has the records. SECONDARY: they are transferred from another server.",
            default=PRIMARY,
            constraints=(AllowedValues((PRIMARY, SECONDARY)),),
        ),
        "masters": Property(
            "list",
            "Former name of `primaries`.",
            update_allowed=True,
            deprecated="Use ``primaries`` instead.",
        ),
        "primaries": Property(
            "list",
            "Servers from which the records are transferred. Required for a SECONDARY zone.",
            update_allowed=True,
        ),
        "attributes": Property("map", "Information for the choice of a pool."),
    }
    attributes = {"serial": Attribute("Serial number of the zone.", "any", live=True)}
    translation = (Replace(("masters",), source=("primaries",)),)

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
    ) -> Sequence[Fault]:
        """Require the properties of the type of zone. Values that are not known yet count as given."""
        kind = properties.get("type", PRIMARY)
        body = resources[name].body.get("properties") or {}
        required = {PRIMARY: ("email",), SECONDARY: ("masters", "primaries")}.get(str(kind), ())
        if not required or any(body.get(one) for one in required):
            return ()
        return (Fault(f"Property {required[0]} is required for zone type {kind}", alone=True),)

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Request the zone."""
        ignored = IGNORED[props["type"]]
        values = {name: value for name, value in props.items() if value and name not in ignored}
        return Created(designate(ctx).create_zone(values)["id"])

    def find(self, ctx: Context, token: str) -> str | Sequence[str] | None:
        """Return the zone with the name, unless it is older than the request."""
        name = ctx.properties["name"]
        found = [zone for zone in designate(ctx).zones_named(name) if zone.get("name") == name]
        return next((zone["id"] for zone in found if is_created_by(ctx, zone.get("created_at"))), None)

    def raw(self, ctx: Context, physical_id: str) -> JsonObject | None:
        """Return Designate's view of the zone."""
        return designate(ctx).zone(physical_id)

    def observed_properties(self, ctx: Context, found: JsonMapping) -> JsonObject:
        """Return the actual values of given properties."""
        props = ctx.properties
        ignored = IGNORED.get(props.get("type", PRIMARY), frozenset())
        names = ("name", "ttl", "description", "email", "type")
        values: JsonObject = {
            name: found.get(name) for name in names if props.get(name) and name not in ignored
        }
        if props.get("masters") and "masters" not in ignored:
            actual, desired = found.get("masters") or [], props["masters"]
            values["masters"] = desired if _servers(actual) == _servers(desired) else actual
        return values

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Request a change. As in Heat, removing a property other than `description` has no effect."""
        names = (changed & {"email", "ttl", "description", "masters"}) - IGNORED[props["type"]]
        values = {name: props[name] for name in names if props.get(name)}
        if "description" in names:
            values["description"] = props.get("description") or None
        if values:
            designate(ctx).update_zone(physical_id, values)
        return Created(physical_id)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Request the deletion."""
        designate(ctx).delete_zone(physical_id)


def _servers(given: Iterable[Value]) -> set[str]:
    """Return servers without the default port."""
    return {str(server).removesuffix(PORT) for server in given}
