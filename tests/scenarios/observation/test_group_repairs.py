"""Repairs of the members of groups, beside scaling operations (operations/adr/0019)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from orchestrator.operations.observation.healing import repair_due_faults
from tests.scenarios.observation.shelf import Shelf
from tests.scenarios.observation.test_repairs import BOX, Healer
from tests.scenarios.world import World


@pytest.fixture
def healer(postgres_url: str) -> Iterator[Healer]:
    shelf = Shelf()
    world = World(postgres_url, types=shelf.types(), observation_interval_seconds=30)
    yield Healer(world, shelf)
    world.close()


def group(count: int = 4, least: int | None = 3) -> dict[str, Any]:
    policy = {"rolling_update": {"min_in_service": least, "max_batch_size": 4}}
    return {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": count, "resource_def": BOX},
        **({"update_policy": policy} if least is not None else {}),
    }


def scaled(desired: int = 3) -> dict[str, Any]:
    return {
        "g": {
            "type": "OS::Heat::AutoScalingGroup",
            "properties": {"min_size": 1, "max_size": 9, "desired_capacity": desired, "resource": BOX},
        },
        "grow": policy(1),
        "shrink": policy(-1),
    }


def policy(adjustment: int) -> dict[str, Any]:
    return {
        "type": "OS::Heat::ScalingPolicy",
        "properties": {
            "auto_scaling_group_id": {"get_resource": "g"},
            "adjustment_type": "change_in_capacity",
            "scaling_adjustment": adjustment,
        },
    }


def members(healer: Healer) -> list[str]:
    rows = healer.world.rows(
        "SELECT name FROM resource WHERE type = 'Shelf::Box' AND NOT deposed ORDER BY name"
    )
    return [row.name for row in rows]


def waits(healer: Healer) -> set[str]:
    """Return why repairs wait."""
    return {row.reason for row in healer.world.rows("SELECT reason FROM repair WHERE status = 'waiting'")}


def relabel(healer: Healer, *names: str) -> None:
    for name in names:
        healer.shelf.objects[healer.id(name)]["label"] = "red"


def test_changed_members_are_updated_as_long_as_enough_are_in_service(healer: Healer):
    healer.make(g=group(count=20, least=18))
    healer.policy("heal")
    relabel(healer, "0", "1", "2", "3")
    healer.round()
    assert sorted(status for _, _, status in healer.heal()) == ["started"] * 2 + ["waiting"] * 2
    assert waits(healer) == {"min_in_service of the group is 18, and 20 members are in service"}
    healer.settle()
    assert sorted(status for _, _, status in healer.heal()) == ["done"] * 2 + ["started"] * 2


def test_missing_members_are_repaired_first_and_count_as_out_of_service(healer: Healer):
    healer.make(g=group())
    healer.policy("heal")
    relabel(healer, "0")
    healer.remove("3")
    healer.round()
    assert sorted(healer.heal()) == [("0", "update", "waiting"), ("3", "recreate", "started")]
    healer.settle()
    assert sorted(healer.heal()) == [("0", "update", "started"), ("3", "recreate", "done")]


def test_a_group_without_a_minimum_is_limited_by_its_share(healer: Healer):
    healer.make(g=group(least=None))
    healer.policy("heal")
    relabel(healer, "0", "1")
    healer.round()
    assert sorted(healer.heal()) == [("0", "update", "started"), ("1", "update", "waiting")]
    assert waits(healer) == {"as many resources of the group are repaired at once as the limits permit"}


def test_a_reduction_removes_the_missing_member(healer: Healer):
    healer.make(**scaled())
    first, *kept = members(healer)[::-1]
    healer.remove(first)
    healer.round()
    healer.world.signal("s", "shrink")
    healer.deliver()
    assert members(healer) == sorted(kept)


def test_a_growth_counts_the_missing_member_as_missing(healer: Healer):
    healer.make(**scaled())
    healer.remove(members(healer)[0])
    healer.round()
    healer.world.signal("s", "grow")
    healer.deliver()
    assert len(healer.shelf.objects) == len(members(healer)) == 3  # two, and one more
    healer.policy("heal")
    healer.round()
    assert healer.heal() == []
    assert len(healer.shelf.objects) == 3


def test_a_scaling_operation_during_a_repair_undoes_nothing(healer: Healer):
    uuid = healer.make(**scaled())
    healer.policy("heal")
    healer.remove(members(healer)[0])
    healer.round()
    healer.world.messages += repair_due_faults(healer.db, healer.world.types)
    healer.world.deliver(2)
    healer.world.signal("s", "grow")
    healer.deliver()
    for _ in range(5):
        healer.world.retry()
        healer.deliver()
    assert healer.world.state(uuid) == "UPDATE_COMPLETE"
    assert len(healer.shelf.objects) == len(members(healer)) == 4


def test_a_repair_after_a_scaling_operation_keeps_the_size(healer: Healer):
    uuid = healer.make(**scaled())
    healer.policy("heal")
    healer.world.signal("s", "grow")
    healer.deliver()
    healer.round()
    healer.remove(members(healer)[1])
    healer.round()
    healer.heal()
    assert healer.world.state(uuid) == "UPDATE_COMPLETE"
    assert len(healer.shelf.objects) == len(members(healer)) == 4


def test_a_lost_project_is_not_created_again_by_scaling(healer: Healer):
    healer.make(**scaled(desired=6))
    healer.shelf.objects.clear()
    healer.round()
    healer.world.signal("s", "grow")
    healer.deliver()
    assert len(healer.shelf.objects) == 1
