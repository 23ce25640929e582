"""Updates of Neutron's objects depend on the revision that they were decided for."""

from __future__ import annotations

from orchestrator.clients.openstack.networking.network import NETWORKS
from orchestrator.json_types import JsonObject
from tests.openstack.stacks.cloud_world import CloudWorld
from tests.openstack.stacks.requests import Requests
from tests.openstack.stacks.templates import of

UPDATE = "PUT neutron /networks/"


def resources(name: str) -> dict[str, JsonObject]:
    return {"net": of("OS::Neutron::Net", name=name)}


def shown(world: CloudWorld) -> JsonObject:
    return world.openstack.network.find(NETWORKS, world.ids()["net"]) or {}


def test_an_update_that_arrives_after_a_newer_one_has_no_effect(
    world: CloudWorld, requests: Requests
) -> None:
    uuid = world.create("s", resources("first"))
    world.settle(uuid, "CREATE_COMPLETE")
    requests.to_hold = UPDATE
    world.update("s", resources("old"))
    world.retry(1)
    world.update("s", resources("new"))
    world.settle(uuid, "UPDATE_COMPLETE")
    [late] = requests.held
    assert late().status == 412
    assert shown(world)["name"] == "new"


def test_an_object_that_changes_before_its_update_is_compared_again(
    world: CloudWorld, requests: Requests
) -> None:
    uuid = world.create("s", resources("first"))
    world.settle(uuid, "CREATE_COMPLETE")
    id_ = world.ids()["net"]
    requests.before[UPDATE] = lambda: world.openstack.network.update(NETWORKS, id_, {"description": "theirs"})
    world.update("s", resources("new"))
    world.settle(uuid, "UPDATE_COMPLETE")
    assert shown(world)["name"] == "new"
    assert len([sent for sent in requests.sent if sent.startswith(UPDATE)]) == 3  # one is theirs
