"""Take in the signals of one resource, in the order they came. One call is one Celery task.

The resource's lease is held meanwhile, as a check holds it (PROTOCOL.md 1); no transaction is open while the
type takes a signal in, and what it wrote, the event and the end of the signal are one statement. A signal
whose worker dies in between comes again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orchestrator.engine.messages import Message, SignalRing
from orchestrator.engine.outcome import back_off, failure_reason
from orchestrator.errors import OrchestratorError, ProviderBusy, ProviderError
from orchestrator.operations import dealing, resizing
from orchestrator.operations.check import Engine, new_lease
from orchestrator.operations.child_stacks import StackAround
from orchestrator.operations.known import Known, known_before, stored_values
from orchestrator.operations.software import Software
from orchestrator.resources.base import Context, ResourceType, Signalled
from orchestrator.resources.groups.scaling_group import ScalingGroup
from orchestrator.store import signals
from orchestrator.store.signals import Pending
from orchestrator.telemetry import logger

log = logger()

AT_ONCE, AT_ONCE_SECONDS = 50, 15.0  # signals, and how long; the others are left to another task


def take_in(engine: Engine, resource_id: int) -> list[Message]:
    """Take in what a resource was sent; return what to enqueue next."""
    rings: list[Message] = []
    began_at = time.monotonic()
    for _ in range(AT_ONCE):
        lease = new_lease()
        db = engine.database.hot(durable=True)
        if not signals.claim(db, resource_id, lease, engine.settings.lease_seconds):
            return rings
        pending = signals.look(db, resource_id, lease)
        if pending is None:  # the lease was lost already
            return rings
        with engine.leases.keep([(0, resource_id, lease)]):
            rings += _take_one(engine, pending, lease)
        again = SignalRing(resource_id, pending.name, pending.visit.stack.uuid)
        if time.monotonic() - began_at > AT_ONCE_SECONDS:
            break
    return [*rings, again]


def _take_one(engine: Engine, pending: Pending, lease: int) -> list[Message]:
    db, visit, resource = engine.database.hot(durable=True), pending.visit, pending.visit.resource
    assert resource is not None
    kind = engine.types.get(resource.kind)
    details = engine.cipher.open(pending.details)
    if resizing.is_follow(details) and isinstance(kind, ScalingGroup):
        return resizing.follow(engine, pending, lease, details)
    if kind is None or not kind.takes_signals:  # it was another type's when the signal came
        return [*signals.dismiss(db, pending, lease, "Signal failed: signal is not supported", failed=True)]
    if resource.action in signals.REFUSING and not kind.signals_always:
        reason = f"Cannot signal resource during {resource.action}"
        return [*signals.dismiss(db, pending, lease, reason)]
    if resource.physical_id is None:  # it is being made again
        return [*signals.put_off(db, pending, lease, back_off(pending.tries))]
    known = known_before(visit, engine.cipher)
    rings: list[Message] = []
    try:
        did = kind.signal(_context(engine, pending, known), resource.physical_id, details)
        if did.resize is not None:
            sent = resizing.resize(engine, visit, did.resize)
            if sent is None:
                return [*signals.overlook(db, pending, lease)]
            rings += sent
    except Exception as error:
        if isinstance(error, ProviderBusy) and pending.tries < engine.settings.action_retry_limit:
            return [*signals.put_off(db, pending, lease, back_off(pending.tries))]
        reason = failure_reason(_kind_of(error), resource.name, str(error))
        log.warning("signal_failed", stack=visit.stack.uuid, resource=resource.name, error=reason)
        return [*signals.dismiss(db, pending, lease, f"Signal failed: {reason}", failed=True)]
    _keep(known, did)
    if resource.op is None and resource.status == "COMPLETE":
        _refresh(engine, kind, pending, known)
    values = stored_values(known)
    sealed = engine.cipher.seal(values).decode() if known.secret else None
    values["value_digest"] = known.value_digest
    return [*rings, *signals.record(db, pending, lease, _reason(did, details), values, sealed)]


def _keep(known: Known, did: Signalled) -> None:
    """Bring data and metadata to what the signal made of them."""
    if did.data is not None:
        known.data = did.data
    if did.metadata is not None:
        if known.given_metadata is None:
            known.given_metadata = known.metadata or {}
        known.metadata = did.metadata


def _refresh(engine: Engine, kind: ResourceType, pending: Pending, known: Known) -> None:
    """Bring what a settled resource hands on to what it is after the signal; the signal is not about that."""
    try:
        seen = kind.observe(_context(engine, pending, known), known.physical_id or "")
    except OrchestratorError as error:
        log.info("not_observed_after_signal", stack=pending.visit.stack.uuid, error=str(error))
        return
    if seen.exists and seen.ready and not seen.error:
        dealing.take(known, kind, seen)


def _context(engine: Engine, pending: Pending, known: Known) -> Context:
    software = Software.of(pending.visit, engine.database, engine.cipher, engine.settings)
    ctx = dealing.context(pending.visit, known, known.op or "CHECK", software=software)
    ctx = replace(ctx, around=StackAround(engine.stacks, pending.visit))
    return dealing.calling(ctx, engine.settings, pending.visit.stack.project_id)


def _kind_of(error: Exception) -> str:
    if isinstance(error, ProviderError):
        return error.kind
    return error.heat_type if isinstance(error, OrchestratorError) else type(error).__name__


def _reason(did: Signalled, details: Any) -> str:
    """Return what the event tells: what the type says it did, or else what came (spec/rest-api.md §7.4)."""
    if did.reason:
        return f"Signal: {did.reason}"
    match details:
        case None:
            return "No signal details provided"
        case str():
            return details
        case Mapping() if {"previous", "current", "reason"} <= details.keys():
            return (
                f"alarm state changed from {details['previous']} to {details['current']} "
                f"({details['reason']})"
            )
        case _:
            return "Unknown"
