"""OS::Octavia::Listener."""

from __future__ import annotations

from orchestrator.clients.openstack.networking.load_balancing import LISTENERS
from orchestrator.resources.base import Attribute, Property, Unique
from orchestrator.resources.openstack.collection_type import UNORDERED
from orchestrator.resources.openstack.octavia.base import ADMIN_STATE_UP, DESCRIPTION, NAME, LoadBalancerPart
from orchestrator.resources.openstack.property_rules import Required, among
from orchestrator.schema.constraints import AllowedValues, Custom, Range
from orchestrator.schema.translation import Resolve

PROTOCOLS = ("TCP", "HTTP", "HTTPS", "TERMINATED_HTTPS", "PROXY", "UDP")
PORT_NUMBER = Range(1, 65_535)


class Listener(LoadBalancerPart):
    """A port of a load balancer that accepts connections."""

    name = "OS::Octavia::Listener"
    collection = LISTENERS
    unique = Unique((("loadbalancer", "protocol_port"),), "delete")
    fields = {
        "loadbalancer": "loadbalancer_id",
        "default_pool": "default_pool_id",
        "tenant_id": "project_id",
        "allowed_cidrs": UNORDERED,
        "sni_container_refs": UNORDERED,
    }
    translation = (
        Resolve(("loadbalancer",), "octavia.loadbalancer"),
        Resolve(("default_pool",), "octavia.pool"),
    )
    rules = (
        Required(
            "default_tls_container_ref",
            "Property default_tls_container_ref required when protocol is TERMINATED_HTTPS.",
            among("protocol", ("TERMINATED_HTTPS",)),
        ),
    )
    properties = {
        "loadbalancer": Property(
            "string",
            "Name or id of the load balancer.",
            required=True,
            constraints=(Custom("octavia.loadbalancer"),),
        ),
        "protocol": Property(
            "string", "Protocol of the connections.", required=True, constraints=(AllowedValues(PROTOCOLS),)
        ),
        "protocol_port": Property("integer", "Port number.", required=True, constraints=(PORT_NUMBER,)),
        "default_pool": Property(
            "string",
            "Name or id of the pool for connections that no policy redirects.",
            update_allowed=True,
            constraints=(Custom("octavia.pool"),),
        ),
        "name": NAME,
        "description": DESCRIPTION,
        "admin_state_up": ADMIN_STATE_UP,
        "default_tls_container_ref": Property(
            "string", "Secret with certificate and key of TERMINATED_HTTPS.", update_allowed=True
        ),
        "sni_container_refs": Property(
            "list", "Secrets with certificates for further host names.", update_allowed=True
        ),
        "connection_limit": Property(
            "integer",
            "Maximum number of connections, -1 for no limit.",
            default=-1,
            update_allowed=True,
            constraints=(Range(min=-1),),
        ),
        "allowed_cidrs": Property(
            "list",
            "Networks that may connect. Default: all.",
            update_allowed=True,
            schema=Property("string", "A network.", constraints=(Custom("net_cidr"),)),
        ),
        "tenant_id": Property("string", "Project of the listener."),
    }
    attributes = {
        "loadbalancers": Attribute("Load balancer of the listener.", type="list"),
        "default_pool_id": Attribute("Id of the default pool.", type="string", live=True),
    }
