"""OS::Octavia::HealthMonitor. A pool has one at most."""

from __future__ import annotations

from orchestrator.clients.openstack.networking.load_balancing import HEALTH_MONITORS
from orchestrator.resources.base import Attribute, Property, Unique
from orchestrator.resources.openstack.octavia.base import ADMIN_STATE_UP, LoadBalancerPart
from orchestrator.schema.constraints import AllowedValues, Custom, Range
from orchestrator.schema.translation import Resolve

TYPES = ("PING", "TCP", "HTTP", "HTTPS", "UDP-CONNECT")
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "OPTIONS", "CONNECT", "PATCH")


class HealthMonitor(LoadBalancerPart):
    """Checks the members of a pool."""

    name = "OS::Octavia::HealthMonitor"
    collection = HEALTH_MONITORS
    unique = Unique((("pool",),), "delete")
    fields = {"pool": "pool_id", "tenant_id": "project_id"}
    translation = (Resolve(("pool",), "octavia.pool"),)
    properties = {
        "pool": Property(
            "string", "Name or id of the pool.", required=True, constraints=(Custom("octavia.pool"),)
        ),
        "type": Property("string", "Kind of check.", required=True, constraints=(AllowedValues(TYPES),)),
        "delay": Property(
            "integer",
            "Seconds between two checks of a member.",
            required=True,
            update_allowed=True,
            constraints=(Range(min=0),),
        ),
        "timeout": Property(
            "integer",
            "Seconds until a check has failed.",
            required=True,
            update_allowed=True,
            constraints=(Range(min=0),),
        ),
        "max_retries": Property(
            "integer",
            "Successful checks until a member is in use again.",
            required=True,
            update_allowed=True,
            constraints=(Range(1, 10),),
        ),
        "expected_codes": Property(
            "string",
            "Statuses of a healthy member: 200, a list, or a range such as 200-204.",
            update_allowed=True,
        ),
        "http_method": Property(
            "string", "Method of an HTTP check.", update_allowed=True, constraints=(AllowedValues(METHODS),)
        ),
        "url_path": Property("string", "Path of an HTTP check.", update_allowed=True),
        "admin_state_up": ADMIN_STATE_UP,
        "tenant_id": Property("string", "Project of the health monitor."),
    }
    attributes = {"pools": Attribute("Pool of the health monitor.", type="list")}
