"""OS::Octavia::AvailabilityZoneProfile."""

from __future__ import annotations

from orchestrator.clients.openstack.networking.load_balancing import ZONE_PROFILES
from orchestrator.resources.openstack.octavia.base import NAME
from orchestrator.resources.openstack.octavia.profiles import Profile, data_property, provider_property


class AvailabilityZoneProfile(Profile):
    """Settings of a provider for an availability zone. Requires the role of an administrator."""

    name = "OS::Octavia::AvailabilityZoneProfile"
    support_version = "24.0.0"
    collection = ZONE_PROFILES
    found_by = ("availability_zone_data",)
    json_texts = frozenset({"availability_zone_data"})
    properties = {
        "name": NAME,
        "availability_zone_data": data_property("Settings of the availability zone, as JSON."),
        "provider_name": provider_property(),
    }
