"""The order of events: each follows its causes, and no reader of the stream misses an event."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import text

from orchestrator.operations.reconcile.check import check_local
from orchestrator.store.events.events import EventQuery, EventRow, list_events, read_sequence
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.plans import watched
from tests.scenarios.world import World, test_resource


def after(world: World, sequence: str, limit: int = 100) -> list[EventRow]:
    query = EventQuery(sort_dir="asc", after=read_sequence(sequence), limit=limit)
    return list(list_events(world.database, world.stack_row("s"), query))


def names(events: list[EventRow]) -> list[str]:
    return [event.resource_name for event in events]


def emit(connection: Any, name: str) -> None:
    insert = """INSERT INTO event (stack_id, resource_name, resource_type, action, status, reason)
        SELECT id, :name, 'T', 'CREATE', 'COMPLETE', 'state changed' FROM stack"""
    connection.execute(text(insert), {"name": name})


@pytest.mark.parametrize("status", ["IN_PROGRESS", "COMPLETE"])
def test_a_follower_waits_for_an_event_that_is_committed_late(world: World, status: str):
    world.create("s", {"a": test_resource()})
    world.deliver_all()
    with world.database.engine.begin() as connection:
        connection.execute(text("UPDATE stack SET status = :s"), {"s": status})
    start = after(world, "0.0")[-1].sequence
    with world.database.engine.connect() as late:
        begun = late.begin()
        emit(late, "early bird")
        with world.database.engine.begin() as quick:
            emit(quick, "overtaker")
        observed = after(world, start)
        assert names(observed) == []
        begun.commit()
    assert names(after(world, start)) == ["early bird", "overtaker"]


def test_pages_of_a_follower_have_every_event_once(world: World):
    world.create("s", {f"r{n}": test_resource() for n in range(7)})
    world.deliver_all()
    every = after(world, "0.0")
    assert len(every) == 16
    observed: list[EventRow] = []
    place = "0.0"
    while page := after(world, place, limit=3):
        observed += page
        place = page[-1].sequence
    assert observed == every


def test_in_a_batch_each_resource_begins_before_it_ends(world: World):
    world.create("s", {f"r{n:02}": test_resource() for n in range(40)})
    world.deliver()
    rings = list(world.messages)
    world.messages.clear()
    ids = [message.node_id for message in rings]
    world.random.shuffle(ids)
    check_local(world.engine, ids, 1)
    reported: dict[str, list[str]] = {}
    for event in after(world, "0.0"):
        reported.setdefault(event.resource_name, []).append(event.status)
    del reported["s"]
    assert set(map(tuple, reported.values())) == {("IN_PROGRESS", "COMPLETE")}


def test_a_replaced_resource_has_an_update_event_before_its_replacement_is_created(world: World):
    uuid = world.create("s", {"a": cloud_thing(value="1"), "b": test_resource("1", update_replace=True)})
    world.deliver_all()
    reported = len(world.events(uuid))
    old = dict(world.rows("SELECT name, physical_id FROM resource"))
    world.update("s", {"a": cloud_thing(value="2"), "b": test_resource("2", update_replace=True)})
    world.deliver_all()
    new = dict(world.rows("SELECT name, physical_id FROM resource"))
    events = [event for event in after(world, "0.0")[reported:] if event.resource_name in "ab"]
    for name in "ab":
        mine = [(f"{e.action}_{e.status}", e.physical_id) for e in events if e.resource_name == name]
        assert mine == [
            ("UPDATE_IN_PROGRESS", old[name]),
            ("UPDATE_COMPLETE", old[name]),
            ("CREATE_IN_PROGRESS", mine[2][1]),
            ("CREATE_COMPLETE", new[name]),
            ("DELETE_IN_PROGRESS", old[name]),
            ("DELETE_COMPLETE", old[name]),
        ]


def test_a_replaced_failed_resource_has_no_update_event(world: World, cloud: Cloud):
    uuid = world.create("s", {"a": cloud_thing(errors=1, final=True)})
    world.deliver_all()
    reported = len(world.events(uuid))
    world.update("s", {"a": cloud_thing(value="2")})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert "a UPDATE_COMPLETE" not in world.events(uuid)[reported:]


def test_the_stack_s_own_end_comes_last_and_once_in_any_order_of_delivery(world: World):
    resources = {
        "a": cloud_thing(looks=1),
        "b": cloud_thing(("a",)),
        "c": test_resource(requires=["a"]),
        "d": test_resource(requires=["b", "c"]),
    }
    uuid = world.create("s", resources)
    world.deliver_all(shuffle=True, repeat=0.3, lose=0.2)
    every = [f"{event.resource_name} {event.action}_{event.status}" for event in after(world, "0.0")]
    assert (every[0], every[-1]) == ("s CREATE_IN_PROGRESS", "s CREATE_COMPLETE")
    assert len(every) == len(set(every)) == 10
    for name in resources:
        assert every.index(f"{name} CREATE_IN_PROGRESS") < every.index(f"{name} CREATE_COMPLETE")
    assert world.state(uuid) == "CREATE_COMPLETE"


def test_a_cause_is_reported_in_full(world: World):
    long = "x" * 10_000
    world.create("s", {"a": {"type": "OS::Heat::TestResource", "properties": {"value": long}}})
    world.deliver_all()
    (event,) = [e for e in after(world, "0.0") if e.resource_name == "a" and e.status == "COMPLETE"]
    assert event.properties is not None
    assert event.properties["value"] == long


@pytest.fixture
def untouched(new_database: Callable[[], str]) -> Iterator[World]:
    """In a new database: the plan of a page query depends on the table statistics, which do not exist here
    looked at, which here is never.
    """
    made = World(new_database())
    yield made
    made.close()


def test_following_a_million_events_reads_only_new_rows(untouched: World):
    world = untouched
    world.create("s", {"a": test_resource()})
    world.deliver_all()
    with world.database.engine.begin() as connection:
        connection.execute(
            text("""INSERT INTO event (stack_id, resource_name, resource_type, action, status, reason, xid)
            SELECT s.id, 'r' || n, 'T', 'CREATE', 'COMPLETE', '', CAST(CAST(n / 10 AS text) AS xid8)
            FROM stack s, generate_series(1, 300_000) AS n""")
        )
        connection.execute(text("UPDATE stack SET status = 'IN_PROGRESS'"))
    stack = world.stack_row("s")
    query = EventQuery(sort_dir="asc", after=(300, 0), limit=20)
    with watched(world.database) as work:
        page = list(list_events(world.database, stack, query))
    assert len(page) == 20
    assert work.walked == []
    assert work.rows < 100
