"""OS::Octavia::FlavorProfile."""

from __future__ import annotations

from orchestrator.clients.openstack.networking.load_balancing import FLAVOR_PROFILES
from orchestrator.resources.base import Property
from orchestrator.resources.openstack.creation_marks import EqualValues
from orchestrator.resources.openstack.octavia.base import JSON_TEXT, NAME, Profile
from orchestrator.schema.constraints import Custom


class FlavorProfile(Profile):
    """Settings of a provider for a flavor. Requires the role of an administrator."""

    name = "OS::Octavia::FlavorProfile"
    support_version = "14.0.0"
    collection = FLAVOR_PROFILES
    fields = {"flavor_data": JSON_TEXT}
    mark = EqualValues(compared=("flavor_data",))
    properties = {
        "name": NAME,
        "flavor_data": Property(
            "string",
            "Settings of the load balancers, as JSON.",
            required=True,
            update_allowed=True,
            constraints=(Custom("json_string"),),
        ),
        "provider_name": Property("string", "Name of the provider.", update_allowed=True),
    }
