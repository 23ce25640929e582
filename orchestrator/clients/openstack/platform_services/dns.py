"""Designate's API: zones, and their record sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from orchestrator.clients.openstack.object_collections import Collections
from orchestrator.json_types import JsonMapping, JsonObject


class Dns(Collections):
    """Designate, called as a credential."""

    service: ClassVar[str] = "designate"
    service_type: ClassVar[str] = "dns"

    def create_zone(self, zone: JsonMapping) -> JsonObject:
        """Request a zone."""
        return self.post("/zones", zone)

    def zone(self, zone_id: str) -> JsonObject | None:
        """Return a zone, None if it does not exist."""
        return self.find_one(f"/zones/{zone_id}")

    def zones_named(self, name: str) -> Iterator[JsonObject]:
        """Yield the zones with a name; names are unique."""
        return self.listed("/zones", "zones", {"name": name})

    def update_zone(self, zone_id: str, values: JsonMapping) -> None:
        """Request a change of a zone."""
        self.patch(f"/zones/{zone_id}", values)

    def delete_zone(self, zone_id: str) -> bool:
        """Request the deletion of a zone with its record sets. Return whether it existed."""
        return self.delete(f"/zones/{zone_id}")

    def create_recordset(self, zone_id: str, recordset: JsonMapping) -> JsonObject:
        """Request a record set."""
        return self.post(_recordsets(zone_id), recordset)

    def recordset(self, zone_id: str, recordset_id: str) -> JsonObject | None:
        """Return a record set, None if it or its zone does not exist."""
        return self.find_one(f"{_recordsets(zone_id)}/{recordset_id}")

    def recordsets_named(self, zone_id: str, name: str, record_type: str) -> Iterator[JsonObject]:
        """Yield the record sets of a zone with a name and a type; there is one at most."""
        return self.listed(_recordsets(zone_id), "recordsets", {"name": name, "type": record_type})

    def update_recordset(self, zone_id: str, recordset_id: str, values: JsonMapping) -> None:
        """Request a change of a record set."""
        self.put(f"{_recordsets(zone_id)}/{recordset_id}", values)

    def delete_recordset(self, zone_id: str, recordset_id: str) -> bool:
        """Request the deletion of a record set. Return whether it existed."""
        return self.delete(f"{_recordsets(zone_id)}/{recordset_id}")


def _recordsets(zone_id: str) -> str:
    return f"/zones/{zone_id}/recordsets"
