"""A check without a claim writes only rows that are still its own to write (operations/adr/0001)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import psycopg
import pytest
from sqlalchemy import text

from orchestrator.resources.base import Change, Context, Created, Observation, ResourceType
from orchestrator.store.connections.database import CHECKS_NAME
from tests.scenarios.world import World, test_resource


class Interrupted(ResourceType):
    """A local type that lets the test act in the middle of its create, or before an update."""

    name = "Test::Interrupted"
    calls_out = False
    any_properties = True

    def __init__(self) -> None:
        self.meanwhile: Callable[[], None] = lambda: None
        self.created = 0

    def create(self, ctx: Context, props: Mapping[str, Any]) -> Created:
        self.created += 1
        self.interrupt()
        return Created(ctx.physical_name)

    def change(self, before: Mapping[str, Any], after: Mapping[str, Any], changed: frozenset[str]) -> Change:
        self.interrupt()
        return "update" if changed else "keep"

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Any], changed: frozenset[str]
    ) -> Created:
        return Created(physical_id)

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        return Observation(exists=ctx.action != "DELETE")

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Nothing to remove."""

    def interrupt(self) -> None:
        """Let the test act, once."""
        act, self.meanwhile = self.meanwhile, lambda: None
        act()


@pytest.fixture
def kind() -> Interrupted:
    return Interrupted()


@pytest.fixture
def world(postgres_url: str, kind: Interrupted) -> Iterator[World]:
    made = World(postgres_url, types={kind.name: kind})
    yield made
    made.close()


def untouched(world: World) -> bool:
    """Whether resource a is as it was planned."""
    return world.rows("SELECT action, status, lease FROM resource WHERE name = 'a'") == [
        ("INIT", "COMPLETE", None)
    ]


def test_a_superseded_check_writes_nothing_and_the_newer_traversal_has_the_last_word(world, kind):
    uuid = world.create("s", {"a": {"type": kind.name}, "b": {"type": kind.name, "depends_on": "a"}})
    world.deliver(1)
    kind.meanwhile = lambda: world.delete("s")
    world.deliver(1)
    assert untouched(world)
    assert world.rows("SELECT state FROM graph_node WHERE kind = 'update' AND label = 'a'") == [("dropped",)]
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert not [event for event in world.events(uuid) if event.startswith("a ")]
    assert world.rows("SELECT 1 FROM resource") == []


def test_a_check_of_a_stack_that_has_failed_writes_nothing(world, kind):
    uuid = world.create("s", {"a": {"type": kind.name}, "z": test_resource(fail=True)})
    world.deliver(1)
    a, z = sorted(world.messages, key=lambda message: message.label)
    world.messages.clear()
    kind.meanwhile = lambda: world.deliver_one(z)
    world.deliver_one(a)
    assert world.state(uuid) == "CREATE_FAILED"
    assert untouched(world)
    assert world.events(uuid)[-1] == "s CREATE_FAILED"


def test_only_the_first_of_two_concurrent_visits_writes(world, kind):
    uuid = world.create("s", {"a": {"type": kind.name}, "b": {"type": kind.name, "depends_on": "a"}})
    world.deliver(1)
    [message] = world.messages
    world.messages.clear()
    kind.meanwhile = lambda: world.deliver_one(message)
    world.deliver_one(message)
    assert kind.created == 2
    assert [message.label for message in world.messages] == ["b"]
    assert world.events(uuid).count("a CREATE_COMPLETE") == 1
    assert world.rows("SELECT blocked_by FROM graph_node WHERE label = 'finish'") == [(1,)]
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"


def test_a_resource_under_operation_is_left_to_its_holder(world, kind):
    def hold() -> None:
        with world.database.engine.begin() as connection:
            connection.execute(
                text("UPDATE resource SET lease = 1, leased_until = now() + interval '1 h' WHERE name = 'a'")
            )

    uuid = world.create("s", {"a": {"type": kind.name}})
    world.deliver(1)
    kind.meanwhile = hold
    world.deliver(1)
    assert world.rows("SELECT action, lease FROM resource WHERE name = 'a'") == [("INIT", 1)]
    world.sweep_once()
    world.deliver(1)
    assert kind.created == 1
    assert world.rows("SELECT state FROM graph_node WHERE label = 'a'") == [("waiting",)]
    world.forget_leases()
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"


def test_a_further_traversal_waits_for_every_check_that_began_before_it(world, kind, postgres_url):
    world.create("s", {"a": {"type": kind.name}})
    world.deliver_all()
    world.delete("s")
    ended = threading.Event()
    with psycopg.connect(postgres_url, application_name=CHECKS_NAME) as older:
        older.execute("SELECT 1")  # its transaction is open from here on

        def end() -> None:
            ended.set()
            older.rollback()

        timer = threading.Timer(0.3, end)
        timer.start()
        world.deliver(1)
        assert ended.is_set()
        timer.join()
    assert world.rows("SELECT count(*) FROM graph_node WHERE kind = 'cleanup'") == [(1,)]


def test_a_resource_marked_during_its_visit_is_visited_again_and_replaced(world, kind):
    uuid = world.create("s", {"a": {"type": kind.name, "properties": {"value": 1}}})
    world.deliver_all()
    kind.meanwhile = lambda: world.mark("s", "a")
    world.update("s", {"a": {"type": kind.name, "properties": {"value": 2}}})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert kind.created == 2
    assert world.rows("SELECT action, status FROM resource") == [("CREATE", "COMPLETE")]
