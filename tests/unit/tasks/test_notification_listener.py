"""The thread that notes the objects of notifications: bounded, and in spite of failures."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import Any

import psycopg

from orchestrator import metrics
from orchestrator.clients.openstack.notifications import Named, Received
from tasks.notification_listener import (
    MAX_IDS,
    MAX_PROJECTS,
    REPEATED_SECONDS,
    NotificationThread,
    PendingObjects,
)


def named(project: str, *ids: str, urgent: bool = False) -> Named:
    return Named(project, ids, urgent)


def test_an_object_is_kept_once():
    pending = PendingObjects()
    for _ in range(1_000):
        pending.add(named("p", "a", "b"))
    assert pending.take(0.0) == {"p": ["a", "b"]}
    assert pending.take(1.0) == {}


def test_repeated_notifications_of_an_object_are_one():
    pending = PendingObjects()
    pending.add(named("p", "a"))
    assert pending.take(0.0) == {"p": ["a"]}
    pending.add(named("p", "a", "b"))
    assert pending.take(0.1) == {"p": ["b"]}
    pending.add(named("p", "a"))
    assert pending.take(0.2) == {}
    assert pending.take(REPEATED_SECONDS) == {"p": ["a"]}  # it is not lost


def test_a_project_pauses_alone():
    pending = PendingObjects()
    pending.pause("p", 1.0)
    pending.add(named("p", "a"))
    pending.add(named("q", "b"))
    assert pending.take(0.0) == {"q": ["b"]}
    assert pending.take(1.0) == {"p": ["a"]}


def test_a_flood_is_bounded():
    pending = PendingObjects()
    pending.add(named("p", *(f"a{number}" for number in range(5 * MAX_IDS))))
    for number in range(2 * MAX_PROJECTS):
        pending.add(named(f"p{number}", "a"))
    taken = pending.take(0.0)
    assert len(taken["p"]) == MAX_IDS
    assert len(taken) == MAX_PROJECTS
    assert pending.dropped == 4 * MAX_IDS + MAX_PROJECTS + 1


def test_urgent_objects_come_before_others_and_take_their_room():
    pending = PendingObjects()
    pending.add(named("p", *(f"a{number}" for number in range(MAX_IDS))))
    pending.add(named("p", "lost", "a7", urgent=True))
    taken = pending.take(0.0)["p"]
    assert taken[:2] == ["lost", "a7"]
    assert len(taken) == MAX_IDS
    assert pending.dropped == 1


def test_projects_without_stacks_are_left_out():
    pending = PendingObjects()
    pending.projects = frozenset({"p"})
    pending.add(named("p", "a"))
    pending.add(named("foreign", "b"))
    assert pending.take(0.0) == {"p": ["a"]}


class Broker:
    """A listener that calls back at once."""

    def __init__(self, received: Received) -> None:
        self.received, self.stopped = received, False

    def start(self) -> None:
        self.received(named("p", "a"))

    def stop(self) -> None:
        self.stopped = True


def test_what_is_received_is_noted_also_after_a_failure():
    noted: list[Any] = []
    done = threading.Event()
    brokers: list[Broker] = []

    def unavailable(received: Received) -> Broker:
        raise OSError("no broker")

    def available(received: Received) -> Broker:
        brokers.append(Broker(received))
        return brokers[0]

    def note(project_id: str, ids: Sequence[str]) -> Sequence[Any]:
        noted.append((project_id, list(ids)))
        if len(noted) == 1:
            thread.pending.add(named("p", "b"))
            raise psycopg.OperationalError("the database restarts")
        return ["message"]

    def publish(messages: Sequence[Any]) -> None:
        assert messages == ["message"]
        done.set()

    before = [counted(result) for result in ("noted", "failed")]
    thread = NotificationThread([unavailable, available], note, publish, lambda: ["p"])
    thread.start()
    assert done.wait(30)
    thread.stop()
    thread.join(30)
    assert noted == [("p", ["a"]), ("p", ["b"])]
    assert brokers[0].stopped
    assert [counted(result) for result in ("noted", "failed")] == [value + 1 for value in before]


def counted(result: str) -> float:
    """Return the number of objects that notifications of the broker named, by result."""
    name = "orchestrator_observation_notified_objects_total"
    sample = re.search(rf'{name}{{result="{result}",source="broker"}} (\S+)', metrics.exposition().decode())
    return float(sample[1]) if sample else 0.0
