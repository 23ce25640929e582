"""Ports whose attachment has no answer: Nova lists a port before the hypervisor attaches it, or fails."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from orchestrator.json_types import JsonObject
from orchestrator.resources.openstack.nova.server import port_release
from tests.openstack.stacks.cloud_world import CloudWorld
from tests.openstack.stacks.templates import of

LATER = 3600.0  # seconds
NO_ANSWER = {"service": "nova", "method": "POST", "path": "/os-interface$", "drop": True, "after": True}


def resources(*ports: str, flavor: str = "m1.tiny") -> dict[str, JsonObject]:
    """Two ports, and a server with some of them."""
    return {
        "one": of("OS::Neutron::Port", network="private"),
        "two": of("OS::Neutron::Port", network="private"),
        "server": of(
            "OS::Nova::Server",
            image="cirros",
            flavor=flavor,
            flavor_update_policy="REPLACE",
            networks=[{"port": {"get_resource": port}} for port in ports],
        ),
    }


def attached_slowly(world: CloudWorld, error: str | None) -> None:
    """Let the next attachment have no answer, and end later, perhaps with an error."""
    fault = {"error": error, "delay": LATER, "times": 1}
    world.cloud.faults.set({"attach_interface": fault, "api": [{**NO_ANSWER, "times": 1}]})


def end_attachment(world: CloudWorld) -> None:
    """Let the hypervisor attach the port, or fail."""
    [row] = [row for row in world.cloud.state.table("pending_change") if row["name"] == "interface.attached"]
    world.cloud.state.table("pending_change").remove(row["id"])
    world.cloud.nova.interfaces._attached(*row["arguments"])


def attached(world: CloudWorld) -> Sequence[str]:
    """Return the names of the attached ports, as soon as they are listed."""
    names = {id_: name for name, id_ in world.ids().items()}
    return sorted(
        names[port["port_id"]] for port in world.openstack.compute.interfaces(world.ids()["server"])
    )


@pytest.mark.parametrize("error", ["the hypervisor refuses", None], ids=["fails", "succeeds"])
def test_an_update_waits_for_the_end_of_an_attachment_without_an_answer(
    world: CloudWorld, error: str | None
) -> None:
    uuid = world.create("s", resources("one"))
    world.settle(uuid, "CREATE_COMPLETE")
    attached_slowly(world, error)
    world.update("s", resources("one", "two"))
    world.retry(6)
    assert attached(world) == ["one", "two"]
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    end_attachment(world)
    world.settle(uuid, "UPDATE_COMPLETE")
    assert attached(world) == ["one", "two"]


@pytest.mark.parametrize("error", ["the hypervisor refuses", None], ids=["fails", "succeeds"])
def test_a_rollback_waits_for_the_end_of_an_attachment_without_an_answer(
    world: CloudWorld, error: str | None
) -> None:
    uuid = world.create("s", resources("one"))
    world.settle(uuid, "CREATE_COMPLETE")
    server = world.ids()["server"]
    world.cloud.faults.set({"spawn": {"delay": LATER}})
    world.update("s", resources("one", flavor="m1.small"))
    world.retry(5)
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    attached_slowly(world, error)
    world.act("s", "cancel_update")
    world.retry(8)
    assert world.ids()["server"] == server
    assert attached(world) == ["one"]
    assert world.state(uuid) == "ROLLBACK_IN_PROGRESS", world.causes()
    end_attachment(world)
    world.settle(uuid, "ROLLBACK_COMPLETE")
    assert attached(world) == ["one"]


def test_a_port_that_stays_down_counts_as_attached_after_a_while(
    world: CloudWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port_release, "ATTACH_SECONDS", -100.0)
    uuid = world.create("s", resources("one"))
    world.settle(uuid, "CREATE_COMPLETE")
    attached_slowly(world, None)
    world.update("s", resources("one", "two"))
    world.settle(uuid, "UPDATE_COMPLETE")
