"""OS::Octavia::AvailabilityZoneProfile."""

from __future__ import annotations

from orchestrator.clients.openstack.networking.load_balancing import ZONE_PROFILES
from orchestrator.resources.base import Property
from orchestrator.resources.openstack.creation_marks import EqualValues
from orchestrator.resources.openstack.octavia.base import JSON_TEXT, NAME, Profile
from orchestrator.schema.constraints import Custom


class AvailabilityZoneProfile(Profile):
    """Settings of a provider for an availability zone. Requires the role of an administrator."""

    name = "OS::Octavia::AvailabilityZoneProfile"
    support_version = "24.0.0"
    collection = ZONE_PROFILES
    fields = {"availability_zone_data": JSON_TEXT}
    mark = EqualValues(compared=("availability_zone_data",))
    properties = {
        "name": NAME,
        "availability_zone_data": Property(
            "string",
            "Settings of the availability zone, as JSON.",
            required=True,
            update_allowed=True,
            constraints=(Custom("json_string"),),
        ),
        "provider_name": Property("string", "Name of the provider.", update_allowed=True),
    }
