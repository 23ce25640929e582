"""Observe a resource beside the operations of its stack. A call is a Celery task.

The task reads the resource, calls `observe` of its type without a transaction and without a lease, and writes
the verdict if the resource has not changed meanwhile. It changes nothing at the provider.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from orchestrator import backoff
from orchestrator.engine.check.absence import AbsenceInDoubt
from orchestrator.engine.check.outcome import absence_reason, error_text, retry_seconds
from orchestrator.engine.messages import Message
from orchestrator.errors import UNREACHABLE_ERRORS, AwaitingBudget
from orchestrator.logs import logger
from orchestrator.operations.observation.findings import full_context
from orchestrator.operations.observation.observation_pass import continue_pass, start
from orchestrator.operations.reconcile.worker_context import WorkerContext
from orchestrator.operations.runtime.visit_calls import VisitCalls
from orchestrator.resources.base import Observation, ResourceType
from orchestrator.resources.nested_type import NestedType
from orchestrator.store import observations
from orchestrator.store.connections.damaged_rows import DAMAGED, damage
from orchestrator.store.connections.database import UNREACHABLE
from orchestrator.store.observations import Db, Selected, Verdict

log = logger()

MAX_TRIES: Final = 3  # attempts to reach a provider
MAX_REASON: Final = 1_000  # characters


def observe_resource(engine: WorkerContext, resource_id: int) -> Sequence[Message]:
    """Observe a resource of a pass; return the messages for the next resources."""
    db = engine.database.check_connection(durable=True)
    engine.quarantine.refresh(db)
    stack_id = observations.owner(db, resource_id)
    if stack_id is None:  # observed already
        return []
    messages: list[Message] = []
    try:
        selected = observations.read(db, resource_id)
    except DAMAGED as error:
        log.error("row_damaged", kind="resource", id=resource_id, error=damage(error))
        selected = None
    if selected is None or selected.visit.resource.physical_id is None:
        observations.drop(db, resource_id)
    else:
        with engine.quarantine.guarding("observation", resource_id):
            messages += _observe(engine, db, selected)
    with db.transaction():
        messages += continue_pass(db, engine.types, stack_id, backoff.RE_ENQUEUE_SECONDS)
    return messages


def _observe(engine: WorkerContext, db: Db, selected: Selected) -> Sequence[Message]:
    visit = selected.visit
    try:
        engine.quarantine.require_released("observation", visit.resource.id)
        type_ = engine.stacks.type_of(visit)
        if isinstance(type_, NestedType):
            return _observe_child(engine, db, selected)
        observation = _call(engine, db, selected, type_)
    except UNREACHABLE:
        raise  # our own database: the observation is repeated
    except Exception as error:
        if isinstance(error, AwaitingBudget | AbsenceInDoubt):  # no failed try
            observations.postpone(db, visit.resource.id, error.retry_after or 0.0, tries=0)
            return []
        if isinstance(error, UNREACHABLE_ERRORS) and selected.tries + 1 < MAX_TRIES:
            pause = retry_seconds(selected.tries, backoff.RETRY_MAX_SECONDS)
            observations.postpone(db, visit.resource.id, pause, tries=1)
            return []
        reason = error_text(error)[:MAX_REASON]
        log.info("resource_unreachable", stack=visit.stack.uuid, resource=visit.resource.name, error=reason)
        observations.record_unreachable(db, selected, reason)
    else:
        observations.record_verdict(db, selected, *_verdict(observation, visit.resource.physical_id))
    return []


def _call(engine: WorkerContext, db: Db, selected: Selected, type_: ResourceType) -> Observation:
    """Observe the object. An open circuit breaker refuses all attempts but the last."""
    last = selected.tries + 1 >= MAX_TRIES
    visit, physical_id = selected.visit, selected.visit.resource.physical_id or ""
    ctx = full_context(engine, db, visit, selected.credential_id)
    with VisitCalls(type_, visit, engine.breakers, always=last) as calls:
        return calls.run(type_.observe, replace(ctx, calls=calls.provider), physical_id)


def _verdict(observation: Observation, physical_id: str | None) -> tuple[Verdict, str]:
    if not observation.exists:
        return "absent", absence_reason(observation, physical_id)[:MAX_REASON]
    if observation.error:
        return "error", observation.error[:MAX_REASON]
    return ("ready" if observation.ready else "not-ready"), observation.reason[:MAX_REASON]


def _observe_child(engine: WorkerContext, db: Db, selected: Selected) -> Sequence[Message]:
    """Observe the child stack of a resource, and start a pass over the resources of the child."""
    visit = selected.visit
    child = observations.child_of(db, visit.resource.id)
    if child is None:
        observations.record_verdict(db, selected, "absent", "Its stack no longer exists.")
        return []
    state = f"{child.action}_{child.status}"
    verdict: Verdict = "ready"
    if child.status != "COMPLETE":
        verdict = "error" if child.status == "FAILED" else "not-ready"
    reason = "" if verdict == "ready" else f"Its stack is {state}: {child.status_reason}"[:MAX_REASON]
    with db.transaction():
        observations.record_verdict(db, selected, verdict, reason)
        begun = "Observation of the resources started with that of the parent stack"
        seconds = backoff.RE_ENQUEUE_SECONDS
        return start(db, engine.types, child.id, begun, seconds, selected.credential_id)
