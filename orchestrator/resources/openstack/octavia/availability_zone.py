"""OS::Octavia::AvailabilityZone. The physical id is the name."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.clients.openstack.networking.load_balancing import ZONES
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Attribute, Change, Context, Observation, Property, Unique, Value
from orchestrator.resources.openstack.octavia.base import DESCRIPTION, NAME, load_balancing
from orchestrator.resources.openstack.octavia.profiles import Profile
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Resolve


class AvailabilityZone(Profile):
    """A place for load balancers. Requires the role of an administrator."""

    name = "OS::Octavia::AvailabilityZone"
    support_version = "24.0.0"
    collection = ZONES
    id_key = "name"
    unique = Unique((("name",),), "delete", searched=True)
    api_names = {"availability_zone_profile": "availability_zone_profile_id"}
    found_by = ("availability_zone_profile",)
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

    def delete(self, ctx: Context, physical_id: str) -> Observation | None:
        """Delete the zone, unless it has another profile: then it belongs to another user."""
        found, own = self.read(ctx, physical_id), ctx.properties.get("availability_zone_profile")
        if found is not None and own in (None, found.get("availability_zone_profile_id")):
            return super().delete(ctx, physical_id)
        return Observation(exists=False)

    def read(self, ctx: Context, physical_id: str) -> JsonObject | None:
        """Return the object for an observation; zones have no id in lists."""
        return load_balancing(ctx).find(self.collection, physical_id)
