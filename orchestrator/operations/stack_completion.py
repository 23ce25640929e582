"""The end of a traversal: complete, failed after its open operations ended, or timed out.

The statement that ends a child stack also wakes the node of its parent's resource: `WAKE_PARENT` of
`store/traversals/stack_end.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator import metrics
from orchestrator.engine.check.refusals import PAUSED, UNREACHABLE
from orchestrator.engine.check.visit import ControlVisit
from orchestrator.engine.messages import CheckMessage
from orchestrator.logs import logger
from orchestrator.operations import queued_actions
from orchestrator.store import snapshots
from orchestrator.store.connections.damaged_rows import DAMAGED_ROW, damage
from orchestrator.store.connections.database import Database
from orchestrator.store.traversals import child_completion, children, completion, resumption, traversals
from orchestrator.store.traversals.accept import accept_rollback
from orchestrator.store.traversals.traversals import StartedTraversal

log = logger()

TIMED_OUT = "Timed out"
POLL_SECONDS = 1.0  # poll interval while a deleted stack's snapshots are being deleted
# The actions whose failure is rolled back if the stack asks for it.
ROLLS_BACK = frozenset({"CREATE", "UPDATE", "ADOPT", "RESTORE"})


def complete_or_drain(database: Database, visit: ControlVisit, lease: int) -> list[CheckMessage]:
    """Settle a finish node that has no blockers."""
    db = database.check_connection(durable=True)
    stack = visit.stack
    if stack.action == "DELETE" and not visit.halted:
        copied = snapshots.undeleted(db, stack.id)
        if copied is not None:
            reason = f"Snapshot {copied[0]} is being removed: {copied[1]}"
            completion.postpone(db, visit.node_id, lease, POLL_SECONDS, reason)
            return []
    if stack.action == "CHECK" and completion.has_failures(db, stack.id, visit.traversal):
        traversals.halt(db, stack.id, visit.traversal)  # the traversal completed its work, and ends as failed
    elif stack.action == "CHECK" and (missed := completion.missed_revision(db, stack.id)) is not None:
        with db.transaction():  # CHECK_COMPLETE would hide that
            traversals.halt(db, stack.id, visit.traversal)
            return _end(db, stack.id, visit.traversal, f"The stack has not reached revision {missed}")
    else:
        completed = completion.complete(db, visit.node_id, lease)
        if completed is not None:
            log.info("stack_complete", stack=stack.uuid, action=stack.action)
            started = queued_actions.start_or_drop(db, stack.id) if completed.queued else []
            return [*completed.messages, *started]
    return drain(database, stack.id, visit.traversal)


def end_children(db: Connection[TupleRow], messages: Sequence[CheckMessage], root: str) -> list[CheckMessage]:
    """End the child stacks of these finish nodes without a claim, where that is possible; return the messages
    to send instead.

    A worker that dies before leaves the finish node queued like any other: the sweep enqueues it.
    """
    check_messages: list[CheckMessage] = []
    for message in messages:
        finishes = message.queue == "bulk" and message.label == "finish"
        woken = end_child(db, message.node_id, root) if finishes else None
        if woken is None:
            check_messages.append(message)
        else:
            metrics.count_visit("finish", "visit", "done")
            check_messages += woken
    return check_messages


def end_child(db: Connection[TupleRow], node_id: int, root: str) -> Sequence[CheckMessage] | None:
    """End the child stack of an unclaimed finish node; None when the end needs a claim."""
    ended = child_completion.complete_child(db, node_id, root)
    if ended is None:
        return None
    log.info("stack_complete", stack=ended.uuid, action=ended.action)
    return ended.messages


def drain(database: Database, stack_id: int, traversal: int) -> list[CheckMessage]:
    """End a failing traversal when none of its operations is open, and start the rollback if the stack asks
    for it (docs/internals/protocol.md rule 13).
    """
    db = database.check_connection(durable=True)
    with db.transaction():
        return _end(db, stack_id, traversal, None)


def fail(database: Database, stack_id: int, traversal: int, reason: str) -> list[CheckMessage]:
    """End a traversal as FAILED at once; operations still open end by themselves.

    Child stacks are stopped first, each in its own transaction: the end of a child locks the child before its
    parent's node. A worker that dies in between has ended nothing, and the sweep repeats the work. Children
    created in the meantime are stopped afterwards.
    """
    db = database.check_connection(durable=True)
    refused = completion.refused_resources(db, stack_id)
    reason += _told(refused)
    children.halt_below(db, stack_id, traversal)
    with db.transaction():
        traversals.halt(db, stack_id, traversal)
        traversals.enqueue_open_operations(db, stack_id, traversal)
        in_outage = any(one.is_outage for one in refused)
        if in_outage and resumption.schedule(db, stack_id, traversal):  # and is not rolled back
            ended = completion.end_failed(db, stack_id, traversal, reason=reason, at_once=True)
            messages = [] if ended is None else ended.messages
        else:
            messages = _end(db, stack_id, traversal, reason)
    children.halt_below(db, stack_id, traversal)
    return messages


def fail_damaged(database: Database, stack_id: int, traversal: int, error: Exception) -> list[CheckMessage]:
    """End the traversal of a stack whose rows cannot be read as FAILED (store/adr/0009)."""
    log.exception("stack_damaged", stack_id=stack_id)
    return fail(database, stack_id, traversal, f"{DAMAGED_ROW}: {damage(error)}")


def _told(refused: Sequence[completion.RefusedResource]) -> str:
    """Return the part of a reason that names the resources without an answer, and those with a refusal."""
    told = {"Not reached": list[str](), "Refused": list[str]()}
    for name, error, refusal, _ in refused:
        word = "Not reached" if refusal in (None, UNREACHABLE.kind, PAUSED.kind) else "Refused"
        told[word].append(f"{name} ({error})")
    return "".join(f". {word}: {'; '.join(causes)}" for word, causes in told.items() if causes)


def _end(
    db: Connection[TupleRow], stack_id: int, traversal: int, reason: str | None, *, at_once: bool = False
) -> list[CheckMessage]:
    at_once = at_once or reason is not None
    ended = completion.end_failed(db, stack_id, traversal, reason=reason, at_once=at_once)
    if ended is None:
        return []
    log.info("stack_failed", stack_id=stack_id, action=ended.action)
    if ended.delete_on_failure and ended.action == "CREATE":
        opened = start_delete(db, stack_id)
        return [*ended.messages, opened.message] if opened else ended.messages
    if ended.rollback_disabled or ended.action not in ROLLS_BACK:
        dropped = queued_actions.start_or_drop(db, stack_id) if ended.queued else []
        return [*ended.messages, *dropped]
    retain = ended.action == "ADOPT"  # resources that the stack did not create are not deleted with it
    opened = accept_rollback(db, stack_id, ended.good_revision_id, retain=retain)
    return [*ended.messages, opened.message] if opened else ended.messages


def start_delete(
    db: Connection[TupleRow], stack_id: int, *, credential_id: int | None = None
) -> StartedTraversal | None:
    """Start the delete of a stack in the current transaction, even during another action; None when it is
    deleted. `credential_id` is the caller's, if the content's is not valid any more.
    """
    opened = traversals.start_traversal(db, stack_id, "DELETE", credential_id=credential_id)
    snapshots.remove_all(db, stack_id)
    children.mark_stale(db, stack_id)
    return opened


def fail_immediately(database: Database, stack_id: int, traversal: int) -> list[CheckMessage]:
    """End a failing traversal without following its open operations; the next traversal follows them."""
    db = database.check_connection(durable=True)
    with db.transaction():
        return _end(db, stack_id, traversal, None, at_once=True)
