"""Members that are marked as unhealthy: the next update of the group replaces them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.groups.booting_group import boot, booting, created, settle, signal
from tests.scenarios.groups.test_groups import members
from tests.scenarios.groups.test_scaled_groups import SIZE, scaling
from tests.scenarios.trees import child, deliver
from tests.scenarios.world import World


def resource_group(count: int, **options: Any) -> dict[str, Any]:
    properties = {"count": count, "resource_def": cloud_thing(type="Cloud::Server")}
    return {"g": {"type": "OS::Heat::ResourceGroup", "properties": properties, **options}}


ROLLING = {"rolling_update": {"max_batch_size": 1, "min_in_service": 1}}
GROUPS = {
    "resource group": resource_group(3),
    "resource group in batches": resource_group(3, update_policy=ROLLING),
    "scaling group": scaling(3, resource=cloud_thing(type="Cloud::Server")),
    "scaling group without a size": scaling(0, min_size=3, resource=cloud_thing(type="Cloud::Server")),
    "scaling group of the size of a policy": scaling(0, resource=cloud_thing(type="Cloud::Server")),
}


@pytest.mark.parametrize("resources", GROUPS.values(), ids=GROUPS)
@pytest.mark.parametrize("is_patch", [True, False])
def test_a_marked_member_is_replaced_by_the_next_update(
    world: World, cloud: Cloud, resources: dict[str, Any], is_patch: bool
) -> None:
    uuid = world.create("s", resources)
    world.deliver_all()
    while len(members(world)) < 3:
        signal(world)
        world.deliver_all()
    before = set(cloud.things)
    marked = list(members(world))[1]
    world.mark(child(world, "g").name, marked)
    if is_patch:
        world.patch("s")
    else:
        world.update("s", resources)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert len(members(world)) == len(cloud.things) == 3
    gone = before - set(cloud.things)
    assert {thing.rpartition("-")[0] for thing in gone} == {marked}


def test_a_member_marked_during_a_resize_is_replaced(world: World, cloud: Cloud) -> None:
    created(world, cloud, booting(0, min_size=2))
    healthy = list(members(world))
    objects = set(cloud.things)
    signal(world)
    world.mark(child(world, "g").name, healthy[0])
    deliver(world)
    settle(world, cloud)
    world.patch("s")
    deliver(world)
    settle(world, cloud)
    assert world.state(world.stack_row("s").uuid) == "UPDATE_COMPLETE"
    assert len(cloud.things) == len(members(world)) == 3
    assert len(objects - set(cloud.things)) == 1


def test_a_booting_member_that_is_marked_is_created_again(world: World, cloud: Cloud) -> None:
    created(world, cloud, booting(0, min_size=2))
    healthy = set(members(world))
    signal(world)
    [stuck] = set(members(world)) - healthy
    world.mark(child(world, "g").name, stuck)
    for _ in range(3):
        boot(world, cloud)
    settle(world, cloud)
    world.patch("s")
    deliver(world)
    settle(world, cloud)
    assert len(cloud.things) == len(members(world)) == 3
    assert world.outputs("s")["size"] == 3
    assert cloud.made[stuck] == 2


def test_a_member_marked_during_an_update_of_the_group_is_replaced(world: World, cloud: Cloud) -> None:
    uuid = created(world, cloud, booting())
    first, second = members(world)
    world.update("s", booting(2, "w"), outputs=SIZE)
    deliver(world)
    world.mark(child(world, "g").name, second)
    settle(world, cloud)
    world.patch("s")
    deliver(world)
    settle(world, cloud)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert (cloud.made[first], cloud.made[second]) == (1, 2)
    assert set(members(world).values()) == {"w"}
    assert len(cloud.things) == 2
