"""Visit nodes: claim, decide, act, observe, record. This is the engine's whole inner loop.

Each call is a Celery task. The claim is committed before anything is read
(docs/internals/protocol.md rule 2), no transaction is open while a type's verbs run, and the messages are
returned, to be sent after the commit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from orchestrator.clients.only_lists import Together
from orchestrator.engine.check.visit import ResourceVisit, Visit
from orchestrator.engine.messages import CheckMessage
from orchestrator.logs import set_log_context
from orchestrator.operations import stack_completion
from orchestrator.operations.planning.process import is_small_plan_candidate
from orchestrator.operations.reconcile.batch import check_batch
from orchestrator.operations.reconcile.checked_node import CheckedNode
from orchestrator.operations.reconcile.resource_visits import batch_context
from orchestrator.operations.reconcile.worker_context import WorkerContext
from orchestrator.operations.runtime.lease_keeper import new_lease
from orchestrator.store.connections.damaged_rows import DAMAGED
from orchestrator.store.connections.database import Database
from orchestrator.store.nodes import repository
from orchestrator.store.planning import small_plans

T = TypeVar("T")


def check_nodes(
    engine: WorkerContext,
    ids: Sequence[int],
    traversal: int,
    *,
    durable: bool,
    bulk: bool = False,
    lease: int | None = None,
    again: bool = False,
    checked: list[CheckedNode] | None = None,
) -> list[CheckMessage]:
    """Advance nodes of a traversal as far as possible now; return the messages to send.

    `durable` is for external types: their commits are on disk before the next step
    (docs/internals/protocol.md rule 5); several nodes of them are answered by a list that they share, and
    released for tasks of their own otherwise (adr/0022). `bulk` nodes have no resource: they plan, join and
    finish. `again` repeats a call that the database interrupted, with its `lease`: the claimed resources are
    continued. A summary of each visit is appended to `checked`.

    Raises:
        UNREACHABLE: the database is away, or has interrupted this call.
    """
    lease = new_lease() if lease is None else lease
    checked = [] if checked is None else checked
    messages: list[CheckMessage] = []
    engine.quarantine.refresh(engine.database.check_connection(durable=durable))
    try:
        if not durable:
            may_plan = bulk and traversal == 1
            messages, remaining = _check_without_lease(engine, ids, traversal, checked, may_plan=may_plan)
            ids = [id_ for id_ in ids if id_ in remaining or again]
        if ids:
            messages += _check_with_lease(
                engine, ids, traversal, lease, checked, again=again, external=durable
            )
        return messages
    finally:
        set_log_context(None)


def _check_with_lease(
    engine: WorkerContext,
    ids: Sequence[int],
    traversal: int,
    lease: int,
    checked: list[CheckedNode],
    *,
    again: bool,
    external: bool,
) -> list[CheckMessage]:
    db = engine.database.check_connection(durable=True)
    claimed = repository.claim(db, ids, traversal, lease, engine.settings.lease_seconds)
    if again:
        repository.mark_interrupted(db, [id_ for id_ in ids if id_ not in claimed], lease)
    parts, told = (
        _read_each(
            engine.database, ids if again else claimed, lambda part: repository.read_claimed(db, part, lease)
        )
        if claimed or again
        else ([], [])
    )
    visits = [visit for part in parts for visit in part]
    if again:  # a plan may run in a process of its own by now, under our lease
        visits = [visit for visit in visits if isinstance(visit, ResourceVisit) or visit.node_id in claimed]
    if not visits:  # late or duplicate message
        return told
    leases = [
        (visit.node_id, visit.resource.id if isinstance(visit, ResourceVisit) else None, lease)
        for visit in visits
    ]
    if again:  # it was not renewed since
        repository.renew(db, leases, engine.settings.lease_seconds)
    with engine.leases.keep(leases):
        together = Together(len(visits), time.monotonic()) if external and len(visits) > 1 else None
        batch = batch_context(engine, db, lease, together)
        messages = check_batch(batch, visits).messages
    checked += batch.checked
    return told + messages


def _check_without_lease(
    engine: WorkerContext,
    ids: Sequence[int],
    traversal: int,
    checked: list[CheckedNode],
    *,
    may_plan: bool,
) -> tuple[list[CheckMessage], Collection[int]]:
    """Check nodes of local types: the statement that writes an outcome takes the node (adr/0001). Return
    the messages, and the nodes that need a lease.
    """
    db = engine.database.check_connection(durable=False)
    planned = small_plans.read_plan_node(db, ids[0]) if may_plan and len(ids) == 1 else None
    visits, busy, messages = list[Visit](), list[int](), list[CheckMessage]()
    if planned is not None:
        visits.append(planned[0])
    else:
        parts, messages = _read_each(
            engine.database, ids, lambda part: repository.read_queued(db, part, traversal)
        )
        for read, held in parts:
            visits += read
            busy += held
    leaseless: list[Visit] = []
    needing_lease: list[Visit] = []
    for visit in visits:
        (leaseless if _needs_no_lease(engine, visit) else needing_lease).append(visit)
    if leaseless:
        plan_inputs = None if planned is None else planned[1]
        batch = batch_context(engine, db, None)
        result = check_batch(batch, leaseless, plan_inputs)
        checked += batch.checked
        messages += result.messages
        needing_lease += result.needing_lease
    if busy:
        repository.defer_busy(db, busy, traversal)
    return messages, {visit.node_id for visit in needing_lease}


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
