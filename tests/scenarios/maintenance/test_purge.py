"""Expired rows of stacks, events and visits are purged, without disturbing running work."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from orchestrator.operations.maintenance import purge
from orchestrator.operations.maintenance.purge import IncrementalPurge, count_purgeable
from orchestrator.store.events import events
from tests.scenarios.fake_cloud import Cloud
from tests.scenarios.maintenance.purge_world import (
    EVERYTHING,
    NOTHING,
    TABLES,
    count,
    counts,
    db,
    execute,
    made,
    updated,
)
from tests.scenarios.stacks.test_random_updates import live_through
from tests.scenarios.world import World, test_resource

__all__ = ["db"]  # fixtures

# Stacks.


def test_a_deleted_stack_goes_with_everything_it_left_and_no_other(world: World, db):
    empty = counts(world)
    made(world, "kept", "other")
    kept = counts(world)
    made(world, "gone")
    world.delete("gone")
    world.deliver_all()
    assert purge.purge(db, NOTHING) == {}
    gone = purge.purge(db, replace(NOTHING, deleted_seconds=0))
    assert gone["deleted stacks"] == 1
    assert counts(world) == kept
    assert kept != empty


def test_a_parent_stays_while_its_child_does(world: World, db):
    parent, child = made(world, "parent"), made(world, "child")
    for name in ("parent", "child"):
        world.delete(name)
    world.deliver_all()
    execute(
        world,
        f"""UPDATE stack SET owner_id = p.id, root_id = p.id, depth = 1, deleted_at = NULL, action = 'CREATE'
        FROM stack p WHERE p.uuid = '{parent}' AND stack.uuid = '{child}'""",
    )
    assert "deleted stacks" not in purge.purge(db, EVERYTHING)
    execute(world, f"UPDATE stack SET deleted_at = now(), action = 'DELETE' WHERE uuid = '{child}'")
    assert purge.purge(db, EVERYTHING)["deleted stacks"] == 2


# Events.


def test_old_events_go_but_not_how_the_last_action_ended(world: World, db):
    uuid = made(world)
    updated(world, "w")
    world.elapse(100 * 86_400, "event", "action")
    assert purge.purge(db, replace(NOTHING, events_seconds=101 * 86_400)) == {}
    purge.purge(db, replace(NOTHING, events_seconds=86_400))
    assert world.events(uuid) == ["s UPDATE_COMPLETE"]


def test_events_of_an_action_in_progress_stay_however_old(world: World, db):
    uuid = made(world)
    world.update("s", {"a": test_resource("w"), "b": test_resource(requires=["a"])})
    world.deliver(2)
    before = [event for event in world.events(uuid) if "UPDATE" in event]
    assert "a UPDATE_COMPLETE" in before
    purge.purge(db, EVERYTHING)
    assert world.events(uuid) == before


def test_the_newest_event_is_never_purged(world: World, db):
    uuid = made(world)
    execute(
        world,
        """INSERT INTO event (stack_id, resource_name, resource_type, action, status, reason)
        SELECT id, 'late', 'T', 'CREATE', 'COMPLETE', '' FROM stack""",
    )
    purge.purge(db, EVERYTHING)
    assert world.events(uuid) == ["s CREATE_COMPLETE", "late CREATE_COMPLETE"]


@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_a_follower_whose_marker_was_purged_goes_on_where_it_was(world: World, db, direction):
    made(world)
    updated(world, "w")
    stack = world.stack_row("s")
    query = events.EventQuery(sort_dir=direction)
    everything = [event.id for event in events.list_events(world.database, stack, query)]
    purge.purge(db, replace(NOTHING, events_seconds=0))
    remaining = {event.id for event in events.list_events(world.database, stack, query)}
    assert remaining < set(everything)
    for place, marker in enumerate(everything):
        after = replace(query, marker=events.event_uuid(stack.uuid, marker))
        observed = [event.id for event in events.list_events(world.database, stack, after)]
        assert observed == [id_ for id_ in everything[place + 1 :] if id_ in remaining]


# Finished visits and other leftover rows.


def test_finished_visits_are_purged_and_unfinished_nodes_of_a_failed_stack_stay(world: World, db):
    made(world)
    world.create(
        "f", {"a": test_resource(fail=True), "b": test_resource(requires=["a"]), "c": test_resource()}
    )
    world.deliver_all()
    assert world.stack_row("f").state == "CREATE_FAILED"
    assert purge.purge(db, NOTHING) == {}
    purge.purge(db, replace(NOTHING, nodes_seconds=0))
    remaining = {(row.label, row.state) for row in world.rows("SELECT label, state FROM graph_node")}
    assert remaining == {("a", "failed"), ("b", "blocked"), ("finish", "failed")}
    updated(world, "w")
    world.update("f", {"a": test_resource(), "b": test_resource(requires=["a"])})
    world.deliver_all()
    assert {world.stack_row(name).state for name in "sf"} == {"UPDATE_COMPLETE"}


def test_a_visit_that_runs_on_after_its_stack_has_failed_is_not_taken_away(world: World, db):
    made(world)
    execute(
        world,
        """UPDATE graph_node SET state = 'checking', lease = 1, leased_until = now(), observed_ready = false,
        observed_ready_at = NULL WHERE label = 'a'""",
    )
    updated_before = counts(world)
    gone = purge.purge(db, EVERYTHING)
    assert [row.label for row in world.rows("SELECT label FROM graph_node")] == ["a"]
    assert "revisions" not in gone
    assert count(world, "revision") == updated_before["revision"]


def test_causes_of_old_failures_and_handled_orphans_are_purged(world: World, db):
    world.create("s", {"a": test_resource(fail=True)})
    world.deliver_all()
    world.update("s", {"a": test_resource(fail=True)})
    world.deliver_all()
    execute(
        world,
        """INSERT INTO orphan (stack_id, resource_id, token, type, physical_id, handled_at)
        VALUES (1, 1, 't', 'T', 'done', now()), (1, 1, 't', 'T', 'open', NULL)""",
    )
    assert count(world, "failure") == 2
    gone = purge.purge(db, EVERYTHING)
    assert (gone["failures"], gone["orphans"]) == (1, 1)
    assert [row.traversal for row in world.rows("SELECT traversal FROM failure")] == [2]
    assert [row.physical_id for row in world.rows("SELECT physical_id FROM orphan")] == ["open"]


# The whole of it.


def test_audit_records_are_purged_by_age(world: World, db):
    db.execute("INSERT INTO audit_record (action, created_at) VALUES ('old', now() - interval '2 days')")
    db.execute("INSERT INTO audit_record (action) VALUES ('new')")
    assert purge.purge(db, NOTHING) == {}
    policy = replace(NOTHING, audit_seconds=86_400)
    assert count_purgeable(db, policy) == {"audit records": 1}
    assert purge.purge(db, policy) == {"audit records": 1}
    assert db.execute("SELECT action FROM audit_record").fetchall() == [("new",)]


def test_a_dry_run_changes_nothing_and_reports_the_rows_to_purge(world: World, db):
    made(world)
    updated(world, *"abcd")
    made(world, "gone", "other")
    world.delete("gone")
    world.deliver_all()
    world.create("f", {"a": test_resource(fail=True)})
    world.deliver_all()
    before = counts(world)
    reported = count_purgeable(db, EVERYTHING)
    assert counts(world) == before
    assert reported == purge.purge(db, EVERYTHING)
    assert {"deleted stacks", "revisions", "definitions", "texts", "events", "nodes"} <= set(reported)


def wait_until_free(db: psycopg.Connection[Any]) -> None:
    """Return when the server has noticed that a connection that held the lock is gone."""
    db.execute("SELECT pg_advisory_lock(%s)", (purge.LOCK,))  # a connection may lock it twice


def test_a_tick_does_a_little_and_goes_on_at_the_next(world: World, db, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(purge, "SLICE", 2)
    made(world)
    updated(world, *"abcd")
    item = IncrementalPurge(EVERYTHING, _begin_at=0.0)
    before = count(world, "event")
    item.tick(db, budget_seconds=0.0)
    remaining = [sum(counts(world).values())]
    with world.database.connect() as elsewhere:
        other = IncrementalPurge(EVERYTHING, _begin_at=0.0)
        other.tick(elsewhere, budget_seconds=60.0)  # the first is at it
        assert sum(counts(world).values()) == remaining[0]
        while item._pass is not None:
            item.tick(db, budget_seconds=0.0)
            remaining.append(sum(counts(world).values()))
        assert len(set(remaining)) > 5
        assert count(world, "event") < before
        assert count_purgeable(db, EVERYTHING) == {}
        made(world, "more")
        item.tick(db)  # not again so soon
        other._begin_at = 0.0
        other.tick(elsewhere)  # nor another, while the first is there
        assert count_purgeable(db, EVERYTHING) != {}
        db.close()
        wait_until_free(elsewhere)
        other._begin_at = 0.0
        other.tick(elsewhere, budget_seconds=60.0)
        assert count_purgeable(elsewhere, EVERYTHING) == {}


def test_a_failed_tick_is_followed_by_a_fresh_tick(world: World, db, monkeypatch: pytest.MonkeyPatch):
    made(world)
    monkeypatch.setattr(purge.purging, "STACKS", f"{purge.purging.STACKS} nonsense")
    item = IncrementalPurge(EVERYTHING, _begin_at=0.0)
    with pytest.raises(psycopg.Error):
        item.tick(db)
    monkeypatch.undo()
    item._begin_at = 0.0
    item.tick(db, budget_seconds=60.0)
    assert count_purgeable(db, EVERYTHING) == {}


def test_a_tick_goes_on_after_its_connection_was_lost(world: World, db, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(purge, "SLICE", 2)
    made(world)
    item = IncrementalPurge(EVERYTHING, _begin_at=0.0)
    item.tick(db, budget_seconds=0.0)
    db.close()
    with world.database.connect() as another:
        with pytest.raises(psycopg.OperationalError):
            item.tick(another, budget_seconds=60.0)
        wait_until_free(another)
        item._begin_at = 0.0
        item.tick(another, budget_seconds=60.0)
        assert count_purgeable(another, EVERYTHING) == {}


@pytest.mark.parametrize("seed", range(6))
def test_purged_at_any_moment_the_last_template_wins(
    postgres_url: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud = Cloud()
    world = World(postgres_url, seed=seed, types=cloud.types())
    dice = random.Random(seed)
    try:
        with world.database.connect(hot=True, replan=True) as db:
            deliver = world.deliver_one

            def purging(message: Any) -> None:
                live = world.rows("SELECT 1 FROM stack WHERE deleted_at IS NULL")  # whose state is asked
                if live and dice.random() < 0.2:
                    purge.purge(db, EVERYTHING)
                deliver(message)

            monkeypatch.setattr(world, "deliver_one", purging)
            live_through(world, cloud, random.Random(seed))
            purge.purge(db, EVERYTHING)
            assert [count(world, table) for table in TABLES] == [0] * len(TABLES)
    finally:
        world.close()
