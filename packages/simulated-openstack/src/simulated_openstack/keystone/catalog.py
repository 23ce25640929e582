"""Services, endpoints and regions."""

from __future__ import annotations

from typing import ClassVar, Final

from simulated_openstack.http import ApiError
from simulated_openstack.json_types import JsonObject
from simulated_openstack.keystone.family import CONFLICT, Family
from simulated_openstack.service import Service, new_hex

INTERFACES: Final = ("admin", "internal", "public")
MALFORMED: Final = (
    "The server could not comply with the request since it is either malformed or otherwise incorrect. The"
    " client is"
    " assumed to be in error."
)


class Services(Family):
    """Services of the catalog."""

    singular = "service"
    collection = "services"
    required: ClassVar[tuple[str, ...]] = ("type",)
    filters: ClassVar[tuple[str, ...]] = ("name", "type")
    defaults: ClassVar[JsonObject] = {"enabled": True}

    def is_same(self, first: JsonObject, other: JsonObject) -> bool:
        """Names need not be unique."""
        del first, other
        return False


class Regions(Family):
    """Regions."""

    singular = "region"
    collection = "regions"
    required: ClassVar[tuple[str, ...]] = ()
    filters: ClassVar[tuple[str, ...]] = ("parent_region_id",)
    defaults: ClassVar[JsonObject] = {"description": "", "parent_region_id": None}
    admin_reads = False

    def create(self, values: JsonObject) -> JsonObject:
        """Keep a new region."""
        id_ = values.get("id") or new_hex()
        if self.table.get(id_) is not None:
            raise ApiError(409, f"{CONFLICT} region - Duplicate ID, {id_}..")
        parent = values.get("parent_region_id")
        if parent is not None:
            self.found(parent)
        return self.table.save({**self.defaults, **values, "id": id_})

    def is_same(self, first: JsonObject, other: JsonObject) -> bool:
        """Names need not be unique."""
        del first, other
        return False


class Endpoints(Family):
    """Endpoints of services."""

    singular = "endpoint"
    collection = "endpoints"
    indexes: ClassVar[tuple[str, ...]] = ("service_id",)
    required: ClassVar[tuple[str, ...]] = ("interface", "service_id", "url")
    filters: ClassVar[tuple[str, ...]] = ("service_id", "interface", "region_id")
    defaults: ClassVar[JsonObject] = {"region_id": None, "enabled": True}

    def __init__(self, keystone: Service, services: Services, regions: Regions) -> None:
        """Add the routes."""
        self._services, self._regions = services, regions
        super().__init__(keystone)
        self._services.on_remove.append(self._remove_of)
        self._regions.on_remove.append(self._require_unused)

    def create(self, values: JsonObject) -> JsonObject:
        """Keep a new endpoint; an unknown region is created with it."""
        self._check_references(values)
        region = values.pop("region", None) or values.get("region_id")
        if region and self._regions.table.get(region) is None:
            if "region_id" in values:
                raise ApiError(400, f"Expecting to find endpoint region_id in region table. {MALFORMED}")
            self._regions.create({"id": region})
        return super().create({**values, "region_id": region})

    def change(self, row: JsonObject, values: JsonObject) -> JsonObject:
        """Keep a change."""
        self._check_references(values)
        if "region" in values:
            values["region_id"] = values.pop("region")
        return super().change(row, values)

    def is_same(self, first: JsonObject, other: JsonObject) -> bool:
        """Endpoints may be equal."""
        del first, other
        return False

    def view(self, row: JsonObject) -> JsonObject:
        """Return an endpoint with both names of its region."""
        return {**super().view(row), "region": row["region_id"]}

    def _remove_of(self, service: JsonObject) -> None:
        for endpoint in self.table.where("service_id", service["id"]):
            self.remove(endpoint)

    def _require_unused(self, region: JsonObject) -> None:
        if any(endpoint["region_id"] == region["id"] for endpoint in self.table):
            raise ApiError(
                403,
                f"Unable to delete region {region['id']} because it or its child regions have associated"
                " endpoints.",
            )

    def _check_references(self, values: JsonObject) -> None:
        interface = values.get("interface", "public")
        if interface not in INTERFACES:
            raise ApiError(
                400,
                f"Invalid input for field/attribute interface. Value: {interface}. '{interface}' is not one"
                " of"
                f" {list(INTERFACES)}",
            )
        if "service_id" in values and self._services.table.get(values["service_id"]) is None:
            raise ApiError(400, f"Expecting to find endpoint service_id in service table. {MALFORMED}")
