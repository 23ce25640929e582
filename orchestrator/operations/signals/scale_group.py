"""Resize a group by the requests of scaling policies, without an update of the group's stack.

The requests are signals of the group (`group_requests.py`). All pending requests are combined into a single
update of the child stack, which supersedes an earlier resize that is still in progress. While another
operation on the group or on its child is in progress, the requests wait for its end. They take over an
operation that is still open after its stack has failed: the node of the group then waits for the new size.

One transaction starts the child's traversal to the new size, writes the group's data, ends the requests, and
inserts a signal that waits for the child's end. That signal then refreshes the group's attributes and starts
the cooldown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Literal

from psycopg import errors

from orchestrator import backoff
from orchestrator.engine.check.child_status import ChildRequest, ChildState, split_request, with_request
from orchestrator.engine.check.outcome import failure_reason, retry_seconds
from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.engine.messages import Message
from orchestrator.errors import OrchestratorError, ProviderBusy, ProviderError
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.logs import logger
from orchestrator.operations.planning.attribute_uses import attribute_keys
from orchestrator.operations.reconcile.worker_context import WorkerContext
from orchestrator.operations.resource_context import operation
from orchestrator.operations.resource_context.state import (
    load_state,
    sealed_columns,
    to_columns,
)
from orchestrator.operations.signals.group_requests import GroupRequest
from orchestrator.operations.software.type_store import DeploymentStore
from orchestrator.resources.base import Context, Observation
from orchestrator.resources.groups import capacity
from orchestrator.resources.groups.adjustments import Adjustment, Rejection
from orchestrator.resources.groups.scaling_group import Scaled, ScalingGroup
from orchestrator.store.access.quotas import enforce
from orchestrator.store.connections.database import UNREACHABLE
from orchestrator.store.observation.marks import mark_lost_members
from orchestrator.store.signals import group_resize, queue
from orchestrator.store.signals.group_resize import Answer
from orchestrator.store.signals.queue import Pending, PendingSignal
from orchestrator.store.signals.watchers import ADJUSTMENT, CHILD_FINISHED
from orchestrator.store.traversals import child_reads, children
from orchestrator.store.traversals.children import DesiredChild
from orchestrator.template.function_view import ParentResourceProxy

log = logger()

RESIZING: Final = frozenset({"CREATE", "UPDATE", "ADOPT", "RESTORE"})  # a resize may supersede these
TRIES: Final = 3  # attempts after deadlocks


class LeaseLost(Exception):
    """Another worker has the group."""


@dataclass(frozen=True, slots=True)
class GroupSignals:
    """The pending signals of a claimed group."""

    requests: Sequence[GroupRequest]
    follow_ups: Sequence[tuple[PendingSignal, JsonMapping | None]]  # with the resize; None: only refresh

    @classmethod
    def of(cls, engine: WorkerContext, pending: Pending) -> GroupSignals:
        """Decrypt the signals."""
        requests, follow_ups = list[GroupRequest](), list[tuple[PendingSignal, JsonMapping | None]]()
        for signal in pending.sent:
            details = engine.cipher.open(signal.details)
            if signal.about == ADJUSTMENT:
                requests.append(GroupRequest.of(signal, details))
            elif isinstance(details, Mapping) and CHILD_FINISHED in details:
                follow_ups.append((signal, details[CHILD_FINISHED]))
        return cls(requests, follow_ups)


def process_group(
    engine: WorkerContext, pending: Pending, lease: int, group_type: ScalingGroup
) -> list[Message] | None:
    """Process the signals of a claimed group; None if no signal is of scaling."""
    signals = GroupSignals.of(engine, pending)
    if not signals.requests and not signals.follow_ups:
        return None
    db, visit = engine.database.check_connection(durable=True), pending.visit
    resize = GroupResize(engine, visit, lease, group_type, child_reads.state(db, visit.resource.id))
    is_taken_over = visit.resource.op in ("CREATE", "UPDATE") and visit.stack.status != "IN_PROGRESS"
    is_free = visit.resource.op is None or is_taken_over
    if signals.follow_ups and not (is_free and signals.requests and resize.is_child_in_progress):
        return resize.finish(signals.follow_ups)
    if not is_free:  # the operation began after the claim was checked
        return [*queue.release(db, visit.resource.id, lease)]
    return resize.apply(signals)


class GroupResize:
    """A claimed group that is resized."""

    def __init__(
        self,
        engine: WorkerContext,
        visit: ResourceVisit,
        lease: int,
        group_type: ScalingGroup,
        child: ChildState | None,
    ) -> None:
        """`child` is the group's child stack, if it exists."""
        self._engine, self._visit, self._lease, self._type = engine, visit, lease, group_type
        self._child = None if child is None or child.gone else child
        self._db = engine.database.check_connection(durable=True)
        self._state = load_state(visit, engine.cipher)
        self._request, self._data = split_request(self._state.data)

    @property
    def is_child_in_progress(self) -> bool:
        """Whether an action of the child is in progress."""
        return self._child is not None and self._child.in_progress

    # Requests of policies.

    def apply(self, signals: GroupSignals) -> list[Message]:
        """Apply the requests, reject them, or let them wait."""
        requests = signals.requests
        obstacle = self._obstacle()
        if obstacle == "wait":
            return self._wait([request.signal for request in requests])
        if obstacle is not None:
            return self._answer(requests, [Rejection(obstacle)] * len(requests))
        earlier = [resize for _, resize in signals.follow_ups if resize is not None]
        try:
            scaled = self._scaled([request.adjustment for request in requests], earlier)
            if scaled.step is None:
                return self._answer(requests, scaled.rejections)
            return self._start(signals, scaled, self._desired(scaled))
        except UNREACHABLE:
            raise
        except ProviderBusy:
            first = requests[0].signal
            seconds = retry_seconds(first.tries, backoff.RETRY_MAX_SECONDS)
            return [*group_resize.postpone(self._db, self._visit, self._lease, _ids(requests), seconds)]
        except Exception as error:
            name = self._visit.resource.name
            kind = error.kind if isinstance(error, ProviderError) else _type_name(error)
            reason = failure_reason(kind, name, str(error))
            log.warning("signal_failed", stack=self._visit.stack.uuid, resource=name, error=reason)
            return self._answer(requests, [Rejection(reason, failed=True)] * len(requests), prefixed=False)

    def _obstacle(self) -> str | Literal["wait"] | None:
        """Return the obstacle to the requests: "wait" for its end, or the reason of a rejection."""
        action, child = self._visit.resource.action, self._child
        if self._visit.resource.deposed:
            return "the group was replaced"
        if action in ("DELETE", "SUSPEND"):
            return "the group is being deleted" if action == "DELETE" else "the group is suspended"
        if child is None:
            return "its stack no longer exists"
        if child.action == "DELETE":
            return "its stack is being deleted"
        if child.in_progress:
            is_own = self._request is not None and self._request.traversal == child.traversal
            return None if is_own and child.action in RESIZING else "wait"
        return "its stack is suspended" if child.action == "SUSPEND" else None

    def _scaled(self, adjustments: Sequence[Adjustment], earlier: Sequence[JsonMapping]) -> Scaled:
        state = self._state
        if self._child is not None and not self.is_child_in_progress:
            mark_lost_members(self._db, self._child.id)  # they count as failed, and are replaced
        view = self._engine.stacks.child_view(self._db, self._visit, self._child)
        until = max((_cooldown_from_start(resize) for resize in earlier), default="")
        return self._type.scaled(
            self._context(self._data),
            state.properties,
            view,
            adjustments,
            capacity.utc_now(),
            until if self.is_child_in_progress else "",
        )

    def _desired(self, scaled: Scaled) -> DesiredChild:
        assert scaled.step is not None
        assert self._child is not None
        state = self._state
        return self._engine.stacks.desired_child(
            self._visit,
            scaled.step.child,
            child_uuid=self._child.uuid,
            name=self._child.name,
            hides=state,
            parent=ParentResourceProxy(state.metadata, secret=state.is_secret(state.metadata, output=True)),
        )

    def _start(self, signals: GroupSignals, scaled: Scaled, desired: DesiredChild) -> list[Message]:
        """Start the update of the child; a follow-up of an earlier resize is replaced."""
        assert scaled.step is not None
        assert self._child is not None
        db, state, requests = self._db, self._state, signals.requests
        self._set_metadata(capacity.begun(state.metadata or {}))
        ended = [*_ids(requests), *(signal.id for signal, _ in signals.follow_ups)]
        applied = [
            request.adjustment
            for request, rejection in zip(requests, scaled.rejections, strict=True)
            if rejection is None
        ]
        for tries_left in range(TRIES - 1, -1, -1):
            try:
                with db.transaction():
                    credential_id = self._visit.credential_id
                    started = children.update(
                        db, self._child.id, desired, converge=False, credential_id=credential_id
                    )
                    if started is None:  # deleted just now
                        raise LeaseLost
                    state.data = with_request(scaled.step.data, ChildRequest(started.traversal, 0))
                    values, sealed = self._stored()
                    event = _record_event(applied, started.traversal, self._type.cooldown(state.properties))
                    details = self._engine.cipher.seal({CHILD_FINISHED: event})
                    answers = self._answers(requests, scaled.rejections)
                    messages = group_resize.record_started(
                        db, self._visit, self._lease, values, sealed, details, ended, answers
                    )
                    if messages is None:
                        raise LeaseLost
                    enforce(db, *desired.limits)
                log.info("group_resized", stack=self._visit.stack.uuid, resource=self._visit.resource.name)
                return [*messages, started.message]
            except (errors.DeadlockDetected, errors.SerializationFailure):
                if not tries_left:
                    raise
            except LeaseLost:
                return [*queue.release(db, self._visit.resource.id, self._lease)]
        raise AssertionError("unreachable")

    def _answer(
        self,
        requests: Sequence[GroupRequest],
        rejections: Sequence[Rejection | None],
        *,
        prefixed: bool = True,
    ) -> list[Message]:
        """End requests that do not change the group."""
        answers = self._answers(requests, rejections, prefixed=prefixed)
        ids = _ids(requests)
        return [*group_resize.record_unchanged(self._db, self._visit, self._lease, ids, answers)]

    def _answers(
        self,
        requests: Sequence[GroupRequest],
        rejections: Sequence[Rejection | None],
        *,
        prefixed: bool = True,
    ) -> list[Answer]:
        name = self._visit.resource.name
        return [
            request.answer(name, rejection, prefixed=prefixed)
            for request, rejection in zip(requests, rejections, strict=True)
        ]

    # The end of the child.

    def finish(self, follow_ups: Sequence[tuple[PendingSignal, JsonMapping | None]]) -> list[Message]:
        """Finish the resize of a group whose child has ended; wait again if it has not."""
        db, visit, state = self._db, self._visit, self._state
        signals = [signal for signal, _ in follow_ups]
        if self.is_child_in_progress:
            return self._wait(signals)
        child, failure, finished = self._child, None, state.metadata or {}
        for _, resize in follow_ups:
            if resize is None:
                continue
            is_current = child is not None and child.traversal == resize["traversal"]
            done = is_current and child is not None and child.status == "COMPLETE"
            reason = resize["reason"] if done else None
            finished = capacity.finished(finished, resize["cooldown"], reason, capacity.utc_now())
            if is_current and not done and child is not None:
                reason_of_child = failure_reason("ResourceFailure", visit.resource.name, child.reason)
                failure = f"Signal failed: {reason_of_child}"
        self._set_metadata(finished)
        if child is not None:
            self._refresh(child)
        values, sealed = self._stored()
        ids = [signal.id for signal in signals]
        return [*group_resize.record_finished(db, visit, self._lease, ids, values, sealed, failure)]

    def _wait(self, signals: Sequence[PendingSignal]) -> list[Message]:
        """Let signals wait for the end of the child."""
        with self._db.transaction():
            if self._child is not None:
                locked = children.lock_child(self._db, self._child.id)
                if locked is None or locked[1] != "IN_PROGRESS":
                    return [*queue.release(self._db, self._visit.resource.id, self._lease)]
            ids = [signal.id for signal in signals]
            return [*group_resize.wait_for_child(self._db, self._visit, self._lease, ids)]

    def _refresh(self, child: ChildState) -> None:
        """Update the group's attributes and reference id."""
        view = self._engine.stacks.child_view(self._db, self._visit, child)
        body = self._visit.definition.body if self._visit.definition else {}
        state = self._state
        context = replace(self._context(self._data), attribute_paths=attribute_keys(body))
        attributes = self._type.child_attributes(context, view, body.get("asked") or ())
        if view.secrets is None or view.secrets:
            state.hide(view.secrets)
        reference = self._type.child_reference_id(context, view)
        observation = Observation(True, attributes=attributes, reference_id=reference)
        operation.record_observation(state, self._type, observation)

    def _set_metadata(self, metadata: JsonMapping) -> None:
        state = self._state
        if state.given_metadata is None:
            state.given_metadata = state.metadata or {}
        state.metadata = metadata

    def _context(self, data: JsonMapping) -> Context:
        engine, visit = self._engine, self._visit
        software = DeploymentStore.of(visit, engine.database, engine.cipher, engine.settings)
        return replace(operation.context(visit, self._state, "CHECK", software=software), data=data)

    def _stored(self) -> tuple[JsonObject, str | None]:
        state = self._state
        values = to_columns(state)
        sealed = sealed_columns(state, values, self._engine.cipher)
        values["value_digest"] = state.value_digest
        return values, sealed


def _ids(requests: Sequence[GroupRequest]) -> list[int]:
    return [request.signal.id for request in requests]


def _type_name(error: Exception) -> str:
    return error.heat_type if isinstance(error, OrchestratorError) else type(error).__name__


def _cooldown_from_start(resize: JsonMapping) -> str:
    """Return the end of the cooldown of a resize in progress, which counts from its start."""
    started, seconds = resize.get("started"), resize.get("cooldown")
    if not started or not seconds:
        return ""
    return capacity.stamp(datetime.fromisoformat(started) + timedelta(seconds=seconds))


def _record_event(applied: Sequence[Adjustment], traversal: int, cooldown: float | None) -> JsonObject:
    """Return the details of the signal that waits for the end of a resize."""
    last, seconds = applied[-1], [a.cooldown for a in applied if a.cooldown is not None]
    reason = f"{last.type_label} : {last.amount}"
    if last.remove:
        reason = f"{last.type_label} : removed {', '.join(last.remove)}"
    if len(seconds) < len(applied) and cooldown is not None:
        seconds.append(cooldown)
    return {
        "traversal": traversal,
        "cooldown": max(seconds, default=None),
        "reason": reason,
        "started": capacity.utc_now().isoformat(),
    }
