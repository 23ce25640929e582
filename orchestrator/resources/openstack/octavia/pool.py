"""OS::Octavia::Pool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from orchestrator.clients.openstack.networking.load_balancing import POOLS
from orchestrator.resources.base import Attribute, Fault, Property, Unique, Value
from orchestrator.resources.openstack.collection_type import Field
from orchestrator.resources.openstack.octavia.base import ADMIN_STATE_UP, DESCRIPTION, NAME, LoadBalancerPart
from orchestrator.resources.openstack.octavia.listener import PROTOCOLS
from orchestrator.resources.openstack.property_rules import AtLeastOne, PropertyRule
from orchestrator.resources.openstack.written_values import is_unset, member, written
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


class CookieRule(PropertyRule):
    """The cookie depends on the kind of persistence."""

    def of_template(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
    ) -> Iterator[Fault]:
        """Yield a fault if the cookie is missing, or is not used."""
        given, definition = properties.get("session_persistence"), resources.get(name)
        if definition is None or not isinstance(given, Mapping):
            return
        cookie, kind = member(written(definition, "session_persistence"), "cookie_name"), given.get("type")
        if kind == "APP_COOKIE" and cookie is None and not is_unset(definition, "session_persistence"):
            yield Fault(COOKIE, alone=True)
        if kind == "SOURCE_IP" and cookie is not None:
            yield Fault(NO_COOKIE, alone=True)


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
    rules = (
        AtLeastOne(("listener", "loadbalancer")),
        CookieRule(),
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
