"""Workers that die repeatedly: the limit counts consecutive deaths, not all deaths."""

from __future__ import annotations

import itertools
from dataclasses import replace

import psycopg
import pytest

from orchestrator.engine.messages import CheckMessage
from orchestrator.operations.context import Body
from orchestrator.operations.reconcile.check import Attempt, check_external, check_local
from orchestrator.operations.reconcile.resource_visits import MAX_LOST_LEASES
from orchestrator.operations.snapshots import snapshots
from orchestrator.resources.base import Context
from orchestrator.store.connections.database import UNREACHABLE
from tests.scenarios.fake_cloud import Cloud, Crash, cloud_thing
from tests.scenarios.world import World


def survive(world: World, cloud: Cloud, lethal: int) -> None:
    """Deliver until nothing is under way, every look but each `lethal`-th ending its worker."""
    looks = itertools.count(1)

    def look(_: Context) -> None:
        if next(looks) % lethal:
            raise Crash

    cloud.on["observe"] = look
    while world.messages or world.sweep_once() or world.sweep_once():
        try:
            world.deliver(1)
        except Crash:
            world.engine = world.new_engine()
            world.forget_leases()


def test_workers_lost_now_and_then_do_not_add_up(postgres_url: str) -> None:
    cloud = Cloud()
    world = World(postgres_url, types=cloud.types())
    try:
        uuid = world.create("s", {"a": cloud_thing(looks=MAX_LOST_LEASES + 3)})
        survive(world, cloud, 2)
        assert world.state(uuid) == "CREATE_COMPLETE"
        assert cloud.made == {"a": 1}
    finally:
        world.close()


def test_a_node_that_kills_every_worker_fails(postgres_url: str) -> None:
    cloud = Cloud()
    world = World(postgres_url, types=cloud.types())
    try:
        uuid = world.create("s", {"a": cloud_thing()})
        survive(world, cloud, 10**9)
        assert world.state(uuid) == "CREATE_FAILED"
        [row] = world.rows("SELECT status_reason FROM stack")
        assert "Worker went down during resource CREATE" in row.status_reason
    finally:
        world.close()


CLOSE = "SELECT pg_terminate_backend(:pid, 5000)"


def test_a_connection_closed_behind_a_claim_costs_no_lease(postgres_url: str) -> None:
    """A claimed visit reads parameters over its thread's other connection, long unused: PostgreSQL was
    restarted since. Tried again, the check would find its node claimed, and wait for its own lease.
    """
    cloud = Cloud()
    world = World(postgres_url, types=cloud.types())
    try:
        uuid = world.create("s", {"a": cloud_thing()})
        world.deliver(1)
        other = world.database.check_connection(durable=False)
        assert world.rows(CLOSE, pid=other.info.backend_pid)
        world.engine = world.new_engine()  # with nothing in memory
        world.deliver_all()
        assert world.state(uuid) == "CREATE_COMPLETE"
        assert world.rows("SELECT 1 FROM graph_node WHERE lost_leases > 0 OR state = 'checking'") == []
    finally:
        world.close()


def cut_off_once(world: World, cloud: Cloud, verb: str, *, durable: bool) -> None:
    """Let PostgreSQL end a connection once while a verb of its type reads over it: the connection that writes
    the visit (`durable`), or the second connection of its thread.
    """

    def cut_off(_: Context) -> None:
        del cloud.on[verb]
        world.database.check_connection(durable=durable).execute(
            "SELECT pg_terminate_backend(pg_backend_pid())"
        )

    cloud.on[verb] = cut_off


@pytest.mark.parametrize("verb", ["create", "created", "observe"])
@pytest.mark.parametrize("durable", [False, True])
def test_an_interrupted_statement_fails_nothing_and_costs_no_lease(
    postgres_url: str, verb: str, *, durable: bool
) -> None:
    """That PostgreSQL went away while a type was at work says nothing about the resource. The task tries
    again and continues its claimed visit.
    """
    cloud = Cloud()
    world = World(postgres_url, types=cloud.types())
    try:
        uuid = world.create("s", {"a": cloud_thing(), "b": cloud_thing(("a",))})
        world.deliver(1)
        cut_off_once(world, cloud, verb, durable=durable)
        [message] = world.messages
        assert isinstance(message, CheckMessage)
        attempt = Attempt()
        with pytest.raises(UNREACHABLE):
            check_external(world.engine, [message.node_id], message.traversal, attempt)
        assert world.rows("SELECT 1 FROM graph_node WHERE state = 'checking'")
        world.messages = list(
            check_external(world.engine, [message.node_id], message.traversal, replace(attempt, repeats=True))
        )
        world.deliver_all()
        assert world.state(uuid) == "CREATE_COMPLETE"
        assert cloud.made == {"a": 1, "b": 1}
        assert world.rows("SELECT 1 FROM graph_node WHERE lost_leases > 0 OR state = 'checking'") == []
        assert world.rows("SELECT 1 FROM failure") == []
    finally:
        world.close()


def lose_connection() -> None:
    raise psycopg.OperationalError("the connection was closed")


def deliver_with_interruptions(world: World) -> None:
    """Deliver all messages; a call that the database interrupts is repeated with its lease."""
    while world.messages or world.sweep_once():
        message = world.messages.pop(0)
        assert isinstance(message, CheckMessage)
        check, attempt = (check_external if message.queue == "provider" else check_local), Attempt()
        node, traversal = [message.node_id], message.traversal
        try:
            world.messages += check(world.engine, node, traversal, attempt)
        except UNREACHABLE:
            world.messages += check(world.engine, node, traversal, replace(attempt, repeats=True))


@pytest.mark.parametrize("verb", ["update", "suspend", "snapshot", "delete"])
@pytest.mark.parametrize("point", ["start", "request", "observation"])
def test_a_request_is_sent_although_the_recording_of_its_start_was_interrupted(
    postgres_url: str, verb: str, point: str
) -> None:
    """The start of an operation is committed, and the worker learns neither that nor anything after it."""
    cloud = Cloud()
    world = World(postgres_url, types=cloud.types())
    try:
        uuid = world.create("s", {"a": cloud_thing(type="Cloud::Machine", value="old")})
        world.deliver_all()
        match point:
            case "start":
                world.after("begin", lose_connection)
            case "request":
                cut_off_once(world, cloud, verb, durable=True)
            case "observation":
                cut_off_once(world, cloud, "observe", durable=True)
        match verb:
            case "update":
                world.update("s", {"a": cloud_thing(type="Cloud::Machine", value="new")})
            case "delete":
                world.delete("s")
            case "snapshot":
                world.messages += snapshots.take(world.context, world.stack_row("s"), Body(b"{}")).messages
            case _:
                world.act("s", verb)
        deliver_with_interruptions(world)
        assert world.state(uuid) == f"{verb.upper()}_COMPLETE"
        assert [*cloud.values.values()] == ["new" if verb == "update" else "old"]
        assert len(cloud.paused) == (verb == "suspend")
        assert len(cloud.copies) == (verb == "snapshot")
        assert len(cloud.things) == (verb != "delete")
    finally:
        world.close()


def test_a_signal_that_the_database_breaks_off_is_taken_in_later(postgres_url: str) -> None:
    cloud = Cloud()
    world = World(postgres_url, types=cloud.types())
    try:
        uuid = world.create("s", {"a": cloud_thing(type="Cloud::Bell")})
        world.deliver_all()
        world.signal("s", "a", {"n": 1})
        cut_off_once(world, cloud, "signal", durable=False)
        with pytest.raises(UNREACHABLE):
            world.deliver(1)
        world.forget_leases()
        world.deliver_all()
        assert world.state(uuid) == "CREATE_COMPLETE"
        assert cloud.calls.count("signal a") == 2
        assert world.rows("SELECT 1 FROM event WHERE action = 'SIGNAL' AND status = 'FAILED'") == []
    finally:
        world.close()
