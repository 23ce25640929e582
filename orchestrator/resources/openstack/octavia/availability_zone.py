"""OS::Octavia::AvailabilityZone. The physical id is the name."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.clients.openstack.networking.load_balancing import ZONES
from orchestrator.resources.base import Attribute, Change, Property, Unique, Value
from orchestrator.resources.openstack.creation_marks import EqualValues
from orchestrator.resources.openstack.octavia.base import DESCRIPTION, NAME, Profile
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Resolve


class AvailabilityZone(Profile):
    """A place for load balancers. Requires the role of an administrator."""

    name = "OS::Octavia::AvailabilityZone"
    support_version = "24.0.0"
    collection = ZONES
    unique = Unique((("name",),), "delete", searched=True)
    fields = {"availability_zone_profile": "availability_zone_profile_id"}
    mark = EqualValues(compared=("availability_zone_profile",))
    checks_owner = True  # a zone with another profile belongs to another user
    translation = (Resolve(("availability_zone_profile",), "octavia.availabilityzoneprofile"),)
    properties = {
        "name": NAME,
        "description": DESCRIPTION,
        "enabled": Property(
            "boolean", "Whether new load balancers may use it.", default=True, update_allowed=True
        ),
        "availability_zone_profile": Property(
            "string",
            "Name or id of the availability zone profile.",
            required=True,
            constraints=(Custom("octavia.availabilityzoneprofile"),),
        ),
    }
    attributes = {
        "availability_zone_profile_id": Attribute("Id of the availability zone profile.", type="string")
    }

    def change(
        self, before: Mapping[str, Value], after: Mapping[str, Value], changed: frozenset[str]
    ) -> Change:
        """Octavia cannot rename a zone."""
        return "replace" if "name" in changed else super().change(before, after, changed)
