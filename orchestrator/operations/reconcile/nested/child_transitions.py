"""Transitions of child stacks, each in a transaction with the wait of its parent's resource.

A child always has a node that waits for it, and a waiting node always has a child, whichever worker dies at
whichever moment. A child is locked before the rows of its parent, as at its own end
(docs/internals/protocol.md rule 12).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import errors

from orchestrator.engine.check.child_status import ChildRequest, ChildStep, split_request, with_request
from orchestrator.engine.check.outcome import ChildTransition
from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.engine.messages import CheckMessage
from orchestrator.json_types import JsonObject
from orchestrator.operations.reconcile.pending import Pause, Write
from orchestrator.operations.resource_context.state import StepResult
from orchestrator.store import snapshots
from orchestrator.store.access.quotas import enforce
from orchestrator.store.nodes import outcome_sql as ending
from orchestrator.store.nodes import repository
from orchestrator.store.signals import group_resize
from orchestrator.store.traversals import children
from orchestrator.store.traversals.children import StartedChild

TRIES = 5  # attempts after deadlocks


class ChildChanged(Exception):
    """The child has changed since it was read: repeat the visit."""


class LeaseLost(Exception):
    """The lease is lost, or the traversal is over."""


Row = Callable[[ResourceVisit, StepResult], JsonObject]


@dataclass(frozen=True, slots=True)
class TransitionContext:
    """Context of the transitions of a batch; `row_of` returns the columns of every outcome."""

    db: repository.CheckConnection
    row_of: Row
    lease: int | None
    root: str


def apply_child_transition(
    context: TransitionContext, visit: ResourceVisit, result: StepResult
) -> list[CheckMessage]:
    """Apply the transition of a child and let its resource's node wait; return the messages to send.

    Without a lease nothing was claimed, and the statement that writes the outcome takes the node (adr/0001).

    Raises:
        ChildChanged: the child has changed since it was read.
        LeaseLost: the lease is lost, or the traversal is over.
        LimitExceeded: the project has reached a limit since the visit.
    """
    assert isinstance(result.outcome, ChildTransition)
    step, db = result.outcome.step, context.db
    for tries_left in range(TRIES - 1, -1, -1):
        try:
            limits = step.desired.limits if step.verb in ("create", "update") else ()
            if step.verb == "create" and step.child is None and not limits:
                return _spawn(context, visit, result, step)
            with db.transaction():
                messages = _apply(context, visit, result, step)
                enforce(db, *limits)
            return messages
        except children.ContentMissing:
            children.store(db, step.desired)
        except (errors.DeadlockDetected, errors.SerializationFailure):
            if not tries_left:
                raise
    raise AssertionError("unreachable")


def _spawn(
    context: TransitionContext, visit: ResourceVisit, result: StepResult, step: ChildStep
) -> list[CheckMessage]:
    """Create the child."""
    state = result.state
    state.data = with_request(split_request(state.data)[1], ChildRequest(1, step.turn, visit.traversal))
    row = _row(visit, result, step, context.row_of)
    settled = children.insert_child(
        context.db,
        step.desired,
        row,
        context.lease,
        context.root,
        again=step.child is not None,
        credential_id=visit.credential_id,
    )
    if row["resource_id"] not in settled.held:
        raise LeaseLost
    return settled.messages


def _apply(
    context: TransitionContext, visit: ResourceVisit, result: StepResult, step: ChildStep
) -> list[CheckMessage]:
    """Start the traversal of an existing child, or only wait for it."""
    if step.verb == "create":
        return _spawn(context, visit, result, step)
    started, state = _start(context.db, visit, step), result.state
    request, data = split_request(state.data)
    if started is not None:
        request = ChildRequest(started.traversal, step.turn, visit.traversal)
    elif request is not None:
        request = request._replace(turn=step.turn)
    state.data = with_request(data, request)
    row = _row(visit, result, step, context.row_of)
    settled = repository.write_outcome(context.db, ending.WAIT, [row], context.lease, context.root)
    if row["resource_id"] not in settled.held:
        raise LeaseLost
    return settled.messages + ([] if started is None else [started.message])


def _row(visit: ResourceVisit, result: StepResult, step: ChildStep, row_of: Row) -> JsonObject:
    row = row_of(visit, result)
    row |= {
        "op": result.state.op,
        "wait_seconds": step.seconds if step.verb == "pause" else None,
        "reason": "state changed",
        "retried": False,
    }
    if visit.resource.op is None:
        row["traversal"] = visit.traversal  # the planner of a newer traversal has not seen this operation
    return row


def _start(db: repository.CheckConnection, visit: ResourceVisit, step: ChildStep) -> StartedChild | None:
    """Start the child's traversal; None: only wait."""
    child = step.child
    if step.verb == "pause":
        return None
    assert child is not None
    if step.verb == "wait":
        if children.lock_child(db, child.id) != (child.traversal, child.status):
            raise ChildChanged
        return None
    if step.verb == "update":
        stack = visit.stack
        started = children.update(
            db,
            child.id,
            step.desired,
            converge=stack.converge,
            credential_id=visit.credential_id,
            automatic=stack.automatic,
        )
    elif step.verb == "delete":
        started = children.begin(
            db, child.id, "DELETE", credential_id=visit.credential_id, retain=visit.stack.retain
        )
        snapshots.remove_all(db, child.id)
    elif step.action == "SNAPSHOT":
        started = _start_snapshot(db, child.id, step.desired)
    else:
        started = children.begin(db, child.id, step.action, credential_id=visit.credential_id)
    if started is None:
        raise ChildChanged  # deleted at this very moment
    return started


def _start_snapshot(db: repository.CheckConnection, child_id: int, uuid: UUID) -> StartedChild | None:
    source = snapshots.lock(db, child_id)
    if source is None:
        return None
    _, started = snapshots.begin(db, child_id, source, None, uuid)
    return StartedChild(started.traversal, started.message)


def write_with_side_effects(
    db: repository.CheckConnection, items: Sequence[Write | Pause], write: Callable[[], repository.Settled]
) -> repository.Settled:
    """Write outcomes; in a transaction if they have effects on child stacks: the causes of a failure, the
    detachment of a retained resource's child, and the signals of a scaling group that wait for the end of an
    operation.
    """
    causes, detached, groups = dict[int, Any](), dict[int, int](), dict[int, bytes]()
    for item in items:
        id_, row, state = item.row["resource_id"], item.row, item.state
        if row.get("causes"):
            causes[id_] = row.pop("causes")
        if (child_id := row.pop("detached_child", None)) is not None:
            detached[id_] = child_id
        if state is not None and state.refresh_signal is not None:
            groups[id_] = state.refresh_signal
    if not causes and not detached and not groups:
        return write()
    with db.transaction():
        for child_id in sorted(detached.values()):
            children.lock_child(db, child_id)  # a child before the rows of its parent
        settled = write()
        for item in items:
            visit, id_ = item.visit, item.row["resource_id"]
            if id_ not in settled.held:
                continue
            if id_ in causes:
                name = item.row["name"]
                children.propagate_failures(db, visit.stack.id, visit.traversal, name, causes[id_])
            if id_ in detached:
                children.detach(db, detached[id_])
            if id_ in groups:
                group_resize.resume(db, id_)
                if item.row.get("status") == "FAILED":
                    group_resize.refresh(db, id_, groups[id_])
    return settled
