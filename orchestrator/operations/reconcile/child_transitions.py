"""Move child stacks: each together with the wait of the resource it stands for, in one transaction.

So there is never a child that nobody waits for, nor a node that waits for no child, whoever dies and
whenever. A child is locked before the rows of its parent, as its own end does it
(docs/internals/protocol.md rule 12).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from psycopg import errors

from orchestrator.engine.check.child_status import ChildRequest, ChildStep, split_request, with_request
from orchestrator.engine.check.outcome import ChildTransition
from orchestrator.engine.check.visit import Visit
from orchestrator.engine.messages import CheckMessage
from orchestrator.operations.resource_context.state import ResourceState, StepResult
from orchestrator.store import snapshots
from orchestrator.store.nodes import outcome_sql as ending
from orchestrator.store.nodes import repository
from orchestrator.store.traversals import children
from orchestrator.store.traversals.children import StartedChild as Begun

TRIES = 5  # over deadlocks that PostgreSQL broke


class ChildChanged(Exception):
    """The child is no longer as it was seen: look again."""


class LeaseLost(Exception):
    """The resource is another's by now."""


Row = Callable[[Visit, StepResult], dict[str, Any]]


def apply_child_transition(
    db: repository.CheckConnection, visit: Visit, done: StepResult, row_of: Row, lease: int | None, root: str
) -> list[CheckMessage]:
    """Carry out what is to be done to a child, and let its resource's node wait; return what to enqueue.

    Without a lease nothing was claimed, and what is written takes the node (adr/0001).

    Raises:
        Elsewhere: the child has moved since it was seen.
        Lost: the lease is another's, or the traversal is over.
    """
    assert isinstance(done.outcome, ChildTransition)
    planned = done.outcome.step
    for tries_left in range(TRIES - 1, -1, -1):
        try:
            if planned.verb == "create" and planned.child is None:
                return _spawn(db, visit, done, row_of, lease, root)
            with db.transaction():
                return _move(db, visit, done, row_of, lease, root)
        except children.ContentMissing:
            children.store(db, planned.wanted)
        except (errors.DeadlockDetected, errors.SerializationFailure):
            if not tries_left:
                raise
    raise AssertionError("unreachable")


def _spawn(
    db: repository.CheckConnection, visit: Visit, done: StepResult, row_of: Row, lease: int | None, root: str
) -> list[CheckMessage]:
    assert isinstance(done.outcome, ChildTransition)
    planned, known = done.outcome.step, done.known
    known.data = with_request(split_request(known.data)[1], ChildRequest(1, planned.turn))
    row = _row(visit, done, row_of)
    settled = children.spawn(db, planned.wanted, row, lease, root, again=planned.child is not None)
    if row["resource_id"] not in settled.held:
        raise LeaseLost
    return settled.rings


def _move(
    db: repository.CheckConnection, visit: Visit, done: StepResult, row_of: Row, lease: int | None, root: str
) -> list[CheckMessage]:
    assert isinstance(done.outcome, ChildTransition)
    planned, known = done.outcome.step, done.known
    if planned.verb == "create":
        return _spawn(db, visit, done, row_of, lease, root)
    begun = _begin(db, visit, planned)
    asked, kept = split_request(known.data)
    if begun is not None:
        asked = ChildRequest(begun.traversal, planned.turn)
    elif asked is not None:
        asked = ChildRequest(asked.traversal, planned.turn)
    known.data = with_request(kept, asked)
    row = _row(visit, done, row_of)
    settled = repository.write_outcome(db, ending.WAIT, [row], lease, root)
    if row["resource_id"] not in settled.held:
        raise LeaseLost
    return settled.rings + ([] if begun is None else [begun.ring])


def _row(visit: Visit, done: StepResult, row_of: Row) -> dict[str, Any]:
    assert isinstance(done.outcome, ChildTransition)
    planned = done.outcome.step
    row = row_of(visit, done)
    row |= {
        "op": done.known.op,
        "wait_seconds": planned.seconds if planned.verb == "pause" else None,
        "reason": "state changed",
        "retried": False,
    }
    assert visit.resource is not None
    if visit.resource.op is None:
        row["traversal"] = visit.traversal  # no newer planner was told of it
    return row


def _begin(db: repository.CheckConnection, visit: Visit, planned: ChildStep) -> Begun | None:
    child = planned.child
    if planned.verb == "pause":
        return None
    assert child is not None
    if planned.verb == "wait":
        if children.lock_child(db, child.id) != (child.traversal, child.status):
            raise ChildChanged
        return None
    if planned.verb == "update":
        begun = children.update(db, child.id, planned.wanted, converge=visit.stack.converge)
    elif planned.verb == "delete":
        begun = children.begin(db, child.id, "DELETE", retain=visit.stack.retain)
        snapshots.remove_all(db, child.id)
    elif planned.action == "SNAPSHOT":
        begun = _snapshot(db, child.id, planned.wanted)
    else:
        begun = children.begin(db, child.id, planned.action)
    if begun is None:
        raise ChildChanged  # gone at this very moment
    return begun


def _snapshot(db: repository.CheckConnection, child_id: int, uuid: UUID) -> Begun | None:
    ground = snapshots.lock(db, child_id)
    if ground is None:
        return None
    _, opened = snapshots.begin(db, child_id, ground, None, uuid)
    return Begun(opened.traversal, opened.ring)


@contextmanager
def child_side_effects(
    db: repository.CheckConnection, items: Sequence[tuple[Visit, ResourceState, dict[str, Any]]]
) -> Iterator[Callable[[repository.Settled], None]]:
    """Write outcomes in one transaction with what goes with them of child stacks: the causes of failures, and
    that the child of a resource that goes is a stack of its own. Call what is yielded with what was settled.
    """
    causes = {row["resource_id"]: row.pop("causes") for _, _, row in items if row.get("causes")}
    freed = {row["resource_id"]: row.pop("let_go", None) for _, _, row in items}
    let_go = {resource_id: child_id for resource_id, child_id in freed.items() if child_id is not None}
    if not causes and not let_go:
        yield lambda _: None
        return

    def tell(settled: repository.Settled) -> None:
        for visit, _, row in items:
            held = row["resource_id"] if row["resource_id"] in settled.held else None
            if held in causes:
                children.spread(db, visit.stack.id, visit.traversal, row["name"], causes[held])
            if held in let_go:
                children.detach(db, let_go[held])

    with db.transaction():
        for child_id in sorted(let_go.values()):
            children.lock_child(db, child_id)  # a child before the rows of its parent
        yield tell
