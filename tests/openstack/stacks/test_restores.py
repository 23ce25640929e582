"""The restore of a snapshot over changes that the cloud makes in one direction only."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.operations.context import Body
from orchestrator.operations.snapshots import snapshots
from tests.openstack.stacks.cloud_world import CloudWorld
from tests.openstack.stacks.templates import of

NETWORKS = [{"network": "private"}]
SERVER: dict[str, Any] = of("OS::Nova::Server", image="cirros", flavor="m1.tiny", networks=NETWORKS)
VOLUME: dict[str, Any] = of("OS::Cinder::Volume", size=1)
EC2_VOLUME: dict[str, Any] = of("AWS::EC2::Volume", AvailabilityZone="nova", Size="1")


def changed(resource: dict[str, Any], **properties: Any) -> dict[str, Any]:
    return {**resource, "properties": {**resource["properties"], **properties}}


def snapshot(world: CloudWorld, uuid: str) -> str:
    started = snapshots.take(world.context, world.stack_row("s"), Body(b"{}"))
    world.messages += started.messages
    world.settle(uuid, "SNAPSHOT_COMPLETE")
    return str(started.snapshot.uuid)


def restore(world: CloudWorld, uuid: str, snapshot_id: str) -> None:
    world.messages += snapshots.restore(world.context, world.stack_row("s"), snapshot_id)
    world.settle(uuid, "RESTORE_COMPLETE")


@pytest.mark.parametrize(
    ("before", "after", "replaced"),
    [
        (VOLUME, changed(VOLUME, size=2), True),
        (VOLUME, changed(VOLUME, name="other"), False),
        (EC2_VOLUME, EC2_VOLUME, True),
        (SERVER, changed(SERVER, flavor="m1.small"), True),
        (SERVER, changed(SERVER, name="other"), False),
    ],
    ids=["grown volume", "volume", "ec2 volume", "resized server", "server"],
)
def test_a_resource_is_restored_from_its_copy(
    world: CloudWorld, before: dict[str, Any], after: dict[str, Any], replaced: bool
) -> None:
    uuid = world.create("s", {"r": before})
    world.settle(uuid, "CREATE_COMPLETE")
    taken = snapshot(world, uuid)
    first = world.ids()["r"]
    if after != before:
        world.update("s", {"r": after})
        world.settle(uuid, "UPDATE_COMPLETE")
    assert world.ids()["r"] == first
    restore(world, uuid, taken)
    assert (world.ids()["r"] != first) == replaced
    world.delete("s")
    world.settle(uuid, "DELETE_COMPLETE")


def test_a_server_gets_its_restored_volume(world: CloudWorld) -> None:
    table = world.cloud.cinder.volumes.table
    others = {row["id"] for row in table}  # of earlier tests with this cloud
    attachment = of(
        "OS::Cinder::VolumeAttachment",
        instance_uuid={"get_resource": "server"},
        volume_id={"get_resource": "volume"},
    )
    resources = {"server": SERVER, "volume": VOLUME, "attachment": attachment}
    uuid = world.create("s", resources)
    world.settle(uuid, "CREATE_COMPLETE")
    taken = snapshot(world, uuid)
    world.update("s", {**resources, "volume": changed(VOLUME, size=2)})
    world.settle(uuid, "UPDATE_COMPLETE")
    restore(world, uuid, taken)
    world.cloud.schedule.run_due()
    volume = table.get(world.ids()["volume"])
    assert volume is not None
    assert (volume["size"], volume["status"]) == (1, "in-use")
    assert {row["id"] for row in table} - others == {volume["id"]}
