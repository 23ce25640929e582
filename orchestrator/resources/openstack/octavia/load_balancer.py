"""OS::Octavia::LoadBalancer."""

from __future__ import annotations

from orchestrator.clients.openstack.networking.load_balancing import LOAD_BALANCERS
from orchestrator.resources.base import Attribute, Property
from orchestrator.resources.openstack.octavia.base import ADMIN_STATE_UP, DESCRIPTION, NAME, LoadBalancerPart
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Resolve


class LoadBalancer(LoadBalancerPart):
    """A load balancer with a virtual address."""

    name = "OS::Octavia::LoadBalancer"
    collection = LOAD_BALANCERS
    fields = {"vip_subnet": "vip_subnet_id", "flavor": "flavor_id", "tenant_id": "project_id"}
    translation = (Resolve(("vip_subnet",), "neutron.subnet"), Resolve(("flavor",), "octavia.flavor"))
    properties = {
        "name": NAME,
        "description": DESCRIPTION,
        "provider": Property("string", "Provider of the load balancer. Default: that of the cloud."),
        "vip_address": Property(
            "string",
            "Virtual address. Default: a free address of the subnet.",
            constraints=(Custom("ip_addr"),),
        ),
        "vip_subnet": Property(
            "string",
            "Name or id of the subnet of the virtual address.",
            required=True,
            constraints=(Custom("neutron.subnet"),),
        ),
        "admin_state_up": ADMIN_STATE_UP,
        "tenant_id": Property(
            "string",
            "Project of the load balancer. Only administrators may set it.",
            constraints=(Custom("keystone.project"),),
        ),
        "flavor": Property(
            "string", "Name or id of Octavia's flavor.", constraints=(Custom("octavia.flavor"),)
        ),
        "availability_zone": Property(
            "string", "Name of the availability zone.", constraints=(Custom("octavia.availabilityzone"),)
        ),
    }
    attributes = {
        "vip_address": Attribute("Virtual address.", type="string"),
        "vip_port_id": Attribute("Port of the virtual address.", type="string"),
        "vip_subnet_id": Attribute("Subnet of the virtual address.", type="string"),
        "pools": Attribute("Pools of the load balancer.", type="list", live=True),
        "flavor_id": Attribute("Id of the flavor.", type="string"),
    }
