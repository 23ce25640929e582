"""Servers on a port of the template that an update replaces: it is cancelled, or a suspended server broke."""

from __future__ import annotations

import pytest

from orchestrator.json_types import JsonObject
from tests.openstack.stacks.cloud_world import CloudWorld
from tests.openstack.stacks.templates import of

LATER = {"delay": 3600.0}  # in seconds


def resources(flavor: str) -> dict[str, JsonObject]:
    return {
        "port": of("OS::Neutron::Port", network="private"),
        "server": of(
            "OS::Nova::Server",
            image="cirros",
            flavor=flavor,
            flavor_update_policy="REPLACE",
            networks=[{"port": {"get_resource": "port"}}],
        ),
    }


@pytest.fixture
def replacing(world: CloudWorld) -> str:
    """Return a stack whose server is being replaced by one that has no host yet. Once that is deleted, its
    port stays in use for an hour.
    """
    uuid = world.create("s", resources("m1.tiny"))
    world.settle(uuid, "CREATE_COMPLETE")
    world.cloud.faults.set({"schedule": LATER, "destroy": {**LATER, "times": 1}})
    world.update("s", resources("m1.small"))
    world.retry(5)
    [server] = [row for row in world.resources("server") if not row.deposed]
    assert f"{server.action}_{server.status}" == "CREATE_IN_PROGRESS"
    return uuid


def free_port(world: CloudWorld) -> None:
    """Let the host notice that its server is deleted."""
    [row] = [row for row in world.cloud.state.table("pending_change") if "ports_freed" in row["name"]]
    world.cloud.state.table("pending_change").remove(row["id"])
    world.cloud.nova.servers._ports_freed(*row["arguments"])


def test_a_rollback_waits_for_the_port_that_the_deleted_replacement_holds(
    world: CloudWorld, replacing: str
) -> None:
    server = world.ids()["server"]
    world.act("s", "cancel_update")
    world.retry(5)
    assert world.state(replacing) == "ROLLBACK_IN_PROGRESS", world.causes()
    free_port(world)
    world.settle(replacing, "ROLLBACK_COMPLETE")
    assert world.ids()["server"] != server
    [attached] = world.openstack.compute.interfaces(world.ids()["server"])
    assert attached["port_id"] == world.ids()["port"]


def test_an_update_waits_for_the_port_that_the_deleted_replacement_holds(
    world: CloudWorld, replacing: str
) -> None:
    world.act("s", "cancel_without_rollback")
    world.retry(5)
    world.cloud.faults.set({"destroy": {**LATER, "times": 1}})
    world.update("s", resources("m1.small"))
    world.retry(5)
    assert world.state(replacing) == "UPDATE_IN_PROGRESS", world.causes()
    free_port(world)
    world.settle(replacing, "UPDATE_COMPLETE")
    [attached] = world.openstack.compute.interfaces(world.ids()["server"])
    assert attached["port_id"] == world.ids()["port"]


def test_a_server_that_breaks_while_it_is_suspended_is_replaced_by_the_update(world: CloudWorld) -> None:
    uuid = world.create("s", resources("m1.tiny"))
    world.settle(uuid, "CREATE_COMPLETE")
    before = world.ids()
    world.act("s", "suspend")
    world.settle(uuid, "SUSPEND_COMPLETE")
    world.openstack.compute.act(before["server"], "os-resetState", {"state": "error"})
    world.act("s", "resume")
    world.settle(uuid, "RESUME_FAILED")
    [(_, cause)] = world.causes()
    assert "in vm_state error" in cause
    world.update("s", resources("m1.tiny"))
    world.settle(uuid, "UPDATE_COMPLETE")
    [attached] = world.openstack.compute.interfaces(world.ids()["server"])
    assert (attached["port_id"], world.ids()["server"] != before["server"]) == (before["port"], True)
    assert world.openstack.compute.current_server(before["server"]) is None
