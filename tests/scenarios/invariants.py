"""The invariants of an idle installation, and the desired things of its provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.store.maintenance.stale_inputs import stale_inputs
from tests.scenarios.levels import Level
from tests.scenarios.provider import Provider
from tests.scenarios.world import World


def verify(world: World, provider: Provider, resources: Mapping[str, Any], files: Mapping[str, str]) -> None:
    """Exactly the things of these resources are there, with the values they give, and nothing is open."""
    sound(world, provider)
    roots = world.rows("SELECT id FROM stack WHERE owner_id IS NULL AND deleted_at IS NULL")
    if not resources and not roots:
        assert (provider.things, world.rows("SELECT name FROM resource")) == ({}, [])
        return
    [root] = roots
    assert _verify(Level(world, root.id, resources, files, {}), provider) == len(provider.things)


def _verify(level: Level, provider: Provider) -> int:
    """Verify a stack and its descendants; return the number of their things."""
    rows, count = level.rows, 0
    assert [row.name for row in rows] == sorted(level.resources), level.place
    assert not [row.name for row in rows if row.deposed or row.status != "COMPLETE"], level.place
    for row in rows:
        snippet = level.resources[row.name]
        assert row.type == snippet["type"], row.name
        properties = snippet.get("properties") or {}
        expected = {key: level.resolved(value) for key, value in properties.items()}
        if row.type.startswith("Sim::"):
            count += 1
            thing = provider.things[row.physical_id]
            had = {key: value for key, value in thing.properties.items() if value is not None}
            assert had == {"looks": 0, **expected}, row.name
            assert (thing.opened, thing.error, thing.paused) == (None, "", False)
        elif row.type in level.files:
            child = level.child(row.name)
            assert (child.stack.uuid, child.stack.status) == (row.physical_id, "COMPLETE"), row.name
            assert row.attributes == child.outputs(), row.name
            count += _verify(child, provider)
        else:
            assert row.attributes["value"] == expected["value"], row.name
    return count


def sound(world: World, provider: Provider) -> None:
    """The invariants of an idle system: no open operation, no unknown thing, no broken rule."""
    assert provider.invalid == []
    assert world.rows("SELECT name, op FROM resource WHERE op IS NOT NULL") == []
    nodes = """SELECT n.label, n.state FROM graph_node n JOIN stack s ON s.id = n.stack_id
        WHERE n.traversal = s.traversal AND n.state IN ('checking', 'queued', 'waiting')"""
    assert world.rows(nodes) == []
    recorded = {row.physical_id for row in world.rows("SELECT physical_id FROM resource")}
    assert set(provider.things) <= recorded, "leaked"
    assert world.rows("SELECT name FROM stack WHERE status = 'IN_PROGRESS'") == []
    orphans = """SELECT c.name FROM stack c LEFT JOIN resource r
        ON r.id = c.parent_resource_id AND r.stack_id = c.owner_id
        WHERE c.owner_id IS NOT NULL AND c.deleted_at IS NULL AND r.id IS NULL"""
    assert world.rows(orphans) == []
    remaining = (
        "SELECT r.name FROM resource r JOIN stack s ON s.id = r.stack_id WHERE s.deleted_at IS NOT NULL"
    )
    assert world.rows(remaining) == []
    assert _stale(world) == []
    _told_in_order(world)


def _stale(world: World) -> list[str]:
    """The resources of COMPLETE stacks that were built with former outputs of others."""
    with world.database.borrow(hot=False) as db:
        return [f"{stale.resource} of {stale.stack_name}" for stale in stale_inputs(db)]


def _told_in_order(world: World) -> None:
    """Every traversal of a stack has a single first event and at most a single last event."""
    query = """SELECT e.stack_id, e.action, e.status FROM event e
        WHERE e.resource_type = 'OS::Heat::Stack' AND e.physical_id IS NOT NULL  -- not of queued actions
        ORDER BY e.stack_id, e.id"""
    running: dict[int, str | None] = {}
    for stack_id, action, status in world.rows(query):
        if status == "IN_PROGRESS":
            running[stack_id] = action
        else:
            assert running[stack_id] == action, (action, status)
            running[stack_id] = None
