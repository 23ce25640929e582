"""The signals of scaling policies: each becomes a request to the policy's group (`scale_group.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from orchestrator import backoff
from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.engine.messages import Message, SignalMessage
from orchestrator.errors import ProviderError
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.operations.reconcile.worker_context import WorkerContext
from orchestrator.resources.base import Resize, Value
from orchestrator.resources.groups.adjustments import Adjustment, Rejection
from orchestrator.resources.groups.scaling_group import ScalingGroup
from orchestrator.store.signals import group_resize
from orchestrator.store.signals.group_resize import Answer, GroupTarget
from orchestrator.store.signals.queue import Pending, PendingSignal, SignalEffect

MAX_PENDING: Final = 1_000  # requests to a group that wait
ADJUSTMENT_FIELDS: Final = frozenset(field.name for field in fields(Adjustment))


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """A stored request of a policy to a group."""

    signal: PendingSignal
    policy_id: int
    reason: str  # of the policy's event if the request is applied
    adjustment: Adjustment

    @classmethod
    def of(cls, signal: PendingSignal, details: JsonMapping) -> GroupRequest:
        """Read a request from the details of its signal."""
        return cls(signal, details["policy"], details["reason"], adjustment_of(details["request"]))

    def answer(self, group: str, rejection: Rejection | None, *, prefixed: bool = True) -> Answer:
        """Return the event of the policy."""
        if rejection is None:
            return Answer(self.policy_id, self.reason)
        if rejection.failed:
            reason = f"resources.{group}: {rejection.reason}" if prefixed else rejection.reason
            return Answer(self.policy_id, f"Signal failed: {reason}", "FAILED")
        return Answer(self.policy_id, rejected(group, rejection.reason))


@dataclass(slots=True)
class ForwardedSignals:
    """The signals of a policy that become requests to groups."""

    engine: WorkerContext
    policy: ResourceVisit
    requests: list[tuple[int, str, JsonObject]]  # the group's id and name, the details
    pending: dict[int, int]  # number of requests to a group that wait
    groups: dict[str, GroupTarget | None]  # by the id that the policy names

    @classmethod
    def none(cls, engine: WorkerContext, policy: ResourceVisit) -> ForwardedSignals:
        """Start without requests."""
        return cls(engine, policy, [], {}, {})

    def add(self, resize: Resize, reason: str) -> SignalEffect | None:
        """Add a request; return the event of a rejection.

        Raises:
            ProviderError: the group does not exist, or is not a group.
        """
        db, policy = self.engine.database.check_connection(durable=True), self.policy
        if resize.group not in self.groups:
            self.groups[resize.group] = group_resize.find(db, policy.stack.id, resize.group)
        group = self.groups[resize.group]
        if group is None:
            message = f'Alarm {policy.resource.name} could not find scaling group named "{resize.group}"'
            raise ProviderError(message, kind="NotFound")
        if not isinstance(self.engine.types.get(group.kind), ScalingGroup):
            raise ProviderError(f"{group.name} ({group.kind}) is not a scaling group", kind="NotSupported")
        pending = self.pending.setdefault(group.id, group.pending)
        if group.action == "DELETE":
            return SignalEffect(rejected(group.name, "the group is being deleted"))
        if pending >= MAX_PENDING:
            return SignalEffect(rejected(group.name, f"{pending} signals are waiting"))
        self.pending[group.id] += 1
        details = {"policy": policy.resource.id, "reason": reason, "request": dict(resize.request)}
        self.requests.append((group.id, group.name, details))
        return None

    def store(
        self,
        pending: Pending,
        lease: int,
        done: Sequence[PendingSignal],
        events: Sequence[SignalEffect],
        written: tuple[Mapping[str, object], str | None] | None,
    ) -> list[Message]:
        """Replace the signals `done` by the requests, durably; return the messages to send."""
        engine = self.engine
        db, seal = engine.database.check_connection(durable=True), engine.cipher.seal
        messages = group_resize.forward(
            db,
            pending,
            lease,
            [signal.id for signal in done],
            events,
            [(group, seal(details)) for group, _, details in self.requests],
            written,
            backoff.RE_ENQUEUE_SECONDS,
        )
        if messages is None:
            return []
        groups = {group: name for group, name, _ in self.requests}
        root = self.policy.stack.uuid
        return [*messages, *(SignalMessage(group, name, root) for group, name in groups.items())]


def adjustment_of(request: Mapping[str, Value]) -> Adjustment:
    """Return the adjustment that a policy requests."""
    values: dict[str, Any] = {key: value for key, value in request.items() if key in ADJUSTMENT_FIELDS}
    for key, former in (("type_label", "told_as"), ("adjustment_type", "kind")):  # keys of 0.1
        if key not in values and former in request:
            values[key] = request[former]
    return Adjustment(**{**values, "remove": tuple(values.get("remove") or ())})


def rejected(group: str, reason: str) -> str:
    """Return the reason of the event of a rejected signal."""
    return f"Signal rejected by group {group}: {reason}"
