"""OS::Designate::RecordSet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from orchestrator.clients.openstack.platform_services.dns import RECORD_SETS, ZONES
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Property, Unique, Value
from orchestrator.resources.openstack.collection_type import Field, or_none
from orchestrator.resources.openstack.creation_marks import EqualValues
from orchestrator.resources.openstack.designate.designate_type import DESCRIPTION, TTL, DesignateType
from orchestrator.schema.constraints import AllowedValues, Custom, Length
from orchestrator.schema.translation import Resolve

TYPES: Final = (
    *("A", "AAAA", "CNAME", "MX", "SRV", "TXT", "SPF", "NS", "PTR", "SSHFP", "SOA", "CAA", "CERT", "NAPTR"),
)


def _texts(records: Iterable[Value]) -> set[str]:
    """Return records without the quotes that Designate adds to texts."""
    return {str(record).strip('"') for record in records}


def _same_records(desired: Iterable[Value] | None, actual: Iterable[Value] | None) -> bool:
    """Return whether two lists have the same records."""
    return _texts(desired or ()) == _texts(actual or ())


class RecordSet(DesignateType):
    """The records of a zone with the same name and type."""

    name = "OS::Designate::RecordSet"
    collection = RECORD_SETS
    parent_property = "zone"
    unique = Unique((("name", "zone", "type"),), "delete", searched=True)
    mark = EqualValues(("name", "type"), is_new=True)
    status = replace(DesignateType.status, error='Went to status {} due to "Error in RecordSet"')
    fields = {
        "ttl": Field(to_api=or_none),
        "description": Field(to_api=or_none),
        "records": Field(to_api=or_none, satisfies=_same_records),
    }
    properties = {
        "name": Property(
            "string",
            "Name of the records, with a dot at its end. Default: the physical name, in the zone.",
            constraints=(Length(max=255),),
        ),
        "ttl": TTL,
        "description": DESCRIPTION,
        "type": Property(
            "string", "Type of the records.", required=True, constraints=(AllowedValues(TYPES),)
        ),
        "records": Property("list", "The records.", required=True, update_allowed=True),
        "zone": Property(
            "string", "Name or id of the zone.", required=True, constraints=(Custom("designate.zone"),)
        ),
    }
    translation = (Resolve(("zone",), "designate.zone"),)

    def request_values(self, ctx: Context, props: Mapping[str, Value], names: Iterable[str]) -> JsonObject:
        """Return the attributes of a request. Designate accepts only names in the zone."""
        names = set(names)
        if "name" in names and not props.get("name"):
            zone = self.api(ctx).find(ZONES, self.parent(ctx, props)) or {}
            props = {**props, "name": f"{ctx.physical_name}.{zone.get('name', '')}"}
        values = super().request_values(ctx, props, names)
        removed = ctx.action == "UPDATE"
        return {name: value for name, value in values.items() if value or removed}
