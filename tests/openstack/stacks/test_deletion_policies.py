"""The deletion policy Snapshot: a copy is complete before the object is deleted."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.json_types import JsonObject
from tests.openstack.stacks.cloud_world import CloudWorld
from tests.openstack.stacks.requests import Requests
from tests.openstack.stacks.templates import of

VOLUME: dict[str, Any] = of("OS::Cinder::Volume", size=1) | {"deletion_policy": "Snapshot"}
EC2_VOLUME: dict[str, Any] = of("AWS::EC2::Volume", AvailabilityZone="nova", Size="1")
EC2_VOLUME |= {"deletion_policy": "Snapshot"}
SERVER: dict[str, Any] = of(
    "OS::Nova::Server", image="cirros", flavor="m1.tiny", networks=[{"network": "private"}]
)
SERVER |= {"deletion_policy": "Snapshot"}


def backups(world: CloudWorld, volume: str) -> list[str]:
    """Return the statuses of the backups of a volume."""
    world.cloud.schedule.run_due()
    return [row["status"] for row in world.cloud.cinder.backups.table if row["volume_id"] == volume]


def is_left(world: CloudWorld, volume: str) -> bool:
    """Return whether the volume exists."""
    world.cloud.schedule.run_due()
    return world.cloud.cinder.volumes.table.get(volume) is not None


def created(world: CloudWorld, resource: JsonObject) -> tuple[str, str]:
    """Create a stack with a resource; return the ids of both."""
    uuid = world.create("s", {"disk": resource})
    world.settle(uuid, "CREATE_COMPLETE")
    return uuid, world.ids()["disk"]


@pytest.mark.parametrize("resource", [VOLUME, EC2_VOLUME], ids=["cinder", "ec2"])
def test_a_backup_is_left_of_a_deleted_volume(
    world: CloudWorld, requests: Requests, resource: JsonObject
) -> None:
    uuid, volume = created(world, resource)
    requests.sent.clear()
    world.delete("s")
    world.settle(uuid, "DELETE_COMPLETE")
    assert (backups(world, volume), is_left(world, volume)) == (["available"], False)
    changes = [sent for sent in requests.sent if not sent.startswith("GET")]
    assert changes == ["POST cinder /backups", f"DELETE cinder /volumes/{volume}"]


def test_the_volume_waits_for_its_backup(world: CloudWorld) -> None:
    uuid, volume = created(world, VOLUME)
    world.cloud.faults.set({"backup": {"delay": 3600}})
    world.delete("s")
    world.retry(3)
    assert world.state(uuid) == "DELETE_IN_PROGRESS"
    assert (backups(world, volume), is_left(world, volume)) == (["creating"], True)


def test_a_backup_that_fails_is_made_again_and_its_volume_is_kept_until_then(world: CloudWorld) -> None:
    uuid, volume = created(world, VOLUME)
    world.cloud.faults.set({"backup": {"error": "no space"}})
    world.delete("s")
    world.settle_by_time(uuid, "DELETE_FAILED")
    assert (backups(world, volume), is_left(world, volume)) == (["error"], True)
    assert "no space" in world.resource("disk").status_reason
    world.cloud.faults.set({})
    world.delete("s")
    world.settle(uuid, "DELETE_COMPLETE")
    assert (backups(world, volume), is_left(world, volume)) == (["available"], False)


def test_a_replaced_volume_leaves_a_backup(world: CloudWorld) -> None:
    uuid, volume = created(world, VOLUME)
    world.update("s", {"disk": VOLUME | {"properties": {"size": 1, "availability_zone": "nova"}}})
    world.settle(uuid, "UPDATE_COMPLETE")
    assert (backups(world, volume), is_left(world, volume)) == (["available"], False)


def test_a_volume_that_was_never_available_leaves_no_backup(world: CloudWorld) -> None:
    world.cloud.faults.set({"volume_create": {"error": "no space"}})
    uuid = world.create("s", {"disk": VOLUME})
    world.settle(uuid, "CREATE_FAILED")
    volume = world.ids()["disk"]
    world.delete("s")
    world.settle(uuid, "DELETE_COMPLETE")
    assert (backups(world, volume), is_left(world, volume)) == ([], False)


@pytest.mark.parametrize(
    ("resource", "carried_out", "first", "interval"),
    [
        (VOLUME, True, 1, 2),
        (SERVER, False, 2, 3),
        *(
            pytest.param(resource, carried_out, 1, 1, marks=pytest.mark.long)
            for resource in (VOLUME, SERVER)
            for carried_out in (False, True)
        ),
    ],
)
def test_a_death_at_any_request_leaves_one_copy(
    world: CloudWorld,
    requests: Requests,
    resource: JsonObject,
    carried_out: bool,
    first: int,
    interval: int,
) -> None:
    for number in range(first, 40, interval):
        uuid, disk = created(world, resource)
        before = world.objects()
        requests.die_at(number, carried_out=carried_out)
        world.delete("s")
        world.deliver_in_spite_of_deaths()
        assert world.state(uuid) == "DELETE_COMPLETE", world.causes()
        made = [kind for kind, _ in world.objects() - before]
        expected = ["cinder.backup"] if resource is VOLUME else ["glance.image"]
        assert (made, is_left(world, disk)) == (expected, False), (number, requests.sent)
        if requests.deadly is not None:  # there were fewer requests
            return
    raise AssertionError("a delete takes more than 40 requests")


def test_an_image_is_left_of_a_deleted_server(world: CloudWorld) -> None:
    uuid, server = created(world, SERVER)
    before = world.objects()
    world.delete("s")
    world.settle(uuid, "DELETE_COMPLETE")
    ((kind, image),) = world.objects() - before
    assert (kind, world.cloud.glance.images.table.get(image)["instance_uuid"]) == ("glance.image", server)
