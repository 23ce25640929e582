"""OS::Designate::Zone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from orchestrator.clients.openstack.platform_services.dns import ZONES
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Attribute, Context, Fault, Property, Unique, Value
from orchestrator.resources.openstack.collection_type import APART, Field, or_none
from orchestrator.resources.openstack.creation_marks import EqualValues
from orchestrator.resources.openstack.designate.designate_type import DESCRIPTION, TTL, DesignateType
from orchestrator.schema.constraints import AllowedValues, Length
from orchestrator.schema.translation import Replace
from orchestrator.template.definition import ResourceDefinition

PRIMARY, SECONDARY = "PRIMARY", "SECONDARY"
PORT: Final = ":53"  # of a primary server by default


def _servers(given: Iterable[Value]) -> set[str]:
    """Return servers without the default port."""
    return {str(server).removesuffix(PORT) for server in given}


def _same_servers(desired: Iterable[Value] | None, actual: Iterable[Value] | None) -> bool:
    """Return whether two lists have the same servers."""
    return _servers(desired or ()) == _servers(actual or ())


class Zone(DesignateType):
    """A DNS zone."""

    name = "OS::Designate::Zone"
    collection = ZONES
    unique = Unique((("name",),), "delete", searched=True)
    mark = EqualValues(is_new=True)
    fields = {
        "description": Field(to_api=or_none),
        # Designate refuses the properties of the other type of zone: they are ignored.
        "email": Field(only=("type", PRIMARY)),
        "ttl": Field(only=("type", PRIMARY)),
        "masters": Field(satisfies=_same_servers, only=("type", SECONDARY)),
        "primaries": APART,
        "attributes": Field(reported=False),
    }
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

    def request_values(self, ctx: Context, props: Mapping[str, Value], names: Iterable[str]) -> JsonObject:
        """Return the attributes of a request. As in Heat, removing a property other than `description` has no
        effect.
        """
        values = super().request_values(ctx, props, names)
        removed = {"description"} if ctx.action == "UPDATE" else set()
        return {name: value for name, value in values.items() if value or name in removed}
