"""Groups of resources: who is a member, in which batches they change, and what becomes of the rest."""

from __future__ import annotations

from typing import Any

from tests.scenarios.world import World, test_resource


def group(count: int, value: str = "v%index%", **more: Any) -> dict[str, Any]:
    policy = more.pop("update_policy", None)
    snippet: dict[str, Any] = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": count, "resource_def": test_resource(value), **more},
    }
    return snippet if policy is None else {**snippet, "update_policy": policy}


def members(world: World) -> dict[str, str]:
    rows = world.rows(
        """SELECT r.name, r.properties->>'value' AS v FROM resource r JOIN stack s ON s.id = r.stack_id
        WHERE s.owner_id IS NOT NULL AND NOT r.leftover ORDER BY r.id"""
    )
    return {row.name: row.v for row in rows}


def update(world: World, resources: dict[str, Any]) -> None:
    world.update("s", resources)
    world.deliver_all()


def test_a_group_grows_and_shrinks_at_its_end(world: World) -> None:
    uuid = world.create("s", {"g": group(0)})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert members(world) == {}
    for count in (3, 1, 3):
        update(world, {"g": group(count)})
        assert world.state(uuid) == "UPDATE_COMPLETE"
        assert members(world) == {str(n): f"v{n}" for n in range(count)}
