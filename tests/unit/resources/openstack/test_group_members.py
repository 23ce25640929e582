"""Rules about absent properties, for members of groups: their definitions refer to the properties."""

import pytest

from orchestrator.resources.base import ResourceType
from orchestrator.resources.openstack.neutron.networks.subnet import Subnet
from orchestrator.resources.openstack.neutron.policies.quota import Quota
from orchestrator.resources.openstack.neutron.routers.router_interface import RouterInterface
from orchestrator.resources.openstack.nova.server.server_type import Server
from orchestrator.resources.openstack.octavia.pool import Pool
from orchestrator.template.group_template import Definition, MemberDefinitions, Members, Part
from orchestrator.template.index_ranges import Ordinals


@pytest.mark.parametrize(
    ("resource_type", "properties"),
    [
        (Subnet(), {"network": "n", "cidr": "10.0.0.0/24"}),
        (RouterInterface(), {"router": "r", "subnet": "s"}),
        (Quota(), {"project": "p", "port": 5}),
        (Pool(), {"listener": "l", "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"}),
        (Server(), {"image": "i", "flavor": "f"}),
    ],
    ids=lambda item: item.name if isinstance(item, ResourceType) else "",
)
def test_the_properties_of_a_member_are_not_absent(
    resource_type: ResourceType, properties: dict[str, object]
) -> None:
    definition = Definition(resource_type.name, {"properties": properties})
    template = Members((Part.of(definition, Ordinals.of([0])),)).template()
    assert isinstance(template.resources, MemberDefinitions)
    [sample] = template.resources.samples()
    assert list(resource_type.validate_among(sample.name, {}, {sample.name: sample})) == []
