"""Updates of servers and volumes that their services carry out after newer updates."""

from __future__ import annotations

import pytest

from orchestrator.json_types import JsonObject
from tests.openstack.stacks.cloud_world import CloudWorld
from tests.openstack.stacks.requests import Requests
from tests.openstack.stacks.templates import of
from tests.scenarios import clock

MINUTE = 60.0
NONE = [{"allocate_network": "none"}]


def server(value: str) -> JsonObject:
    return of("OS::Nova::Server", image="cirros", flavor="m1.tiny", networks=NONE, metadata={"v": value})


def volume(value: str) -> JsonObject:
    return of("OS::Cinder::Volume", size=1, name=value)


def metadata_of(world: CloudWorld) -> object:
    return (world.openstack.compute.server(world.ids()["a"]) or {})["metadata"]["v"]


def name_of(world: CloudWorld) -> object:
    return (world.openstack.block_storage.volume(world.ids()["a"]) or {})["name"]


CASES = {
    "metadata of a server": (server, metadata_of, "PUT nova /servers/", ("x", "old", "new")),
    "name of a volume": (volume, name_of, "PUT cinder /volumes/", ("x", "old", "new")),
}


@pytest.mark.parametrize("case", CASES)
def test_an_older_value_that_arrives_late_is_corrected(
    world: CloudWorld, requests: Requests, case: str
) -> None:
    made, value, request, (first, old, new) = CASES[case]
    uuid = world.create("s", {"a": made(first)})
    world.settle(uuid, "CREATE_COMPLETE")
    ids = world.ids()
    requests.to_hold = request
    world.update("s", {"a": made(old)})
    world.retry(1)
    world.update("s", {"a": made(new)})
    world.settle(uuid, "UPDATE_COMPLETE")
    desired = value(world)
    [late] = requests.held
    assert late().status < 300
    world.cloud.schedule.run_due()
    assert value(world) != desired
    world.elapse(MINUTE, *clock.LATE)
    world.settle(uuid, "UPDATE_COMPLETE")
    assert value(world) == desired
    assert world.ids() == ids
