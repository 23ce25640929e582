"""OS::Octavia::Flavor."""

from __future__ import annotations

from orchestrator.clients.openstack.networking.load_balancing import FLAVORS
from orchestrator.resources.base import Attribute, Property, Unique
from orchestrator.resources.openstack.creation_marks import EqualValues
from orchestrator.resources.openstack.octavia.base import DESCRIPTION, NAME, Profile
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Resolve


class Flavor(Profile):
    """A kind of load balancers. Requires the role of an administrator."""

    name = "OS::Octavia::Flavor"
    support_version = "14.0.0"
    collection = FLAVORS
    unique = Unique((("name",),), "rename", searched=True)
    fields = {"flavor_profile": "flavor_profile_id"}
    mark = EqualValues(compared=("flavor_profile",))
    translation = (Resolve(("flavor_profile",), "octavia.flavorprofile"),)
    properties = {
        "name": NAME,
        "description": DESCRIPTION,
        "enabled": Property(
            "boolean", "Whether new load balancers may use it.", default=True, update_allowed=True
        ),
        "flavor_profile": Property(
            "string",
            "Name or id of the flavor profile.",
            required=True,
            constraints=(Custom("octavia.flavorprofile"),),
        ),
    }
    attributes = {"flavor_profile_id": Attribute("Id of the flavor profile.", type="string")}
