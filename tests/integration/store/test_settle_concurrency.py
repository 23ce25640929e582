"""The statements that move nodes, many at once: no wake-up is lost, none comes twice, no deadlock.

Statements that settle run as they are, without the engine's retry on deadlock: here a deadlock is a failure.
"""

from __future__ import annotations

import random
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psycopg
import pytest

from orchestrator.store.connections.database import Database
from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.nodes import outcome_sql as sql
from orchestrator.store.nodes import repository
from orchestrator.store.nodes.outcome_builder import render

THREADS = 8
LEASE = 77


class Graph:
    """A stack with nodes inserted by the test."""

    def __init__(self, url: str) -> None:
        self.database = Database(url, "orchestrator-test")
        self.db = self.database.connect()
        query = """WITH id AS (SELECT nextval(pg_get_serial_sequence('stack', 'id')) AS id)
            INSERT INTO stack (id, root_id, uuid, project_id, name, action, status, traversal)
            SELECT id, id, %s, 'p', 's', 'CREATE', 'IN_PROGRESS', 1 FROM id RETURNING id"""
        [(self.stack_id,)] = self.db.execute(query, (uuid.uuid4(),)).fetchall()

    def blocked(self, feeders: int) -> int:
        """Insert a node that is blocked by `feeders` nodes."""
        return self._node("blocked", blocked_by=feeders)

    def checking(self, needed_by: Sequence[int]) -> int:
        """Put a node there that is being visited under LEASE."""
        return self._node("checking", needed_by=list(needed_by), lease=LEASE)

    def queued(self, resource_id: int | None = None, needed_by: Sequence[int] = ()) -> int:
        """Put a node there that may be claimed."""
        return self._node("queued", resource_id=resource_id, needed_by=list(needed_by))

    def resource(self) -> int:
        """Put a resource there."""
        query = "INSERT INTO resource (uuid, stack_id, name, type) VALUES (%s, %s, 'r', 't') RETURNING id"
        [(made,)] = self.db.execute(query, (uuid.uuid4(), self.stack_id)).fetchall()
        return int(made)

    def _node(self, state: str, **options: Any) -> int:
        values = {"needed_by": [], "blocked_by": 0, "lease": None, "resource_id": None, **options}
        query = """INSERT INTO graph_node (stack_id, root_id, traversal, kind, queue, label, state, needed_by,
                blocked_by, resource_id, lease, leased_until)
            VALUES (%(s)s, %(s)s, 1, %(kind)s, 'check', 'n', %(state)s, %(needed_by)s,
                %(blocked_by)s, %(resource_id)s, %(lease)s,
                CASE WHEN %(lease)s::bigint IS NOT NULL THEN now() + interval '1 minute' END)
            RETURNING id"""
        kind = "join" if options.get("resource_id") is None else "update"
        row = self.db.execute(query, {"s": self.stack_id, "state": state, "kind": kind, **values}).fetchone()
        assert row is not None
        return int(row[0])

    def states(self, ids: Sequence[int]) -> Counter[tuple[str, int]]:
        """Return how many of these nodes are in which state, with how many left to wait for."""
        query = "SELECT state, blocked_by FROM graph_node WHERE id = ANY(%s)"
        return Counter(self.db.execute(query, (list(ids),)).fetchall())

    def at_once(self, work: Callable[[psycopg.Connection[Any], int], Any]) -> list[Any]:
        """Run `work(connection, number)` in THREADS threads that start together; return their results."""
        barrier, results, errors = threading.Barrier(THREADS), [], []

        def run(number: int) -> None:
            try:
                with self.database.connect(durable=False, hot=True) as db:
                    barrier.wait(20)
                    results.append(work(db, number))
            except Exception as error:
                errors.append(error)
                barrier.abort()

        threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert errors == []
        assert len(results) == THREADS
        return results


def settle(
    db: psycopg.Connection[Any], ids: Sequence[int], lease: int = LEASE, message: int = 1000
) -> list[int]:
    """Settle visited nodes in one statement; return the released nodes."""
    rows = db.execute(
        sql.SETTLE_NODES, {"ids": list(ids), "lease": lease, "max_messages": message}
    ).fetchall()
    return [row[1] for row in rows if row[0] in {"send", "queued"}]


def settle_unclaimed(
    db: psycopg.Connection[Any], graph: Graph, node: int, resource: int, message: int = 1000
) -> repository.Settled:
    """Settle an unclaimed node, with its own resource."""
    row = {"node_id": node, "resource_id": resource, "stack_id": graph.stack_id, "status_read": "COMPLETE"}
    statement = render(sql.SETTLE_CLEANUP_KEPT, leased=False, rows="one")
    values = repository.single_row_parameters(row | {"changed": False, "continued": False}, statement)
    return repository.settled(fetch_prepared(db, statement, {**values, "max_messages": message}), "root")


@pytest.fixture
def graph(postgres_url: str) -> Iterator[Graph]:
    made = Graph(postgres_url)
    yield made
    made.db.close()


@pytest.mark.parametrize("batch", [1, 7])
def test_only_the_last_of_many_concurrent_feeders_releases_the_node(graph: Graph, batch: int):
    target = graph.blocked(THREADS * 28)
    feeders = [[graph.checking([target]) for _ in range(28)] for _ in range(THREADS)]

    def work(db: psycopg.Connection[Any], number: int) -> list[int]:
        mine = feeders[number]
        return [n for start in range(0, 28, batch) for n in settle(db, mine[start : start + batch])]

    released = [node for each in graph.at_once(work) for node in each]
    assert released == [target]
    assert graph.states([target]) == {("queued", 0): 1}


@pytest.mark.parametrize("seed", range(3))
def test_feeders_of_many_shared_nodes_neither_deadlock_nor_lose_a_wake_up(graph: Graph, seed: int):
    chosen = random.Random(seed)
    expected = [sorted(chosen.sample(range(40), chosen.randint(1, 20))) for _ in range(THREADS * 20)]
    counts = Counter(target for row in expected for target in row)
    targets = [graph.blocked(counts[target] or 1) for target in range(40)]
    feeders = [graph.checking(chosen.sample([targets[t] for t in row], len(row))) for row in expected]
    chosen.shuffle(feeders)

    def work(db: psycopg.Connection[Any], number: int) -> list[int]:
        mine, released = feeders[number::THREADS], []
        while mine:
            size = 1 + len(mine) % 4
            released += settle(db, mine[:size])
            mine = mine[size:]
        return released

    released = Counter(node for each in graph.at_once(work) for node in each)
    assert released == {targets[target]: 1 for target in counts}
    assert graph.states([targets[target] for target in counts]) == {("queued", 0): len(counts)}


@pytest.mark.parametrize("seed", range(3))
def test_unclaimed_feeders_neither_deadlock_nor_lose_a_release(graph: Graph, seed: int):
    chosen = random.Random(seed)
    expected = [chosen.sample(range(12), chosen.randint(2, 12)) for _ in range(THREADS * 20)]
    counts = Counter(target for row in expected for target in row)
    targets = [graph.blocked(counts[target] or 1) for target in range(12)]
    feeders = []
    for row in expected:
        resource = graph.resource()
        feeders.append((graph.queued(resource, [targets[t] for t in row]), resource))

    def work(db: psycopg.Connection[Any], number: int) -> list[int]:
        settled = [settle_unclaimed(db, graph, *feeder) for feeder in feeders[number::THREADS]]
        assert [len(item.held) for item in settled] == [1] * len(settled)
        return [message.node_id for item in settled for message in item.messages]

    released = Counter(node for each in graph.at_once(work) for node in each)
    assert released == {targets[target]: 1 for target in counts}
    assert graph.states([targets[target] for target in counts]) == {("queued", 0): len(counts)}
    assert graph.states([node for node, _ in feeders]) == {("ready", 0): len(feeders)}


def test_an_unclaimed_node_is_settled_once_by_concurrent_writers(graph: Graph):
    target, resource = graph.blocked(2), graph.resource()
    feeder = graph.queued(resource, [target])
    settled = graph.at_once(lambda db, _: settle_unclaimed(db, graph, feeder, resource))
    assert sorted(len(item.held) for item in settled) == [0] * (THREADS - 1) + [1]
    assert graph.states([target]) == {("blocked", 1): 1}
    assert graph.states([feeder]) == {("ready", 0): 1}


def test_an_unclaimed_node_enqueues_no_more_than_the_window_allows(graph: Graph):
    targets, resource = [graph.blocked(1) for _ in range(5)], graph.resource()
    result = settle_unclaimed(graph.db, graph, graph.queued(resource, targets), resource, message=2)
    assert [message.node_id for message in result.messages] == targets[:2]
    assert result.not_enqueued == 3


def test_a_batch_counts_every_feeder_of_a_node_and_not_the_node(graph: Graph):
    target = graph.blocked(5)
    feeders = [graph.checking([target]) for _ in range(5)]
    assert settle(graph.db, feeders[:3]) == []
    assert graph.states([target]) == {("blocked", 2): 1}
    assert settle(graph.db, feeders[3:]) == [target]


def test_the_same_settle_from_everywhere_counts_once(graph: Graph):
    target = graph.blocked(2)
    feeder = graph.checking([target])
    graph.checking([target])
    graph.at_once(lambda db, _: settle(db, [feeder]))
    assert graph.states([target]) == {("blocked", 1): 1}


def test_a_late_writer_matches_no_row(graph: Graph):
    target = graph.blocked(1)
    feeder = graph.checking([target])
    assert settle(graph.db, [feeder], lease=LEASE + 1) == []
    assert graph.states([feeder]) == {("checking", 0): 1}
    assert settle(graph.db, [feeder]) == [target]
    assert settle(graph.db, [feeder]) == []
    assert graph.states([target]) == {("queued", 0): 1}


def test_nodes_released_beyond_the_window_are_queued_without_a_message(graph: Graph):
    targets = [graph.blocked(1) for _ in range(5)]
    feeder = graph.checking(targets)
    result = repository.settle_nodes(graph.db, [feeder], LEASE, "root", max_messages=2)
    assert (len(result.messages), result.not_enqueued) == (2, 3)
    [(unrung,)] = graph.db.execute(
        "SELECT count(*) FROM graph_node WHERE state = 'queued' AND enqueued_at IS NULL"
    ).fetchall()
    assert unrung == 3


def test_a_broadcast_message_is_processed_once(graph: Graph):
    ids = [graph.queued(graph.resource()) for _ in range(20)]
    shuffled = random.Random(1)

    def work(db: psycopg.Connection[Any], number: int) -> list[int]:
        return repository.claim(db, shuffled.sample(ids, len(ids)), 1, 1000 + number, 30.0)

    claimed = Counter(node for each in graph.at_once(work) for node in each)
    assert claimed == dict.fromkeys(ids, 1)


def test_only_one_of_the_nodes_of_a_resource_is_visited_at_a_time(graph: Graph):
    resource = graph.resource()
    ids = [graph.queued(resource) for _ in range(THREADS)]
    got = graph.at_once(lambda db, number: repository.claim(db, [ids[number]], 1, 1000 + number, 30.0))
    assert sorted(map(len, got)) == [0] * (THREADS - 1) + [1]
    assert graph.states(ids) == {("waiting", 0): THREADS - 1, ("checking", 0): 1}


def test_many_workers_topping_up_ring_each_node_once(graph: Graph):
    ids = [graph.queued() for _ in range(200)]

    def work(db: psycopg.Connection[Any], _number: int) -> list[int]:
        return [
            message.node_id for message in repository.refill_window(db, graph.stack_id, "root", 50).messages
        ]

    enqueued = Counter(node for each in graph.at_once(work) for node in each)
    assert set(enqueued.values()) == {1}
    assert 50 <= len(enqueued) <= 50 * THREADS
    assert set(enqueued) <= set(ids)
