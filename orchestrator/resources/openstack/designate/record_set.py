"""OS::Designate::RecordSet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from orchestrator.errors import ProviderNotFound
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Context, Created, Property, Unique, Value
from orchestrator.resources.openstack.creation_times import is_created_by
from orchestrator.resources.openstack.designate.designate_type import (
    DESCRIPTION,
    TTL,
    DesignateType,
    designate,
)
from orchestrator.schema.constraints import AllowedValues, Custom, Length
from orchestrator.schema.translation import Resolve

TYPES: Final = (
    *("A", "AAAA", "CNAME", "MX", "SRV", "TXT", "SPF", "NS", "PTR", "SSHFP", "SOA", "CAA", "CERT", "NAPTR"),
)


class RecordSet(DesignateType):
    """The records of a zone with the same name and type."""

    name = "OS::Designate::RecordSet"
    unique = Unique((("name", "zone", "type"),), "delete", searched=True)
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

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Request the record set."""
        fields = ("ttl", "description", "type", "records")
        values = {name: props[name] for name in fields if props.get(name)}
        values["name"] = self._name(ctx, props)
        created = designate(ctx).create_recordset(props["zone"], values)
        return Created(created["id"], {"zone": props["zone"]})

    def find(self, ctx: Context, token: str) -> str | Sequence[str] | None:
        """Return the record set with name and type, unless it is older than the request."""
        props = ctx.properties
        name = self._name(ctx, props)
        try:
            found = list(designate(ctx).recordsets_named(props["zone"], name, props["type"]))
        except ProviderNotFound:
            return None
        same = [one for one in found if (one.get("name"), one.get("type")) == (name, props["type"])]
        return next((one["id"] for one in same if is_created_by(ctx, one.get("created_at"))), None)

    def raw(self, ctx: Context, physical_id: str) -> JsonObject | None:
        """Return Designate's view of the record set."""
        return designate(ctx).recordset(_zone(ctx), physical_id)

    def observed_properties(self, ctx: Context, found: JsonMapping) -> JsonObject:
        """Return the actual values of given properties."""
        props = ctx.properties
        values: JsonObject = {
            name: found.get(name) for name in ("name", "ttl", "description", "type") if props.get(name)
        }
        actual, desired = found.get("records") or [], props.get("records") or []
        return {**values, "records": desired if _texts(actual) == _texts(desired) else actual}

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Request a change; a removed time to live is that of the zone."""
        names = changed & {"ttl", "description", "records"}
        if names:
            values = {name: props.get(name) or None for name in names}
            designate(ctx).update_recordset(_zone(ctx), physical_id, values)
        return Created(physical_id, {"zone": _zone(ctx)})

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Request the deletion; a record set ends with its zone."""
        designate(ctx).delete_recordset(_zone(ctx), physical_id)

    def _name(self, ctx: Context, props: Mapping[str, Value]) -> str:
        """Return the name. Designate accepts only names in the zone."""
        if props.get("name"):
            return str(props["name"])
        zone = designate(ctx).zone(props["zone"]) or {}
        return f"{ctx.physical_name}.{zone.get('name', '')}"


def _zone(ctx: Context) -> str:
    """Return the id of the zone, also if only the recorded data are known."""
    return str(ctx.data.get("zone") or ctx.properties.get("zone") or "")


def _texts(records: Iterable[Value]) -> set[str]:
    """Return records without the quotes that Designate adds to texts."""
    return {str(record).strip('"') for record in records}
