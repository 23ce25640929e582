"""Observe resources whose older requests may still be carried out, and correct what these have changed
(operations/adr/0025).

A call is a Celery task, as for an observation pass. Nothing is deleted or replaced: a deviation marks the
resource, and an update of the present revision over it corrects the object. It needs no policy: the damage is
not drift, but an effect of our own request.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from orchestrator import backoff, metrics
from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.engine.messages import CheckMessage, ObservationMessage
from orchestrator.engine.observation.judgement import judge, without_accepted
from orchestrator.engine.observation.policies import accepts
from orchestrator.engine.observation.repairs import Mark, action_for, corrected, obstacle
from orchestrator.errors import Misconfigured
from orchestrator.logs import logger
from orchestrator.operations.observation.faults import is_in_group, observed_fault
from orchestrator.operations.observation.findings import full_context, observed, recorded_values
from orchestrator.operations.observation.healing import busy
from orchestrator.operations.reconcile.worker_context import WorkerContext
from orchestrator.operations.resource_context.state import load_state
from orchestrator.operations.runtime.maintenance_job import MAX_ROWS, Maintenance, MaintenanceJob
from orchestrator.resources.base import Context, Observation, ResourceType
from orchestrator.store.connections.damaged_rows import DAMAGED, damage
from orchestrator.store.maintenance import late_requests as store
from orchestrator.store.maintenance.late_requests import Db, LateRequest
from orchestrator.store.observation import marks, repair_starts, repairs, rules, watched
from orchestrator.store.observation.marks import MarkRow
from orchestrator.store.observation.repairs import StackState
from orchestrator.store.observation.watched import VersionedVisit
from orchestrator.store.traversals import traversals

log = logger()

MAX_NAMES: Final = 5  # in a line of the log
PURPOSE: Final = "correction after a late request"


class Correction(NamedTuple):
    """The effect of a late request: properties, or whether the object is suspended."""

    mark: MarkRow | None = None
    suspended: bool | None = None  # as it is, and should not be


def follow_late_requests(engine: WorkerContext, resource_id: int) -> Sequence[CheckMessage]:
    """Observe a resource with late requests, if it has any; return the message of a correction."""
    db = engine.database.check_connection(durable=True)
    late = store.read(db, resource_id)
    if late is None:
        return []
    if late.gone or late.hopeless:
        store.forget(db, resource_id)
        return []
    root = repairs.stacks(db, [late.root_id]).get(late.root_id)
    found = next(iter(watched.visits(db, [resource_id])), None)
    if late.deposed or root is None or found is None:  # a rollback may restore it
        return _continue(db, resource_id, late)
    if not late.at_rest or (root.status == "IN_PROGRESS" and (root.action != "UPDATE" or late.marked)):
        store.continue_(db, resource_id, store.BUSY_SECONDS)
        return []
    try:
        if late.marked and not busy(root):
            return _correct(db, found, root.id, None)
        if engine.quarantine.reason("observation", resource_id):
            return _continue(db, resource_id, late)
        with engine.quarantine.guarding("observation", resource_id):
            return _follow(engine, db, late, found, root)
    except DAMAGED as error:
        log.error("row_damaged", kind="resource", id=resource_id, error=damage(error))
        return _continue(db, resource_id, late)


def _continue(db: Db, resource_id: int, late: LateRequest) -> Sequence[CheckMessage]:
    """Observe the resource again after a pause, unless no request can arrive any more."""
    if late.over:
        store.end(db, resource_id)
    store.continue_(db, resource_id)
    return []


def _follow(
    engine: WorkerContext, db: Db, late: LateRequest, found: VersionedVisit, root: StackState
) -> Sequence[CheckMessage]:
    resource_id, type_ = found.visit.resource.id, _type(engine, found.visit)
    if type_ is None:
        return _continue(db, resource_id, late)
    ctx = full_context(engine, db, found.visit)
    seen = observed(engine, found.visit, type_, ctx)
    if not isinstance(seen, Observation):
        store.continue_(db, resource_id, store.RETRY_SECONDS)
        return []
    correction = Correction()
    if root.status != "IN_PROGRESS":
        correction = Correction(suspended=_wrongly_suspended(engine, found.visit, type_, ctx, late))
    if correction.suspended is None:
        correction = Correction(_mark(engine, db, found, type_, seen))
    if correction == Correction():
        in_transition = seen.exists and not seen.ready and not seen.error  # its values are not final yet
        return _continue(db, resource_id, late._replace(over=late.over and not in_transition))
    if found.visit.resource.suspended and correction.mark is not None:  # the stack is to be resumed first
        store.continue_(db, resource_id, store.SUSPENDED_SECONDS)
        return []
    return _correct(db, found, root.id, correction)


def _type(engine: WorkerContext, visit: ResourceVisit) -> ResourceType | None:
    try:
        return engine.types.get(visit.resource.resource_type)
    except Misconfigured:  # reported at the start of the worker
        return None


def _wrongly_suspended(
    engine: WorkerContext, visit: ResourceVisit, type_: ResourceType, ctx: Context, late: LateRequest
) -> bool | None:
    """Return whether the object is suspended, if it should not be, or is not and should be; None: it is as
    recorded, or in neither state.
    """
    if not (late.pauses and type_.can_pause):
        return None
    ready = {}
    for action in ("SUSPEND", "RESUME"):
        seen = observed(engine, visit, type_, replace(ctx, action=action))
        ready[action] = isinstance(seen, Observation) and seen.exists and seen.ready and not seen.error
    suspended = ready["SUSPEND"]
    if suspended == ready["RESUME"] or suspended == visit.resource.suspended:
        return None
    return suspended


def _mark(
    engine: WorkerContext, db: Db, found: VersionedVisit, type_: ResourceType, seen: Observation
) -> MarkRow | None:
    """Return the mark of an object that differs from its resource; None if there is nothing to correct. An
    object in transition is compared as well: the update waits for the end of that.
    """
    visit = found.visit
    resource, stack = visit.resource, visit.stack
    if resource.suspect or seen.error:
        return None
    state = load_state(visit, engine.cipher)
    recorded = recorded_values(type_, found, state, full_context(engine, db, visit))
    drift = judge(recorded, replace(seen, ready=True))
    [place] = rules.places(db, [(stack.id, resource.name, resource.resource_type)])
    in_force = [row.rule for row in rules.in_force(db, stack.project_id, {id_ for id_, _ in place.stacks})]
    now = dt.datetime.now(dt.UTC)
    drift = without_accepted(drift, lambda path: accepts(in_force, place, path, now) is not None)
    if drift.state not in ("MODIFIED", "MISSING"):
        return None
    environment = repairs.stacks(db, [stack.id])[stack.id].environment
    grouped = is_in_group(engine.types, rules.holders(db, {stack.id}).get(stack.id, ()))
    fault = observed_fault(visit, type_, recorded, drift, environment, grouped=grouped)
    action = action_for(fault)
    if action is None or action not in ("update", "recreate") or obstacle(fault, action):
        return None  # left to the policies: a late request has replaced nothing
    if action == "recreate" and fault.holds_data:
        return None
    names = ", ".join(sorted(corrected(fault)))
    told = f"Correction ({action}): a request that was superseded has changed {names or 'the object'}"
    return MarkRow(resource.id, found.version, Mark(drift.state, action, corrected(fault)), told)


def _correct(
    db: Db, found: VersionedVisit, root_id: int, correction: Correction | None
) -> Sequence[CheckMessage]:
    """Mark the resource, unless it is marked (None), and start an update over all marked resources of the
    tree. While an update is in progress, or others of the tree are still to be observed, it is only marked:
    the next visit of a marked resource starts one update for all. A stack that has not reached its desired
    revision keeps the marks for its next update.
    """
    resource = found.visit.resource
    messages: Sequence[CheckMessage] = []
    with db.transaction():
        traversals.lock(db, root_id)
        root = repairs.stacks(db, [root_id]).get(root_id)
        if root is not None and correction is not None and correction.suspended is False:
            messages = _suspend_again(db, root, resource.name)
        elif root is not None:
            others = False
            if correction is not None and _mark_row(db, found, correction):
                others = store.gather(db, root_id, resource.id)
                store.mark(db, resource.id)
            messages = [] if others or busy(root) else _start(db, root_id)
        store.continue_(db, resource.id, None if messages else store.BUSY_SECONDS)
    return messages


def _start(db: Db, root_id: int) -> Sequence[CheckMessage]:
    """Start an update over the marked resources of a locked tree."""
    marked = store.take_marked(db, root_id)
    if not marked:
        return []
    names = [name for name, _ in marked]
    stacks = {stack_id for _, stack_id in marked}
    started = repair_starts.begin(db, root_id, stacks, PURPOSE, names, automatic=True)
    _log(root_id, names)
    return [started.message]


def _mark_row(db: Db, found: VersionedVisit, correction: Correction) -> Collection[int]:
    if correction.mark is not None:
        return marks.mark(db, [correction.mark])
    return store.mark_suspended(db, found.visit.resource.id, found.version)


def _suspend_again(db: Db, root: StackState, name: str) -> Sequence[CheckMessage]:
    """Repeat the suspend of a stack after a late resume of a resource."""
    if (root.action, root.status) != ("SUSPEND", "COMPLETE"):
        return []
    started = traversals.start_traversal(db, root.id, "SUSPEND", automatic=True)
    _log(root.id, [name])
    return [] if started is None else [started.message]


def _log(root_id: int, names: Sequence[str]) -> None:
    metrics.count_repair("started", len(names))
    log.warning("late_requests_corrected", stack_id=root_id, resources=names[:MAX_NAMES])
    log.info("audit", action="stacks:repair", automatic=True, stack_id=root_id, resources=len(names))


def enqueue_due(tools: Maintenance) -> Sequence[ObservationMessage]:
    """Return messages for the resources that are to be observed."""
    return store.due(tools.db, backoff.RE_ENQUEUE_SECONDS, MAX_ROWS)


DUE: Final = MaintenanceJob("late_requests", enqueue_due, store.HAS_DUE, exclusive=True)
