"""A process that plans a large stack has time to start, however short leases are."""

from __future__ import annotations

import pytest

from tests.scenarios.world import World, test_resource


def test_a_planner_that_starts_slowly_is_not_taken_for_lost(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []
    monkeypatch.setattr(World, "plan_apart", lambda _, node_id, lease: started.append(node_id))
    world = World(postgres_url, inline_body_size=10, lease_seconds=1.0)
    try:
        world.create("s", {"a": test_resource()})
        world.deliver_all()
        [row] = world.rows(
            "SELECT id, leased_until - now() > interval '20 s' AS long FROM graph_node WHERE kind = 'plan'"
        )
        assert (started, row.long) == ([row.id], True)
    finally:
        world.close()
