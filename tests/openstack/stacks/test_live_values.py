"""Attributes that change without an update of their resource: outputs have the present value."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.clients.openstack.block_storage import QOS_SPECS
from orchestrator.clients.openstack.networking.load_balancing import QUOTA_SETS
from orchestrator.errors import InvalidTemplate
from orchestrator.json_types import JsonObject
from orchestrator.operations.outputs.live_attributes import LiveReader
from orchestrator.operations.outputs.outputs import resolve_outputs
from tests.openstack.stacks.cloud_world import CloudWorld
from tests.openstack.stacks.templates import of, ref

SERVER: dict[str, Any] = of(
    "OS::Nova::Server", image="cirros", flavor="m1.tiny", networks=[{"network": "private"}]
)


def current(world: CloudWorld) -> JsonObject:
    """Return the outputs of the stack as the API reads them."""
    stack = world.stack_row("s")
    reader = LiveReader(world.context, stack)
    return {out.key: out.value for out in resolve_outputs(world.database, world.cipher, stack, live=reader)}


def test_a_volume_shows_its_present_status_and_attachments(world: CloudWorld) -> None:
    resources = {
        "disk": of("OS::Cinder::Volume", size=1),
        "vm": SERVER,
        "use": of("OS::Cinder::VolumeAttachment", instance_uuid=ref("vm"), volume_id=ref("disk")),
    }
    names = ("status", "attachments_list", "attachments", "size")
    outputs = {name: {"value": {"get_attr": ["disk", name]}} for name in names}
    uuid = world.create("s", resources, outputs=outputs)
    world.settle(uuid, "CREATE_COMPLETE")
    seen, vm = current(world), world.ids()["vm"]
    assert (seen["status"], seen["size"]) == ("in-use", 1)
    assert [one["server_id"] for one in seen["attachments_list"]] == [vm]
    assert vm in seen["attachments"]
    del resources["use"]
    world.update("s", resources, outputs=outputs)
    world.settle(uuid, "UPDATE_COMPLETE")
    assert {name: current(world)[name] for name in names[:3]} == {
        "status": "available",
        "attachments_list": [],
        "attachments": "[]",
    }
    world.delete("s")
    world.settle(uuid, "DELETE_COMPLETE")


def test_quotas_show_the_present_numbers(world: CloudWorld) -> None:
    quota = of("OS::Octavia::Quota", project="demo", loadbalancer=7)
    outputs = {"all": {"value": {"get_attr": ["quota", "show"]}}}
    uuid = world.create("s", {"quota": quota}, outputs=outputs)
    world.settle(uuid, "CREATE_COMPLETE")
    project = world.ids()["quota"]
    assert current(world)["all"]["loadbalancer"] == 7
    world.openstack.load_balancing.update(QUOTA_SETS, project, {"loadbalancer": 8})
    assert current(world)["all"]["loadbalancer"] == 8
    world.delete("s")
    world.settle(uuid, "DELETE_COMPLETE")


@pytest.mark.parametrize("name", ["ImageId", "InstanceType", "KeyName", "InstanceId"])
def test_a_launch_configuration_names_existing_objects(world: CloudWorld, name: str) -> None:
    given = {"ImageId": "cirros", "InstanceType": "m1.tiny", name: "nothing"}
    with pytest.raises(InvalidTemplate) as caught:
        world.create("s", {"config": of("AWS::AutoScaling::LaunchConfiguration", **given)})
    (fault,) = caught.value.diagnostics
    assert fault.path == f"resources.config.properties.{name}"
    assert "nothing" in fault.message


def test_qos_specs_have_the_given_name(world: CloudWorld) -> None:
    uuid = world.create("s", {"qos": of("OS::Cinder::QoSSpecs", name="gold", specs={"read_iops_sec": 10})})
    world.settle(uuid, "CREATE_COMPLETE")
    listed = {specs["id"]: specs["name"] for specs in world.openstack.block_storage.search(QOS_SPECS)}
    assert listed[world.ids()["qos"]] == "gold"
    world.delete("s")
    world.settle(uuid, "DELETE_COMPLETE")
