"""Process the signals of a resource in order of arrival. A call is a Celery task.

The call holds the resource's lease, like a check (docs/internals/protocol.md rule 1). No transaction is open
while the type handles a signal. Its changes, the event and the end of the signal are written by a single
statement. If the worker dies before, the signal is processed again.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from orchestrator import backoff, metrics
from orchestrator.engine.check.outcome import failure_reason, retry_seconds
from orchestrator.engine.messages import Message, SignalMessage
from orchestrator.errors import (
    UNREACHABLE_ERRORS,
    DamagedValue,
    Misconfigured,
    OrchestratorError,
    ProviderError,
)
from orchestrator.json_types import JsonObject
from orchestrator.logs import logger
from orchestrator.operations.children.loader import LazyStackContext
from orchestrator.operations.keystone.delegated_credentials import cloud_of_visit
from orchestrator.operations.reconcile.worker_context import WorkerContext
from orchestrator.operations.resource_context import operation
from orchestrator.operations.resource_context.stack_context import StoredStackContext
from orchestrator.operations.resource_context.state import (
    ResourceState,
    load_state,
    sealed_columns,
    to_columns,
)
from orchestrator.operations.runtime import lease_keeper
from orchestrator.operations.runtime.lease_keeper import new_lease
from orchestrator.operations.runtime.maintenance_job import MAX_ROWS, Maintenance, MaintenanceJob
from orchestrator.operations.signals import scale_group
from orchestrator.operations.signals.group_requests import ForwardedSignals
from orchestrator.operations.software.type_store import DeploymentStore
from orchestrator.resources.base import Context, ResourceType, Signalled
from orchestrator.resources.groups.scaling_group import ScalingGroup
from orchestrator.store.connections.damaged_rows import DAMAGED, damage
from orchestrator.store.connections.database import UNREACHABLE
from orchestrator.store.signals import group_resize, queue, watchers
from orchestrator.store.signals.ingest import REFUSING
from orchestrator.store.signals.queue import Pending, PendingSignal, SignalEffect

log = logger()

MAX_CLAIMS, MAX_TASK_SECONDS = 50, 15.0  # claims per task, and seconds; the rest is left to another task
MAX_BATCH = 200  # maximum signals per claim, for a local type


def process_signals(engine: WorkerContext, resource_id: int) -> list[Message]:
    """Process the signals of a resource; return the messages to send."""
    messages: list[Message] = []
    began_at = time.monotonic()
    for _ in range(MAX_CLAIMS):
        lease = new_lease()
        db = engine.database.check_connection(durable=True)
        engine.quarantine.refresh(db)
        if not queue.claim(db, resource_id, lease, lease_keeper.LEASE_SECONDS):
            group_resize.wait_for_operation(db, resource_id)
            return messages
        try:
            pending = queue.read_pending(db, resource_id, lease, MAX_BATCH)
        except DAMAGED as error:  # not even its stack is known
            log.error("row_damaged", kind="signal", resource_id=resource_id, error=damage(error))
            return [*messages, *queue.discard(db, resource_id, lease)]
        if pending is None:  # another worker has processed them, or the lease is lost already
            return [*messages, *queue.release(db, resource_id, lease)]
        leases = [(0, resource_id, lease)]
        with engine.leases.keep(leases), engine.quarantine.guarding("signals", resource_id):
            messages += _processed(engine, pending, lease)
        if not queue.has_pending(db, resource_id):
            return messages
        again = SignalMessage(resource_id, pending.name, pending.visit.stack.uuid)
        if time.monotonic() - began_at > MAX_TASK_SECONDS:
            break
    return [*messages, again]


def _processed(engine: WorkerContext, pending: Pending, lease: int) -> list[Message]:
    """Process signals of a resource; they fail if its rows cannot be read."""
    try:
        return SignalProcessor(engine, pending, lease).run()
    except DAMAGED as error:
        name, stack = pending.visit.resource.name, pending.visit.stack.uuid
        log.exception("signals_failed", stack=stack, resource=name)
        db = engine.database.check_connection(durable=True)
        failed = SignalEffect(f"Signal failed: {damage(error)}", "FAILED")
        return [*queue.reject(db, pending, lease, pending.sent, [failed])]


class SignalProcessor:
    """The signals of a resource whose lease this worker holds, handled in order and written together."""

    def __init__(self, engine: WorkerContext, pending: Pending, lease: int) -> None:
        self.engine, self.pending, self.lease = engine, pending, lease
        self.resource = pending.visit.resource
        self.db = engine.database.check_connection(durable=True)
        self.surroundings = StoredStackContext(self.db, engine.cipher, lease, engine.settings.endpoint)
        self.state = load_state(pending.visit, engine.cipher)

    def run(self) -> list[Message]:
        resource_type, first = self.engine.types.get(self.resource.resource_type), self.pending.sent[0]
        if reason := self.engine.quarantine.reason("signals", self.resource.id):
            return self._reject([first], SignalEffect(f"Signal failed: {reason}", "FAILED"))
        if isinstance(resource_type, ScalingGroup):
            messages = scale_group.process_group(self.engine, self.pending, self.lease, resource_type)
            if messages is not None:
                return messages
        if first.about is None and (resource_type is None or not resource_type.takes_signals):
            # The resource had another type when the signal was accepted.
            return self._reject([first], SignalEffect("Signal failed: signal is not supported", "FAILED"))
        if resource_type is None:
            return self._reject([first])
        refused = self.resource.action in REFUSING and not resource_type.signals_always
        if first.about is not None:
            return self._process_notification(resource_type, first, refused=refused)
        if refused:
            return self._reject(
                [first], SignalEffect(f"Cannot signal resource during {self.resource.action}")
            )
        if self.resource.physical_id is None:  # the resource is being created again
            return self._postpone(first)
        batch = list(itertools.takewhile(lambda signal: signal.about is None, self.pending.sent))
        return self._process_signals(resource_type, batch[:1] if resource_type.calls_out else batch)

    def _process_signals(self, resource_type: ResourceType, batch: Sequence[PendingSignal]) -> list[Message]:
        """Let the type handle signals of users."""
        done: list[PendingSignal] = []
        events: list[SignalEffect] = []
        forwarded = ForwardedSignals.none(self.engine, self.pending.visit)
        changed = False
        for signal in batch:
            try:
                details = self.engine.cipher.open(signal.details)
                result = resource_type.signal(self._context(), self.resource.physical_id or "", details)
                rejection = None
                if result.resize is not None:
                    rejection = forwarded.add(result.resize, _reason(result, details))
            except UNREACHABLE:
                raise  # the signal stays pending
            except Misconfigured as error:
                if not isinstance(error, DamagedValue):
                    raise  # it is opened once the operator has put the key back
                events.append(SignalEffect(f"Signal failed: {damage(error)}", "FAILED"))
                done.append(signal)
            except Exception as error:
                if (
                    isinstance(error, UNREACHABLE_ERRORS)
                    and signal.tries < self.engine.settings.action_retry_limit
                ):
                    if not done:
                        return self._postpone(signal)
                    break  # the signals before it are written first
                reason = failure_reason(_kind_of(error), self.resource.name, str(error))
                stack = self.pending.visit.stack.uuid
                log.warning("signal_failed", stack=stack, resource=self.resource.name, error=reason)
                events.append(SignalEffect(f"Signal failed: {reason}", "FAILED"))
                done.append(signal)
            else:
                done.append(signal)
                if rejection is not None:
                    events.append(rejection)
                elif result.resize is None:
                    events.append(SignalEffect(_reason(result, details)))
                if result.resize is None or result.data is not None or result.metadata is not None:
                    _apply(self.state, result)
                    changed = True
        if forwarded.requests:
            written = self._written(resource_type) if changed else None
            return forwarded.store(self.pending, self.lease, done, events, written)
        return self._record(resource_type, done, events) if changed else self._reject(done, *events)

    def _process_notification(
        self, resource_type: ResourceType, first: PendingSignal, *, refused: bool
    ) -> list[Message]:
        """Process a notification of the engine; it has no event.

        Notifications that only ask the resource to read its state are processed together, for the state is
        already written.
        """
        resource = self.resource
        same = [signal for signal in self.pending.sent if signal.about == first.about]
        at_rest = resource.op is None and resource.status == "COMPLETE" and resource.physical_id is not None
        if first.about == watchers.CLEARED and not refused:
            _apply(self.state, Signalled(metadata={}))
            same = [first]
        elif not at_rest or refused:  # releasing the lease wakes its node, which reads the state
            return self._reject(same)
        return self._record(resource_type, same, [])

    def _record(
        self, resource_type: ResourceType, done: Sequence[PendingSignal], events: Sequence[SignalEffect]
    ) -> list[Message]:
        """Write the resource's state after signals."""
        cipher = self.engine.cipher
        values, sealed = self._written(resource_type)
        no_details, re_enqueue_seconds = cipher.seal(None), backoff.RE_ENQUEUE_SECONDS
        ended = queue.record(
            self.db, self.pending, self.lease, done, events, values, sealed, no_details, re_enqueue_seconds
        )
        return [*ended]

    def _written(self, resource_type: ResourceType) -> tuple[JsonObject, str | None]:
        """Return the resource's columns after signals: plain, and encrypted."""
        state = self.state
        if self.resource.op is None and self.resource.status == "COMPLETE":
            self._refresh(resource_type)
        values = to_columns(state)
        sealed = sealed_columns(state, values, self.engine.cipher)
        values["value_digest"] = state.value_digest
        return values, sealed

    def _refresh(self, resource_type: ResourceType) -> None:
        """Update the outputs of a settled resource after its signals."""
        try:
            observation = resource_type.observe(self._context(), self.state.physical_id or "")
        except (OrchestratorError, ValueError, *UNREACHABLE_ERRORS) as error:
            stack = self.pending.visit.stack.uuid
            log.info("observation_after_signal_failed", stack=stack, error=str(error))
            return
        if observation.exists and observation.ready and not observation.error:
            operation.record_observation(self.state, resource_type, observation)

    def _reject(self, done: Sequence[PendingSignal], *events: SignalEffect) -> list[Message]:
        return [*queue.reject(self.db, self.pending, self.lease, done, events)]

    def _postpone(self, signal: PendingSignal) -> list[Message]:
        seconds = retry_seconds(signal.tries, backoff.RETRY_MAX_SECONDS)
        return [*queue.postpone(self.db, self.pending, self.lease, signal, seconds)]

    def _context(self) -> Context:
        visit, engine = self.pending.visit, self.engine
        software = DeploymentStore.of(visit, engine.database, engine.cipher, engine.settings)
        action = self.state.op or "CHECK"
        ctx = operation.context(
            visit, self.state, action, software=software, stored_context=self.surroundings
        )
        ctx = replace(ctx, stack_context=LazyStackContext(engine.stacks, visit))
        cloud = cloud_of_visit(
            engine.database.borrow,
            engine.cipher,
            engine.settings,
            visit.stack.root_id,
            visit.credential_id,
        )
        return operation.with_provider_access(ctx, engine.settings, visit.stack.project_id, cloud)


def _apply(state: ResourceState, result: Signalled) -> None:
    """Apply the changes of a signal to data and metadata."""
    if result.data is not None:
        state.data = result.data
    if result.metadata is not None:
        if state.given_metadata is None:
            state.given_metadata = state.metadata or {}
        state.metadata = result.metadata


def _kind_of(error: Exception) -> str:
    if isinstance(error, ProviderError):
        return error.kind
    return error.heat_type if isinstance(error, OrchestratorError) else type(error).__name__


def _reason(result: Signalled, details: object) -> str:
    """Return the reason of the event: the type's own, otherwise from the details of the signal
    (docs/internals/rest-api.md §7.4).
    """
    if result.reason:
        return f"Signal: {result.reason}"
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


def enqueue_due(tools: Maintenance) -> Sequence[Message]:
    """Return messages for signals whose message was lost, or which wait for a due time."""
    messages = queue.due(tools.db, backoff.RE_ENQUEUE_SECONDS, MAX_ROWS)
    metrics.count_recovered("signal", len(messages))
    return messages


DUE: Final = MaintenanceJob("signals", enqueue_due, queue.HAS_DUE, exclusive=True)
