"""Visit nodes: claim, decide, act, observe, record. This is the engine's whole inner loop.

One call is one Celery task. The claim is committed before anything is read
(docs/internals/protocol.md rule 2), no transaction is open while a type's verbs run, and what is to be
enqueued next is returned, to be sent after the commit.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from orchestrator.engine.check.visit import Visit
from orchestrator.engine.messages import CheckMessage
from orchestrator.logs import set_log_context
from orchestrator.operations.planning.process import is_small_plan_candidate
from orchestrator.operations.reconcile.batch import CheckBatch
from orchestrator.operations.reconcile.checked_node import CheckedNode
from orchestrator.operations.reconcile.worker_context import WorkerContext
from orchestrator.operations.runtime.lease_keeper import new_lease
from orchestrator.store.nodes import repository
from orchestrator.store.planning import small_plans


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
    """Carry these nodes of one traversal as far as they will go now; return what to enqueue next.

    `durable` is for types that call providers: their commits are on disk before the next step
    (docs/internals/protocol.md rule 5). `bulk` nodes visit no resource: they plan, join and finish. `again`,
    after the database broke off a try: the resources that this claimed under its `lease` are gone on with.
    A summary of each visit is appended to `checked`.

    Raises:
        one of UNREACHABLE: the database is away, or broke this off.
    """
    lease = new_lease() if lease is None else lease
    checked = [] if checked is None else checked
    rings: list[CheckMessage] = []
    try:
        if not durable:
            may_plan = bulk and traversal == 1
            rings, left = _check_without_lease(engine, ids, traversal, checked, may_plan=may_plan)
            ids = [id_ for id_ in ids if id_ in left or again]
        if ids:
            rings += _check_with_lease(engine, ids, traversal, lease, checked, again=again)
        return rings
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
) -> list[CheckMessage]:
    db = engine.database.check_connection(durable=True)
    claimed = repository.claim(db, ids, traversal, lease, engine.settings.lease_seconds)
    visits = repository.read_claimed(db, ids if again else claimed, lease) if claimed or again else []
    if again:  # a plan may be in the hands of a process of its own by now, with our lease
        visits = [one for one in visits if one.resource is not None or one.node_id in claimed]
    if not visits:  # late or repeated: somebody else did it
        return []
    held = [(visit.node_id, visit.resource.id if visit.resource else None, lease) for visit in visits]
    if again:  # nobody has kept it since
        repository.renew(db, held, engine.settings.lease_seconds)
    with engine.leases.keep(held):
        batch = CheckBatch(engine, db, lease)
        rings = batch.run(visits)
    checked += batch.checked
    return rings


def _check_without_lease(
    engine: WorkerContext,
    ids: Sequence[int],
    traversal: int,
    checked: list[CheckedNode],
    *,
    may_plan: bool,
) -> tuple[list[CheckMessage], Collection[int]]:
    """Check nodes of types that call nobody: what writes an outcome takes the node (adr/0001). Return also
    those that take a claim.
    """
    db = engine.database.check_connection(durable=False)
    planned = small_plans.read_plan_node(db, ids[0]) if may_plan and len(ids) == 1 else None
    visits, busy = repository.read_queued(db, ids, traversal) if planned is None else ([planned[0]], [])
    own: list[Visit] = []
    others: list[Visit] = []
    for visit in visits:
        (own if _needs_no_lease(engine, visit) else others).append(visit)
    rings: list[CheckMessage] = []
    if own:
        round_ = CheckBatch(engine, db, None, None if planned is None else planned[1])
        rings += round_.run(own)
        others += round_.left
        checked += round_.checked
    if busy:
        repository.defer_busy(db, busy, traversal)
    return rings, {visit.node_id for visit in others}


def _needs_no_lease(engine: WorkerContext, visit: Visit) -> bool:
    """Whether a visit needs no claim: of a type that calls nobody, of a child's first beginning, its
    removal's and any end.
    """
    if visit.resource is not None:
        kind = engine.types.get(visit.resource.kind)
        if kind is not None:
            return not kind.needs_lease
        return visit.definition is not None and "nested" in visit.definition.body
    return (
        (visit.kind == "finish" or (visit.kind == "plan" and is_small_plan_candidate(visit)))
        and visit.stack.root_id != visit.stack.id  # nobody is told of it but the stack around it
        and not (visit.superseded or visit.halted or visit.lost_leases)
    )
