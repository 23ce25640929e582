"""A group's plan has to do with the members that differ, and with no other."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenarios.world import World


def group(count: int, value: str = "v%index%", **properties: Any) -> dict[str, Any]:
    definition = {"type": "OS::Heat::TestResource", "properties": {"value": value}}
    return {
        "g": {
            "type": "OS::Heat::ResourceGroup",
            "properties": {"count": count, "resource_def": definition, **properties},
        }
    }


def visited(world: World) -> list[str]:
    """The members that the child's last traversal has visits to, by name."""
    rows = world.rows(
        """SELECT n.label, n.kind FROM graph_node n JOIN stack c ON c.id = n.stack_id
            AND c.traversal = n.traversal
        WHERE c.owner_id IS NOT NULL AND n.kind IN ('update', 'cleanup') ORDER BY n.label"""
    )
    return [f"{row.label} {row.kind}" for row in rows]


def members(world: World) -> dict[str, str]:
    rows = world.rows(
        """SELECT r.name, r.properties->>'value' AS v FROM resource r JOIN stack c ON c.id = r.stack_id
        WHERE c.owner_id IS NOT NULL AND NOT r.deposed AND r.status = 'COMPLETE' ORDER BY r.name"""
    )
    return {row.name: row.v for row in rows}


def made(world: World, count: int) -> str:
    uuid = world.create("s", group(count))
    world.deliver_all()
    return uuid


def changed(world: World, resources: dict[str, Any]) -> None:
    world.update("s", resources)
    world.deliver_all()


def child(world: World) -> str:
    [row] = world.rows("SELECT uuid::text FROM stack WHERE owner_id IS NOT NULL")
    result: str = row.uuid
    return result


def test_adding_a_member_visits_a_single_node(world: World) -> None:
    uuid = made(world, 4)
    changed(world, group(5))
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert visited(world) == ["4 update"]
    assert members(world) == {str(n): f"v{n}" for n in range(5)}


def test_removing_a_member_deletes_a_single_resource(world: World) -> None:
    made(world, 4)
    changed(world, group(3))
    assert visited(world) == ["3 cleanup"]
    assert members(world) == {str(n): f"v{n}" for n in range(3)}


def test_an_unhealthy_member_is_replaced_when_the_group_grows(world: World) -> None:
    made(world, 4)
    world.mark(child(world), "2")
    changed(world, group(5))
    assert [item for item in visited(world) if item.endswith("update")] == ["2 update", "4 update"]
    assert members(world) == {str(n): f"v{n}" for n in range(5)}


def test_another_definition_visits_all(world: World) -> None:
    made(world, 3)
    changed(world, group(4, "w%index%"))
    assert visited(world) == [f"{n} update" for n in range(4)]
    assert members(world) == {str(n): f"w{n}" for n in range(4)}


def test_an_unchanged_template_visits_nothing(world: World) -> None:
    made(world, 3)
    world.mark(child(world), "1", unhealthy=True)
    world.mark(child(world), "1", unhealthy=False)
    changed(world, group(3))
    assert visited(world) == []


@pytest.mark.parametrize("seed", range(10))
def test_a_superseded_growth_is_made_good(world: World, seed: int) -> None:
    """After an interrupted update the last count decides, and each member has the last definition."""
    uuid = made(world, 3)
    world.random.seed(seed)
    for _ in range(4):
        count, value = world.random.randrange(7), world.random.choice(["v%index%", "w%index%"])
        world.update("s", group(count, value))
        world.deliver(world.random.randrange(12))
    world.update("s", group(5, "x%index%"))
    world.deliver_all(shuffle=True, repeat=0.2, lose=0.1)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert members(world) == {str(n): f"x{n}" for n in range(5)}
    assert world.rows("SELECT 1 FROM resource WHERE deposed") == []
