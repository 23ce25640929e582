"""Flavors, availability zones and their profiles; quotas."""

from __future__ import annotations

import json
from typing import ClassVar, Final

from simulated_openstack.http import ApiError
from simulated_openstack.json_types import JsonObject
from simulated_openstack.octavia.family import Family
from simulated_openstack.octavia.fields import (
    DESCRIPTION,
    NAME,
    REQUIRED,
    Field,
)
from simulated_openstack.octavia.load_balancers import PROVIDERS
from simulated_openstack.octavia.quotas import Quotas
from simulated_openstack.service import Call, Service
from simulated_openstack.state import Table

HIDDEN: Final = frozenset({"project_id", "tenant_id", "created_at", "updated_at"})


class Settings(Family):
    """Objects that belong to no project, and only administrators change."""

    admin_only = True

    def view(self, row: JsonObject) -> JsonObject:
        """Return an object as the API shows it."""
        return {key: value for key, value in super().view(row).items() if key not in HIDDEN}


class Profiles(Settings):
    """Settings of a provider."""

    data: ClassVar[str]  # the field with JSON

    def create(self, call: Call, values: JsonObject, **parents: str) -> JsonObject:
        """Keep a new profile."""
        self._check(values)
        return super().create(call, values, **parents)

    def change(self, call: Call, row: JsonObject, values: JsonObject) -> None:
        """Change a profile; its data only while nothing uses it."""
        self._check({**row, **values})
        if self._is_used(row) and values.keys() & {self.data, "provider_name"}:
            raise ApiError(409, f"{self.label.capitalize()} {row['id']} is in use and cannot be modified.")
        super().change(call, row, values)

    def remove(self, call: Call, row: JsonObject) -> None:
        """Remove a profile that nothing uses."""
        if self._is_used(row):
            raise ApiError(409, f"{self.label.capitalize()} {row['id']} is in use and cannot be modified.")
        super().remove(call, row)

    def users(self) -> list[JsonObject]:
        """Return the objects that may use a profile."""
        raise NotImplementedError

    def _is_used(self, row: JsonObject) -> bool:
        return any(row["id"] in user.values() for user in self.users())

    def _check(self, values: JsonObject) -> None:
        if values["provider_name"] not in PROVIDERS:
            raise ApiError(400, f"Provider '{values['provider_name']}' is not enabled.")
        try:
            json.loads(values[self.data])
        except ValueError as error:
            raise ApiError(400, f"{values[self.data]} is not a valid option for {self.data}") from error


class FlavorProfiles(Profiles):
    """Settings of flavors."""

    singular = "flavorprofile"
    plural = "flavorprofiles"
    path = "flavorprofiles"
    argument = "flavor_profile_"
    label = "Flavor Profile"
    data = "flavor_data"
    fields: ClassVar[dict[str, Field]] = {
        "name": NAME,
        "provider_name": Field(PROVIDERS[0]),
        "flavor_data": Field(REQUIRED),
    }

    def users(self) -> list[JsonObject]:
        """Return the flavors."""
        return list(self.rows("flavor"))


class ZoneProfiles(Profiles):
    """Settings of availability zones."""

    singular = "availability_zone_profile"
    plural = "availability_zone_profiles"
    path = "availabilityzoneprofiles"
    argument = "availability_zone_profile_"
    label = "Availability Zone Profile"
    data = "availability_zone_data"
    fields: ClassVar[dict[str, Field]] = {
        "name": NAME,
        "provider_name": Field(PROVIDERS[0]),
        "availability_zone_data": Field(REQUIRED),
    }

    def users(self) -> list[JsonObject]:
        """Return the availability zones."""
        return list(self.rows("availability_zone"))


class Flavors(Settings):
    """Kinds of load balancers, with unique names."""

    singular = "flavor"
    plural = "flavors"
    path = "flavors"
    argument = "flavor_"
    label = "Flavor"
    fields: ClassVar[dict[str, Field]] = {
        "name": Field(REQUIRED),
        "description": DESCRIPTION,
        "enabled": Field(True, "boolean"),
        "flavor_profile_id": Field(REQUIRED, put=False),
    }

    def __init__(self, octavia: Service, quotas: Quotas, profiles: FlavorProfiles) -> None:
        """Add the routes."""
        super().__init__(octavia, quotas)
        self._profiles = profiles

    def create(self, call: Call, values: JsonObject, **parents: str) -> JsonObject:
        """Keep a new flavor."""
        self._profiles.found(values["flavor_profile_id"])
        _require_unique(self.table, "flavor", values["name"])
        return super().create(call, values, **parents)

    def remove(self, call: Call, row: JsonObject) -> None:
        """Remove a flavor that no load balancer uses."""
        if any(balancer["flavor_id"] == row["id"] for balancer in self.rows("loadbalancer")):
            raise ApiError(409, f"Flavor {row['id']} is in use and cannot be modified.")
        super().remove(call, row)


class Zones(Settings):
    """Places of load balancers. The name is the id."""

    singular = "availability_zone"
    plural = "availability_zones"
    path = "availabilityzones"
    argument = "availability_zone_"
    label = "Availability Zone"
    fields: ClassVar[dict[str, Field]] = {
        "name": Field(REQUIRED, put=False),
        "description": DESCRIPTION,
        "enabled": Field(True, "boolean"),
        "availability_zone_profile_id": Field(REQUIRED, put=False),
    }

    def __init__(self, octavia: Service, quotas: Quotas, profiles: ZoneProfiles) -> None:
        """Add the routes."""
        super().__init__(octavia, quotas)
        self._profiles = profiles

    def create(self, call: Call, values: JsonObject, **parents: str) -> JsonObject:
        """Keep a new zone."""
        del call, parents
        self._profiles.found(values["availability_zone_profile_id"])
        _require_unique(self.table, "availability zone", values["name"])
        return self.table.save({**values, "id": values["name"]})

    def remove(self, call: Call, row: JsonObject) -> None:
        """Remove a zone that no load balancer uses."""
        if any(balancer["availability_zone"] == row["name"] for balancer in self.rows("loadbalancer")):
            raise ApiError(409, f"Availability Zone {row['name']} is in use and cannot be modified.")
        super().remove(call, row)

    def view(self, row: JsonObject) -> JsonObject:
        """Return a zone, which has no id."""
        return {key: value for key, value in super().view(row).items() if key != "id"}


def _require_unique(table: Table, kind: str, name: str) -> None:
    if any(row["name"] == name for row in table):
        raise ApiError(409, f"A {kind} of {name} already exists.")
