"""Scaling of groups with members that are stuck while they boot or were never created."""

from __future__ import annotations

import pytest

from tests.scenarios.fake_cloud import Cloud
from tests.scenarios.groups.booting_group import boot, booting, created, settle, signal
from tests.scenarios.groups.test_groups import members, write
from tests.scenarios.groups.test_scaled_groups import SIZE
from tests.scenarios.trees import child, deliver
from tests.scenarios.world import World


def test_a_stuck_member_does_not_block_scaling(world: World, cloud: Cloud) -> None:
    created(world, cloud, booting())
    healthy = set(members(world))
    signal(world)
    [stuck] = set(members(world)) - healthy
    signal(world)
    boot(world, cloud, stuck)
    assert len(members(world)) == 4
    signal(world, "down")
    boot(world, cloud, stuck)
    assert healthy < set(members(world))
    assert stuck not in members(world)
    settle(world, cloud)
    assert len(cloud.things) == 3


def test_a_stuck_member_can_be_removed_by_name(world: World, cloud: Cloud) -> None:
    created(world, cloud, booting(2, cooldown=600))
    write(world, "UPDATE resource SET metadata = '{}' WHERE name = 'g'")
    healthy = set(members(world))
    signal(world)
    [stuck] = set(members(world)) - healthy
    signal(world, "down", {"remove_members": [stuck]})
    settle(world, cloud)
    assert set(members(world)) == healthy
    assert len(cloud.things) == 2
    assert world.outputs("s")["size"] == 2


def settle_without_boot(world: World) -> None:
    for _ in range(3):
        world.sweep_once()
        deliver(world)


@pytest.mark.parametrize("timed_out", [False, True])
def test_an_update_to_a_smaller_size_removes_the_stuck_member(
    world: World, cloud: Cloud, timed_out: bool
) -> None:
    uuid = created(world, cloud, booting(3))
    healthy = set(members(world))
    signal(world)
    if timed_out:
        world.elapse(7200, "action")
        settle_without_boot(world)
        assert child(world, "g").state == "UPDATE_FAILED"
        assert world.outputs("s")["size"] == 3
    world.update("s", booting(2), outputs=SIZE)
    deliver(world)
    settle(world, cloud)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert set(members(world)) < healthy
    assert len(cloud.things) == len(members(world)) == 2


def test_members_that_were_never_created_are_removed_before_the_others(world: World, cloud: Cloud) -> None:
    created(world, cloud, booting())
    healthy = set(members(world))
    exact = booting()
    exact["up"]["properties"] |= {"adjustment_type": "exact_capacity", "scaling_adjustment": 6}
    world.update("s", exact, outputs=SIZE)
    deliver(world)
    settle(world, cloud)
    world.signal("s", "up")
    world.deliver(2)  # the child's update is accepted, and not planned yet
    assert len(members(world)) == 2
    signal(world, "down", {"remove_members": [sorted(healthy)[0]]})
    signal(world, "down", times=3)
    settle(world, cloud)
    assert len(members(world)) == 2
    assert sorted(healthy)[1] in members(world)


@pytest.mark.parametrize("declared", [True, False])
def test_a_member_beyond_its_ready_timeout_is_removed_before_others_that_boot(
    world: World, cloud: Cloud, declared: bool
) -> None:
    limits = {"g": {"*": {"ready_timeout": 60}}} if declared else {}
    environment = {"resource_registry": {"resources": limits}}
    created(world, cloud, booting(), environment=environment)
    healthy = list(members(world))
    signal(world, times=2)
    first, second = (name for name in members(world) if name not in healthy)
    world.elapse(61, "operation", where="name = :name", name=second)
    signal(world, "down")
    remaining = first if declared else second
    assert list(members(world)) == [*healthy, remaining]


@pytest.mark.parametrize("is_early", [True, False])
def test_signals_take_over_a_cancelled_update_with_a_stuck_member(
    world: World, cloud: Cloud, is_early: bool
) -> None:
    uuid = created(world, cloud, booting())
    world.update("s", booting(2, "w"), outputs=SIZE)
    deliver(world)
    stuck = next(name for name, value in members(world).items() if value == "w")
    if is_early:
        signal(world)
    world.act("s", "cancel_without_rollback")
    deliver(world)
    if not is_early:
        signal(world)
    for _ in range(4):
        boot(world, cloud, stuck)
    assert world.state(uuid) == "UPDATE_FAILED"
    assert len(members(world)) == 3
    signal(world, "down", {"remove_members": [stuck]})
    for _ in range(4):
        boot(world, cloud, stuck)
    assert len(members(world)) == 2
    assert stuck not in members(world)
    assert child(world, "g").state == "UPDATE_COMPLETE"
    assert world.resource("g").op is None
    assert world.rows("SELECT 1 FROM signal") == []
    world.update("s", booting(3, "w"), outputs=SIZE)
    deliver(world)
    settle(world, cloud)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert len(members(world)) == len(cloud.things) == 3
