"""Simultaneous requests: updates, cancels, and the completion of a traversal at the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from orchestrator.operations.reconcile.check import check_external
from orchestrator.store.traversals import completion, traversals
from orchestrator.store.traversals.accept import accept_rollback
from tests.scenarios.reconcile.failure_world import outcomes
from tests.scenarios.world import World, test_resource


class Together:
    """Work in a thread that is to wait for a lock that the test holds."""

    def __init__(self, world: World, work: Callable[[], Any]) -> None:
        self.world, self.result, self.error = world, None, None
        self.thread = threading.Thread(target=self._run, args=(work,))
        self.thread.start()

    def _run(self, work: Callable[[], Any]) -> None:
        try:
            self.result = work()
        except BaseException as error:
            self.error = error
        finally:
            for durable in (True, False):  # this thread's own
                self.world.database.check_connection(durable=durable).close()

    def is_held_up(self) -> bool:
        """Wait until it waits for the lock; False when it ended instead."""
        waiting = (
            "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        while not self.world.rows(waiting):
            if not self.thread.is_alive():
                return False
        return True

    def end(self) -> Any:
        self.thread.join(30)
        if self.error is not None:
            raise self.error
        return self.result


def test_an_update_at_the_moment_of_completion_is_accepted(world: World):
    world.create("s", {"a": test_resource("1")})
    while [message.label for message in world.messages] != ["finish"]:
        world.deliver()
    [row] = world.rows("SELECT id, revision_id FROM stack")
    [finish] = world.messages
    world.messages = []
    with world.database.connect() as db:
        with db.transaction():
            assert traversals.lock(db, row.id) is not None
            ending = Together(world, lambda: check_external(world.engine, [finish.node_id], 1))
            assert ending.is_held_up()
            opened = accept_rollback(db, row.id, row.revision_id)
        ending.end()
    assert opened is not None
    world.messages.append(opened.message)
    world.deliver_all()
    assert [tuple(r) for r in world.rows("SELECT action, status FROM stack")] == [("ROLLBACK", "COMPLETE")]
    assert outcomes(world) == ["superseded", "complete"]


def test_two_updates_at_the_same_moment_are_two_revisions(world: World):
    world.create("s", {"a": test_resource("1")})
    world.deliver_all()
    [row] = world.rows("SELECT id, revision_id FROM stack")
    with world.database.connect() as db:
        with db.transaction():
            assert traversals.lock(db, row.id) is not None
            other = Together(world, lambda: world.update("s", {"a": test_resource("2")}))
            assert other.is_held_up()
            accept_rollback(db, row.id, row.revision_id)
        other.end()
    world.deliver_all()
    rows = world.rows("SELECT number, action, outcome FROM revision ORDER BY number")
    assert [tuple(r) for r in rows] == [
        (1, "CREATE", "complete"),
        (2, "ROLLBACK", "superseded"),
        (3, "UPDATE", "complete"),
    ]


def test_a_cancel_and_the_end_at_the_same_moment_agree(world: World):
    uuid = world.create("s", {"a": test_resource("1")})
    while [message.label for message in world.messages] != ["finish"]:
        world.deliver()
    [row] = world.rows("SELECT id FROM stack")
    [finish] = world.messages
    world.messages = []
    with world.database.connect() as db:
        with db.transaction():
            assert traversals.lock(db, row.id) is not None
            ending = Together(world, lambda: check_external(world.engine, [finish.node_id], 1))
            assert ending.is_held_up()
            traversals.halt(db, row.id, 1)
            completion.end_failed(
                db, row.id, 1, reason="Stack CREATE cancelled", at_once=True, outcome="cancelled"
            )
        ending.end()
    assert (world.state(uuid), outcomes(world)) == ("CREATE_FAILED", ["cancelled"])
    assert world.events(uuid)[-1] == "s CREATE_FAILED"
