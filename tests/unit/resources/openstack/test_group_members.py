"""Rules about absent properties, for members of groups: their definitions refer to the properties."""

from dataclasses import replace

import pytest

from orchestrator.engine.validation.template import validate_stack
from orchestrator.engine.validation.type_resolution import TypeEnvironment, TypeResolver
from orchestrator.resources.base import ResourceType
from orchestrator.resources.groups.auto_scaling_group import AutoScalingGroup
from orchestrator.resources.groups.resource_group import ResourceGroup
from orchestrator.resources.openstack.cinder.volume import Volume
from orchestrator.resources.openstack.neutron.networks.subnet import Subnet
from orchestrator.resources.openstack.neutron.policies.quota import Quota
from orchestrator.resources.openstack.neutron.routers.router_interface import RouterInterface
from orchestrator.resources.openstack.nova.server.server_type import Server
from orchestrator.resources.openstack.octavia.pool import Pool
from orchestrator.resources.registry import Registry
from orchestrator.template.environment import Environment
from orchestrator.template.group_template import Definition, MemberDefinitions, Members, Part
from orchestrator.template.index_ranges import Ordinals
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.parse import Limits
from orchestrator.template.template import load


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


def refused(type_name: str, properties: dict[str, object]) -> list[tuple[str, str]]:
    """Return the errors of a template with the resource `g`, with their paths."""
    group = {"type": type_name, "properties": properties}
    body = {
        "heat_template_version": "2021-04-16",
        "parameters": {"image": {"type": "string", "default": "i"}},
        "resources": {"g": group, "v": {"type": "OS::Cinder::Volume", "properties": {"size": 1}}},
    }
    types = Registry.of(Server, Volume, ResourceGroup, AutoScalingGroup)
    environment = replace(
        TypeEnvironment.of_stack(types, Environment(), {}, Limits()), offers=lambda _service: True
    )
    found = validate_stack(
        load(body, Limits()), ParameterValues({"image": "i"}), TypeResolver(environment), strict=True
    )
    return [(fault.path, fault.message) for fault in found if fault.severity == "error"]


def grouped(**properties: object) -> list[tuple[str, str]]:
    member = {"type": "OS::Nova::Server", "properties": {"flavor": "f", **properties}}
    return refused("OS::Heat::ResourceGroup", {"count": 3, "resource_def": member})


NO_IMAGE = "Neither image nor bootable volume is specified for instance"


def test_a_member_without_image_is_refused_at_validation() -> None:
    [(path, message)] = grouped()
    assert path == "resources.g.properties.resource_def"
    assert message == f"resources.g<nested_stack>: {NO_IMAGE} 0"
    member = {"type": "OS::Nova::Server", "properties": {"flavor": "f"}}
    scaled = {"min_size": 1, "max_size": 2, "resource": member}
    [(_, message)] = refused("OS::Heat::AutoScalingGroup", scaled)
    assert NO_IMAGE in message


@pytest.mark.parametrize(
    "properties",
    [
        {"image": "i"},
        {"image": {"get_param": "image"}},
        {"image": {"get_attr": ["v", "display_name"]}},
        {"block_device_mapping_v2": [{"volume_id": {"get_resource": "v"}}]},
        {"block_device_mapping_v2": {"get_attr": ["v", "attachments_list"]}},
    ],
)
def test_a_member_with_an_image_or_a_volume_is_accepted(properties: dict[str, object]) -> None:
    assert grouped(**properties) == []


def test_a_server_without_image_is_refused_at_validation() -> None:
    [(_, message)] = refused("OS::Nova::Server", {"flavor": "f"})
    assert message == f"{NO_IMAGE} g"


def test_a_group_without_members_needs_no_image() -> None:
    member = {"type": "OS::Nova::Server", "properties": {"flavor": "f"}}
    assert refused("OS::Heat::ResourceGroup", {"count": 0, "resource_def": member}) == []
