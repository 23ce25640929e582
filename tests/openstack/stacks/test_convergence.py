"""Convergence, adoption and recovery of stacks whose objects others have damaged."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from orchestrator.operations.context import Body
from orchestrator.operations.observation import convergence
from orchestrator.operations.preview.update import preview_update
from tests.openstack.stacks.cloud_world import CloudWorld
from tests.openstack.stacks.requests import Requests
from tests.openstack.stacks.templates import of, ref

RESOURCES: dict[str, Any] = {
    "net": of("OS::Neutron::Net"),
    "subnet": of("OS::Neutron::Subnet", network=ref("net"), cidr="10.70.0.0/24"),
    "port": of("OS::Neutron::Port", network=ref("net"), fixed_ips=[{"subnet": ref("subnet")}]),
    "server": of(
        "OS::Nova::Server",
        image="cirros",
        flavor="m1.tiny",
        networks=[{"port": ref("port")}],
        metadata={"role": "web"},
    ),
    "disk": of("OS::Cinder::Volume", size=1, metadata={"a": "1"}),
}


@pytest.fixture
def uuid(world: CloudWorld) -> str:
    """The id of a stack with a server."""
    uuid = world.create("s", RESOURCES)
    world.settle(uuid, "CREATE_COMPLETE")
    return uuid


def converge(world: CloudWorld, **options: Any) -> Any:
    body = Body(orjson.dumps({"converge": options or None}))
    answer = convergence.converge(world.context, world.stack_row("s"), body)
    world.messages += answer.messages
    return answer.body


def found(answer: Any) -> dict[str, tuple[str, str | None]]:
    return {one["path"]: (one["verdict"], one["action"]) for one in answer["resources"]}


def test_an_untouched_stack_is_in_step(world: CloudWorld, uuid: str) -> None:
    answer = converge(world)
    assert (answer["resources"], answer["observed"]) == ([], len(RESOURCES))


def test_damaged_objects_are_found_and_repaired_and_no_others(
    world: CloudWorld, uuid: str, requests: Requests
) -> None:
    ids, nova = dict(world.ids()), world.openstack.compute
    nova.set_metadata(ids["server"], {"role": "db"})
    world.openstack.block_storage.delete(f"/volumes/{ids['disk']}")
    world.cloud.schedule.run_due()
    plan = converge(world, plan=True)
    assert found(plan) == {"disk": ("MISSING", "recreate"), "server": ("MODIFIED", "update")}
    assert plan["resources"][0]["holds_data"]
    requests.sent.clear()
    converge(world)
    world.settle(uuid, "UPDATE_COMPLETE")
    changes = [sent for sent in requests.sent if not sent.startswith("GET")]
    assert sorted(changes) == sorted(
        [
            f"PUT nova /servers/{ids['server']}/metadata",
            "POST cinder /volumes",
            f"DELETE cinder /volumes/{ids['disk']}",  # of the lost volume, which is not found
        ]
    )
    assert world.ids() == {**ids, "disk": world.ids()["disk"]}
    assert converge(world)["resources"] == []


def test_the_adopted_template_touches_no_object(world: CloudWorld, uuid: str, requests: Requests) -> None:
    ids = dict(world.ids())
    world.openstack.compute.set_metadata(ids["server"], {"role": "db"})
    world.openstack.compute.update_server(ids["server"], {"name": "renamed"})
    adoption = converge(world, adopt=True)["adoption"]
    assert [(op["op"], op["path"]) for op in adoption["patch"]] == [
        ("replace", "/resources/server/properties/metadata"),
        ("add", "/resources/server/properties/name"),
    ]
    requests.sent.clear()
    world.update("s", adoption["template"]["resources"], converge=True)
    world.settle(uuid, "UPDATE_COMPLETE")
    assert [sent for sent in requests.sent if not sent.startswith("GET")] == []
    assert world.ids() == ids
    assert converge(world)["resources"] == []


def test_a_server_in_error_is_rebooted(world: CloudWorld, uuid: str, requests: Requests) -> None:
    ids = dict(world.ids())
    world.openstack.compute.act(ids["server"], "os-resetState", {"state": "error"})
    assert found(converge(world, plan=True)) == {"server": ("FAILED", "recover")}
    requests.sent.clear()
    converge(world)
    world.settle(uuid, "UPDATE_COMPLETE")
    changes = [sent for sent in requests.sent if not sent.startswith("GET")]
    assert changes == [f"POST nova /servers/{ids['server']}/action"]
    assert world.ids() == ids


def test_the_preview_of_an_update_with_converge_observes_the_objects(world: CloudWorld, uuid: str) -> None:
    world.openstack.compute.set_metadata(world.ids()["server"], {"role": "db"})
    body = Body(orjson.dumps({"converge": True}))
    preview = preview_update(world.context, world.stack_row("s"), body, patch=True)
    assert [change.expected.name for change in preview.items["updated"]] == ["server"]
    assert preview.items["replaced"] == []
