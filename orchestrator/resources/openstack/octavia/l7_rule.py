"""OS::Octavia::L7Rule."""

from __future__ import annotations

from orchestrator.clients.openstack.networking.load_balancing import L7_RULES
from orchestrator.resources.base import Property
from orchestrator.resources.openstack.octavia.base import ADMIN_STATE_UP, LoadBalancerPart
from orchestrator.resources.openstack.property_rules import Required, among
from orchestrator.schema.constraints import AllowedValues, Custom
from orchestrator.schema.translation import Resolve

TYPES = ("HOST_NAME", "PATH", "FILE_TYPE", "HEADER", "COOKIE")
NO_KEY = "Property key is missing. This property should be specified for rules of HEADER and COOKIE types."
COMPARISONS = ("REGEX", "STARTS_WITH", "ENDS_WITH", "CONTAINS", "EQUAL_TO")


class L7Rule(LoadBalancerPart):
    """A condition of a policy: a part of the request, and the value that it is compared with."""

    name = "OS::Octavia::L7Rule"
    collection = L7_RULES
    parent_property = "l7policy"
    translation = (Resolve(("l7policy",), "octavia.l7policy"),)
    rules = (Required("key", NO_KEY, among("type", ("HEADER", "COOKIE"))),)
    properties = {
        "admin_state_up": ADMIN_STATE_UP,
        "l7policy": Property(
            "string", "Name or id of the policy.", required=True, constraints=(Custom("octavia.l7policy"),)
        ),
        "type": Property(
            "string",
            "Part of the request.",
            required=True,
            update_allowed=True,
            constraints=(AllowedValues(TYPES),),
        ),
        "compare_type": Property(
            "string",
            "Comparison of the part with the value.",
            required=True,
            update_allowed=True,
            constraints=(AllowedValues(COMPARISONS),),
        ),
        "invert": Property(
            "boolean", "Whether the comparison must fail.", default=False, update_allowed=True
        ),
        "key": Property("string", "Name of the header or cookie.", update_allowed=True),
        "value": Property("string", "Value to compare with.", required=True, update_allowed=True),
    }
