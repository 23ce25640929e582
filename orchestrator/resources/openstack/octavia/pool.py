"""OS::Octavia::Pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.clients.openstack.networking.load_balancing import POOLS
from orchestrator.resources.base import Attribute, Fault, Property, Unique, Value
from orchestrator.resources.openstack.collection_type import Field
from orchestrator.resources.openstack.octavia.base import ADMIN_STATE_UP, DESCRIPTION, NAME, LoadBalancerPart
from orchestrator.resources.openstack.octavia.listener import PROTOCOLS
from orchestrator.resources.openstack.written_values import is_unset, member, unspecified, written
from orchestrator.schema.constraints import AllowedValues, Custom
from orchestrator.schema.translation import Resolve
from orchestrator.template.definition import ResourceDefinition

ALGORITHMS = ("ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP", "SOURCE_IP_PORT")
COOKIE = "Property cookie_name is required when session_persistence type is set to APP_COOKIE."
NO_COOKIE = "Property cookie_name must NOT be specified when session_persistence type is set to SOURCE_IP."
PERSISTENCE = {
    "type": Property(
        "string",
        "Means of recognizing a client.",
        required=True,
        constraints=(AllowedValues(("SOURCE_IP", "HTTP_COOKIE", "APP_COOKIE")),),
    ),
    "cookie_name": Property("string", "Name of the cookie, with APP_COOKIE."),
}


def _present(value: Value) -> Value:
    """Return the members with a value, None without any."""
    if not value:
        return None
    return {key: member for key, member in value.items() if member is not None}


class Pool(LoadBalancerPart):
    """A group of members that share the load."""

    name = "OS::Octavia::Pool"
    collection = POOLS
    unique = Unique((("listener",),), "delete")
    fields = {
        "loadbalancer": "loadbalancer_id",
        "listener": "listener_id",
        "session_persistence": Field(
            to_api=_present,
            from_api=lambda value: _present(value and {key: value.get(key) for key in PERSISTENCE}),
            equal=lambda before, after: _present(before) == _present(after),
        ),
    }
    translation = (
        Resolve(("listener",), "octavia.listener"),
        Resolve(("loadbalancer",), "octavia.loadbalancer"),
    )
    properties = {
        "lb_algorithm": Property(
            "string",
            "Algorithm that chooses the member.",
            required=True,
            update_allowed=True,
            constraints=(AllowedValues(ALGORITHMS),),
        ),
        "protocol": Property(
            "string", "Protocol of the members.", required=True, constraints=(AllowedValues(PROTOCOLS),)
        ),
        "listener": Property(
            "string",
            "Name or id of a listener whose default pool this is.",
            constraints=(Custom("octavia.listener"),),
        ),
        "loadbalancer": Property(
            "string", "Name or id of the load balancer.", constraints=(Custom("octavia.loadbalancer"),)
        ),
        "session_persistence": Property(
            "map",
            "Lets the connections of a client reach the same member.",
            update_allowed=True,
            schema=PERSISTENCE,
        ),
        "name": NAME,
        "description": DESCRIPTION,
        "admin_state_up": ADMIN_STATE_UP,
        "tls_enabled": Property(
            "boolean",
            "Whether connections to the members are encrypted.",
            default=False,
            update_allowed=True,
        ),
    }
    attributes = {
        "healthmonitor_id": Attribute("Id of the health monitor.", type="string", live=True),
        "listeners": Attribute("Listeners whose default pool this is.", type="list", live=True),
        "members": Attribute("Members of the pool.", type="list", live=True),
    }

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
    ) -> Sequence[Fault]:
        """A pool has a listener or a load balancer; the cookie depends on the kind of persistence."""
        faults = list(unspecified(name, resources, ("listener", "loadbalancer")))
        given = properties.get("session_persistence") or {}
        definition = resources.get(name)
        if definition is None or not isinstance(given, Mapping):
            return faults
        cookie = member(written(definition, "session_persistence"), "cookie_name")
        if (
            given.get("type") == "APP_COOKIE"
            and cookie is None
            and not is_unset(definition, "session_persistence")
        ):
            faults.append(Fault(COOKIE, alone=True))
        if given.get("type") == "SOURCE_IP" and cookie is not None:
            faults.append(Fault(NO_COOKIE, alone=True))
        return faults
