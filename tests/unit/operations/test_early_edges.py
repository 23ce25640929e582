"""The requirements of OpenStack's resources that need not be ready (operations/adr/0015)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.engine.validation.type_resolution import TypeEnvironment, TypeResolver
from orchestrator.operations.planning.early_edges import early_requirements
from orchestrator.resources.endpoint_types import every_service
from orchestrator.resources.registry import load_registry
from orchestrator.template.environment import Environment
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.parse import Limits
from orchestrator.template.template import load

TYPES = load_registry()

VM = {"get_resource": "vm"}
VOLUME = {"get_resource": "volume"}
ADDRESS = {"get_attr": ["vm", "first_address"]}


def resource(kind: str, /, **properties: Any) -> dict[str, Any]:
    return {"type": kind, "properties": properties}


def server(**properties: Any) -> dict[str, Any]:
    return resource("OS::Nova::Server", flavor="f", **properties)


def instance(**properties: Any) -> dict[str, Any]:
    return resource("AWS::EC2::Instance", ImageId="i", InstanceType="f", **properties)


def early(dependent: Mapping[str, Any]) -> set[str]:
    """Return the requirements that a dependent does not await."""
    resources = {
        "vm": server(),
        "ec2": instance(),
        "volume": resource("OS::Cinder::Volume", size=1),
        "net": resource("OS::Neutron::Net"),
        "dependent": dependent,
    }
    values = ParameterValues({}, frozenset())
    template = load({"heat_template_version": "2021-04-16", "resources": resources}, Limits(), values)
    environment = TypeEnvironment.of_stack(TYPES, Environment(), {}, Limits())
    resolver = TypeResolver(replace(environment, offers=every_service))
    return set(early_requirements(template, resolver).get("dependent", ()))


@pytest.mark.parametrize(
    ("dependent", "expected"),
    [
        (server(user_data={"list_join": [" ", [VM, VOLUME, ADDRESS]]}), {"vm", "volume"}),
        (server(metadata={"peer": {"get_attr": ["ec2", "PrivateIp"]}}), {"ec2"}),
        (server(networks=[{"network": {"get_resource": "net"}}]), {"net"}),
        (resource("OS::Heat::SoftwareDeployment", server=VM, config="c"), {"vm"}),
        (resource("OS::Neutron::Port", network={"get_resource": "net"}), {"net"}),
    ],
)
def test_a_dependent_starts_when_its_requirement_exists(dependent: Any, expected: set[str]) -> None:
    assert early(dependent) == expected


@pytest.mark.parametrize(
    "dependent",
    [
        server(user_data={"get_attr": ["vm", "networks"]}),
        server(user_data={"get_attr": ["vm", "show"]}),
        server(user_data=VOLUME, block_device_mapping_v2=[{"volume_id": VOLUME}]),
        server(block_device_mapping=[{"device_name": "vdb", "volume_id": VOLUME}]),
        server(scheduler_hints={"different_host": [VM]}),
        instance(Volumes=[{"Device": "/dev/vdb", "VolumeId": VOLUME}]),
        resource("OS::Cinder::Volume", source_volid=VOLUME),
        resource("OS::Cinder::VolumeAttachment", instance_uuid=VM, volume_id=VOLUME),
        resource("AWS::EC2::VolumeAttachment", InstanceId=VM, VolumeId=VOLUME, Device="/dev/vdb"),
        resource("AWS::EC2::EIP", InstanceId=VM),
        resource("AWS::EC2::EIPAssociation", InstanceId={"get_resource": "ec2"}, EIP="192.0.2.1"),
        resource("OS::Heat::Value", value=VM),
        resource("OS::Heat::Stack", template="{}", parameters={"id": VM}),
        {**server(user_data=VM), "depends_on": "vm"},
    ],
)
def test_a_dependent_waits_until_its_requirement_is_ready(dependent: Any) -> None:
    assert early(dependent) == set()
