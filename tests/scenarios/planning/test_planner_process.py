"""Plans made in a separate process: large stacks, and the cleanup of large updates."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.engine.messages import CheckMessage
from orchestrator.operations.planning import group_subset, process
from orchestrator.operations.reconcile.check import Attempt, check_bulk
from orchestrator.store.nodes import repository
from orchestrator.store.planning import bulk_writer
from tests.scenarios.planning.test_group_plans import group, members, visited
from tests.scenarios.world import World, test_resource


class PlanningWorld(World):
    """A world whose planner processes are started by the test: `started` has their nodes and leases."""

    def __init__(self, url: str, **settings: Any) -> None:
        self.started: list[tuple[int, int]] = []
        super().__init__(url, **settings)

    def plan_apart(self, node_id: int, lease: int) -> None:
        self.started.append((node_id, lease))


def test_a_plan_that_another_process_makes_is_not_begun_again(postgres_url: str) -> None:
    """The planner has the lease of the check that started it, which the database then broke off."""
    world = PlanningWorld(postgres_url, inline_body_size=10)
    try:
        world.create("s", {"a": test_resource()})
        [message] = world.messages
        assert isinstance(message, CheckMessage)
        for again in (False, True):
            check_bulk(world.engine, [message.node_id], 1, Attempt(7, repeats=again))
        assert [node for node, _ in world.started] == [message.node_id]
    finally:
        world.close()


def test_many_removals_are_planned_apart(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MAX_DEPOSED_IN_PLACE", 2)
    world = PlanningWorld(postgres_url)
    try:
        uuid = world.create("s", {name: test_resource(update_replace_value="1") for name in "abc"})
        world.deliver_all()
        world.update("s", {name: test_resource(update_replace_value="2") for name in "abc"})
        while not world.started:
            assert world.deliver()
        [row] = world.rows("SELECT id, label FROM graph_node WHERE kind = 'plan' AND state = 'checking'")
        [(node_id, lease)] = world.started
        assert (row.id, row.label) == (node_id, bulk_writer.CLEANUP_PLAN_LABEL)
        world.deliver_all()
        assert (world.state(uuid), len(world.rows("SELECT 1 FROM resource"))) == ("UPDATE_IN_PROGRESS", 6)
        db = world.database.check_connection(durable=True)
        [visit] = repository.read_claimed(db, [node_id], lease)
        assert world.engine.plan.planner.run(db, visit, lease, enqueue=False) == []
        world.deliver_all()
        assert (world.state(uuid), len(world.rows("SELECT 1 FROM resource"))) == ("UPDATE_COMPLETE", 3)
    finally:
        world.close()


def test_a_large_group_is_planned_apart_when_many_members_differ(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which do is asked once: of a million members that takes seconds."""
    world = PlanningWorld(postgres_url)
    try:
        uuid = world.create("s", group(4))
        world.deliver_all()
        monkeypatch.setattr(process, "MAX_RESOURCES_IN_PLACE", 2)
        monkeypatch.setattr(group_subset, "MAX_SUBSET", 2)
        requests = world.record("changed_members")
        world.update("s", group(5))
        world.deliver_all()
        assert (world.state(uuid), visited(world), world.started) == ("UPDATE_COMPLETE", ["4 update"], [])
        assert len(requests) == 1
        world.update("s", group(5, "w%index%"))
        world.deliver_all()
        [(node_id, lease)] = world.started
        db = world.database.check_connection(durable=True)
        [visit] = repository.read_claimed(db, [node_id], lease)
        assert world.engine.plan.planner.run(db, visit, lease, enqueue=False) == []
        world.deliver_all()
        assert world.state(uuid) == "UPDATE_COMPLETE"
        assert members(world) == {str(n): f"w{n}" for n in range(5)}
    finally:
        world.close()
