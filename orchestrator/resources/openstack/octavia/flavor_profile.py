"""OS::Octavia::FlavorProfile."""

from __future__ import annotations

from orchestrator.clients.openstack.networking.load_balancing import FLAVOR_PROFILES
from orchestrator.resources.openstack.octavia.base import NAME
from orchestrator.resources.openstack.octavia.profiles import Profile, data_property, provider_property


class FlavorProfile(Profile):
    """Settings of a provider for a flavor. Requires the role of an administrator."""

    name = "OS::Octavia::FlavorProfile"
    support_version = "14.0.0"
    collection = FLAVOR_PROFILES
    found_by = ("flavor_data",)
    json_texts = frozenset({"flavor_data"})
    properties = {
        "name": NAME,
        "flavor_data": data_property("Settings of the load balancers, as JSON."),
        "provider_name": provider_property(),
    }
