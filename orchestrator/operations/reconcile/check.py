"""Visit nodes: claim, decide, act, observe, record. This is the engine's whole inner loop.

Each call is a Celery task. The claim is committed before anything is read
(docs/internals/protocol.md rule 2), no transaction is open while a type's verbs run, and the messages are
returned, to be sent after the commit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.clients.provider_calls import ListBatch
from orchestrator.engine.check.visit import ResourceVisit, Visit
from orchestrator.engine.messages import CheckMessage
from orchestrator.logs import set_log_context
from orchestrator.operations import stack_completion
from orchestrator.operations.planning.process import is_small_plan_candidate
from orchestrator.operations.reconcile.batch import check_batch
from orchestrator.operations.reconcile.checked_node import CheckedNode
from orchestrator.operations.reconcile.resource_visits import batch_context
from orchestrator.operations.reconcile.worker_context import WorkerContext
from orchestrator.operations.runtime import lease_keeper
from orchestrator.operations.runtime.lease_keeper import new_lease
from orchestrator.store.connections.damaged_rows import DAMAGED
from orchestrator.store.connections.database import Database
from orchestrator.store.nodes import repository
from orchestrator.store.planning import small_plans

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Attempt:
    """A call for nodes, which repeats an earlier call that the database interrupted, or none."""

    lease: int = field(default_factory=new_lease)
    checked: list[CheckedNode] = field(default_factory=list)  # receives a summary of each visit
    repeats: bool = False  # the resources that were claimed under the lease are continued


def check_local(
    engine: WorkerContext, ids: Sequence[int], traversal: int, attempt: Attempt | None = None
) -> list[CheckMessage]:
    """Advance nodes of local types as far as possible now; return the messages to send. The statement that
    writes an outcome takes the node (adr/0001); the rest is checked under a lease.

    Raises:
        UNREACHABLE: the database is away, or has interrupted this call.
    """
    with _beginning(engine, durable=False):
        return _check_local(engine, ids, traversal, attempt or Attempt())


def check_bulk(
    engine: WorkerContext, ids: Sequence[int], traversal: int, attempt: Attempt | None = None
) -> list[CheckMessage]:
    """The same for nodes without a resource, which plan, join and finish. The first plan of a stack is read
    together with the content that it plans.

    Raises:
        UNREACHABLE: as `check_local`.
    """
    attempt = attempt or Attempt()
    with _beginning(engine, durable=False) as db:
        planned = small_plans.read_plan_node(db, ids[0]) if traversal == 1 and len(ids) == 1 else None
        if planned is None:
            return _check_local(engine, ids, traversal, attempt)
        visit, inputs = planned
        return _check_visits(engine, ids, traversal, attempt, [visit], plan_inputs=inputs)


def check_external(
    engine: WorkerContext, ids: Sequence[int], traversal: int, attempt: Attempt | None = None
) -> list[CheckMessage]:
    """The same for nodes of external types: their commits are on disk before the next step
    (docs/internals/protocol.md rule 5). Several nodes are answered by a list that they share, and released
    for their own tasks otherwise (adr/0022).

    Raises:
        UNREACHABLE: as `check_local`.
    """
    with _beginning(engine, durable=True):
        return _check_with_lease(engine, ids, traversal, attempt or Attempt(), share_lists=True)


Check = Callable[[WorkerContext, Sequence[int], int, Attempt | None], list[CheckMessage]]


def check_of(queue: str) -> Check:
    """Return the function for the nodes of a queue; the planner writes the queue of a node."""
    match queue:
        case "provider":
            return check_external
        case "bulk":
            return check_bulk
        case _:
            return check_local


@contextmanager
def _beginning(engine: WorkerContext, *, durable: bool) -> Iterator[Connection[TupleRow]]:
    """Learn of the quarantined work; yield the connection. The log names no node afterwards."""
    db = engine.database.check_connection(durable=durable)
    engine.quarantine.refresh(db)
    try:
        yield db
    finally:
        set_log_context(None)


def _check_local(
    engine: WorkerContext, ids: Sequence[int], traversal: int, attempt: Attempt
) -> list[CheckMessage]:
    db = engine.database.check_connection(durable=False)
    parts, messages = _read_each(
        engine.database, ids, lambda part: repository.read_queued(db, part, traversal)
    )
    visits = [visit for read, _ in parts for visit in read]
    busy = [id_ for _, held in parts for id_ in held]
    return messages + _check_visits(engine, ids, traversal, attempt, visits, busy)


def _check_visits(
    engine: WorkerContext,
    ids: Sequence[int],
    traversal: int,
    attempt: Attempt,
    visits: Sequence[Visit],
    busy: Sequence[int] = (),
    plan_inputs: small_plans.CreateInputs | None = None,
) -> list[CheckMessage]:
    """Check visits without a lease where that suffices, and the others with a lease."""
    db, messages = engine.database.check_connection(durable=False), list[CheckMessage]()
    leaseless, needing_lease = list[Visit](), list[Visit]()
    for visit in visits:
        (leaseless if _needs_no_lease(engine, visit) else needing_lease).append(visit)
    if leaseless:
        batch = batch_context(engine, db, None)
        result = check_batch(batch, leaseless, plan_inputs)
        attempt.checked.extend(batch.checked)
        messages += result.messages
        needing_lease += result.needing_lease
    if busy:
        repository.defer_busy(db, busy, traversal)
    remaining = {visit.node_id for visit in needing_lease}
    ids = [id_ for id_ in ids if id_ in remaining or attempt.repeats]
    return messages + _check_with_lease(engine, ids, traversal, attempt) if ids else messages


def _check_with_lease(
    engine: WorkerContext,
    ids: Sequence[int],
    traversal: int,
    attempt: Attempt,
    *,
    share_lists: bool = False,
) -> list[CheckMessage]:
    db, lease = engine.database.check_connection(durable=True), attempt.lease
    claimed = repository.claim(db, ids, traversal, lease, lease_keeper.LEASE_SECONDS)
    if attempt.repeats:
        repository.mark_interrupted(db, [id_ for id_ in ids if id_ not in claimed], lease)
    readable = ids if attempt.repeats else claimed
    parts, messages = (
        _read_each(engine.database, readable, lambda part: repository.read_claimed(db, part, lease))
        if readable
        else ([], [])
    )
    visits = [visit for part in parts for visit in part]
    if attempt.repeats:  # a plan may run in its own process by now, under our lease
        visits = [visit for visit in visits if isinstance(visit, ResourceVisit) or visit.node_id in claimed]
    if not visits:  # late or duplicate message
        return messages
    leases = [
        (visit.node_id, visit.resource.id if isinstance(visit, ResourceVisit) else None, lease)
        for visit in visits
    ]
    if attempt.repeats:  # it was not renewed since
        repository.renew(db, leases, lease_keeper.LEASE_SECONDS)
    with engine.leases.keep(leases):
        together = ListBatch(len(visits), time.monotonic()) if share_lists and len(visits) > 1 else None
        batch = batch_context(engine, db, lease, together)
        messages += check_batch(batch, visits).messages
    attempt.checked.extend(batch.checked)
    return messages


def _needs_no_lease(engine: WorkerContext, visit: Visit) -> bool:
    """Whether a visit needs no lease: to a local type, to a nested stack, or to a plan or finish node of a
    child.
    """
    if isinstance(visit, ResourceVisit):
        try:
            type_ = engine.types.get(visit.resource.resource_type)
            if type_ is not None:
                return not type_.needs_lease
            return visit.definition is not None and "nested" in visit.definition.body
        except DAMAGED:  # the visit reports it
            return False
    return (
        (visit.kind == "finish" or (visit.kind == "plan" and is_small_plan_candidate(visit)))
        and visit.stack.root_id != visit.stack.id  # only its parent is notified
        and not (visit.superseded or visit.halted or visit.lost_leases)
    )


def _read_each(
    database: Database, ids: Sequence[int], read: Callable[[Sequence[int]], T]
) -> tuple[list[T], list[CheckMessage]]:
    """Read nodes together, and each by itself if that fails: the stacks of those that cannot be read end as
    FAILED. Return what was read, and messages to send.
    """
    try:
        return [read(ids)], []
    except DAMAGED as error:
        if len(ids) == 1:
            db = database.check_connection(durable=True)
            messages: list[CheckMessage] = []
            for stack_id, traversal in repository.traversals_of(db, ids):
                messages += stack_completion.fail_damaged(database, stack_id, traversal, error)
            return [], messages
    parts, messages = list[T](), []
    for id_ in ids:
        found, told = _read_each(database, [id_], read)
        parts += found
        messages += told
    return parts, messages
