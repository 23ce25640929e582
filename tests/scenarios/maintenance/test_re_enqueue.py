"""Nodes whose message was lost are enqueued again; nodes whose message waits in a long queue are not."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pytest
from psycopg.pq import TransactionStatus

from tests.scenarios.world import World, test_resource


@pytest.fixture
def world(postgres_url: str) -> Iterator[World]:
    made = World(postgres_url, re_enqueue_seconds=5)
    yield made
    made.close()


def test_a_node_whose_message_waits_in_the_broker_is_not_enqueued_again(world: World) -> None:
    uuid = world.create("s", {"a": test_resource()})
    world.messages.clear()
    world.elapse(10, "enqueue")
    asked: list[str] = []

    def waiting(stacks: Collection[str]) -> dict[str, float]:
        asked.extend(stacks)
        assert world.sweep._db is not None
        assert world.sweep._db.info.transaction_status == TransactionStatus.IDLE
        return dict.fromkeys(stacks, 30.0)

    world.sweep.waiting_seconds = waiting
    assert world.sweep.run() == []
    assert asked == [uuid]


def test_a_message_older_than_all_waiting_messages_was_lost(world: World) -> None:
    world.create("s", {"a": test_resource()})
    world.messages.clear()
    world.elapse(60, "enqueue")
    world.sweep.waiting_seconds = lambda stacks: dict.fromkeys(stacks, 30.0)
    assert len(world.sweep.run()) == 1


def test_root_stacks_whose_messages_are_on_their_way_cost_no_statement_each(world: World) -> None:
    for number in range(5):
        world.create(f"s{number}", {"a": test_resource()})
    refills = world.record("refill_window")
    world.sweep.waiting_seconds = lambda stacks: 1 / 0
    assert world.sweep.run() == []
    assert refills == []
