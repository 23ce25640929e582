"""Deliver events to webhooks: in order for each webhook, at least once, and independent of other webhooks.

Webhooks with due events are claimed with a lease, so that a single process delivers to a webhook at a time;
after a crash another process continues when the lease ends. The position of a webhook advances after the
receiver has accepted the events before it: if the response is lost, those events are sent again.

A failing receiver is retried with a growing delay. After `MAX_ATTEMPTS` failures in a row its webhook
is dead: it keeps its position until it is reactivated.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from orchestrator.backoff import backoff_seconds
from orchestrator.clients import webhook_sender
from orchestrator.clients.webhook_sender import NotDelivered, deliver
from orchestrator.config import Settings
from orchestrator.engine.messages import Message
from orchestrator.json_types import JsonObject
from orchestrator.logs import logger
from orchestrator.operations.events.event_body import event_body, event_stack_fields
from orchestrator.operations.runtime.maintenance_job import Maintenance, MaintenanceJob
from orchestrator.operations.runtime.quarantine import Quarantine
from orchestrator.security.encryption import Cipher
from orchestrator.store.connections.damaged_rows import DAMAGED, damage
from orchestrator.store.connections.database import Database
from orchestrator.store.events import stream, webhooks
from orchestrator.store.events.events import EventQuery, EventRow, list_events
from orchestrator.store.events.stream import EventScope, Position
from orchestrator.store.events.webhooks import Claimed
from orchestrator.store.stacks import stacks
from orchestrator.store.stacks.stacks import StackRow, descendants

log = logger()

BATCH_SIZE: Final = 100  # events of a delivery
MAX_SLOT_SECONDS: Final = 5.0  # after which a webhook with more events is queued again
SLOW_SECONDS: Final = 2.0  # slower receivers are delivered to by separate threads
MAX_PAUSE_SECONDS: Final = 3_600.0
MAX_ATTEMPTS: Final = 24  # failures in a row until a webhook is dead

EventWithStack = tuple[EventRow, StackRow]


@dataclass(frozen=True, slots=True)
class WebhookSender:
    """Delivers on behalf of a process."""

    database: Database
    cipher: Cipher
    settings: Settings
    quarantine: Quarantine

    @property
    def lease_seconds(self) -> float:
        """Return the duration of a lease: longer than a delivery, including name resolution."""
        return webhook_sender.TIMEOUT_SECONDS * 2 + 5

    def any_due(self) -> bool:
        """Return whether to claim."""
        with self.database.borrow() as db:
            return webhooks.any_due(db)

    def claim(
        self, limit: int, *, slow: bool, share: int | None = None, busy: Mapping[str, int] | None = None
    ) -> Sequence[tuple[Claimed, int]]:
        """Claim at most `limit` webhooks with due events, each with its lease.

        A project gets at most `share` deliveries, including its `busy` deliveries in progress.
        """
        if limit <= 0:
            return []
        lease = secrets.randbits(63)
        with self.database.borrow() as db:
            self.quarantine.refresh(db)
            claimed = webhooks.claim(db, lease, self.lease_seconds, limit, slow=slow, share=share, busy=busy)
        return [(webhook, lease) for webhook in claimed]

    def deliver_pending(self, claimed: Claimed, lease: int) -> None:
        """Deliver the pending events of a webhook, within its time slot. A webhook in quarantine is dead. If
        rows cannot be read, the delivery fails like at a receiver that refuses it.
        """
        if reason := self.quarantine.reason("webhook", claimed.id):
            self._failed(claimed, lease, reason, slow=False, most=1)
            return
        try:
            with self.quarantine.guarding("webhook", claimed.id):
                self._deliver_pending(claimed, lease)
        except DAMAGED as error:
            log.error("row_damaged", kind="webhook", id=str(claimed.uuid), error=damage(error))
            self._failed(claimed, lease, damage(error), slow=False, most=MAX_ATTEMPTS)

    def _deliver_pending(self, claimed: Claimed, lease: int) -> None:
        address = self.cipher.open(claimed.sealed)
        position, until = claimed.position, time.monotonic() + MAX_SLOT_SECONDS
        drained = slow = False
        while not drained and time.monotonic() < until and not slow:
            events, position, drained = self._next(claimed, position)
            began = time.monotonic()
            try:
                if events:
                    self._deliver(address, claimed, events)
            except NotDelivered as error:
                slow = time.monotonic() - began > SLOW_SECONDS
                self._failed(claimed, lease, str(error), slow=slow, most=MAX_ATTEMPTS)
                return
            slow = time.monotonic() - began > SLOW_SECONDS
            with self.database.borrow() as db:
                if not webhooks.advance_position(
                    db, claimed.id, lease, position, len(events), self.lease_seconds, slow=slow
                ):
                    return  # deleted, or claimed by another process
        with self.database.borrow() as db:
            webhooks.release(db, claimed.id, lease, has_more=not drained)

    def _deliver(self, address: JsonObject, claimed: Claimed, batch: Sequence[EventWithStack]) -> None:
        """Send a batch of events.

        Raises:
            NotDelivered: the receiver did not accept it.
        """
        id_ = f"{claimed.uuid}.{batch[-1][0].sequence}"
        events = [event_body(row, stack) | event_stack_fields(row, stack) for row, stack in batch]
        body = message("events", claimed.uuid, claimed.project_id, events)
        deliver(
            address["url"],
            address["secret"],
            id_,
            body,
            seconds=webhook_sender.TIMEOUT_SECONDS,
            private=self.settings.webhook_allow_private,
        )

    def _failed(self, claimed: Claimed, lease: int, error: str, *, slow: bool, most: int) -> None:
        pause = backoff_seconds(claimed.tries, MAX_PAUSE_SECONDS, jitter_fraction=0.5)
        with self.database.borrow() as db:
            state = webhooks.failed(db, claimed.id, lease, error, pause, most, slow=slow)
        if state == "dead":
            log.warning("webhook_dead", webhook=str(claimed.uuid), tries=most, error=error)

    def _next(self, claimed: Claimed, after: Position) -> tuple[list[EventWithStack], Position, bool]:
        """Return a webhook's next events, the position after them, and whether it is up to date then."""
        if claimed.stack_uuid is not None:
            return self._of_stack(claimed, after)
        within = EventScope(claimed.project_id, claimed.nested_depth, only_stacks=claimed.only_stacks)
        walked = stream.of_project(self.database, within, after, BATCH_SIZE)
        owners = stacks.by_ids(self.database, {row.stack_id for row in walked.rows})
        events = [(row, owners[row.stack_id]) for row in walked.rows if row.stack_id in owners]
        return events, walked.position, walked.drained

    def _of_stack(self, claimed: Claimed, after: Position) -> tuple[list[EventWithStack], Position, bool]:
        name, uuid = claimed.stack_name or "", str(claimed.stack_uuid)
        stack = stacks.get(self.database, claimed.project_id, name, uuid)
        if stack is None:
            return [], after, True
        below = list(descendants(self.database, stack, claimed.nested_depth, deleted=True))
        owners = {item.id: item for item in (stack, *below)}
        query = EventQuery(sort_dir="asc", after=after, limit=BATCH_SIZE)
        rows = list(list_events(self.database, stack, query, below))
        events = [(row, owners[row.stack_id]) for row in rows]
        if claimed.only_stacks:
            events = [(row, owner) for row, owner in events if is_stack_event(row, owner)]
        at = Position(rows[-1].xid, rows[-1].id) if rows else after
        return events, at, len(rows) < BATCH_SIZE


def is_stack_event(row: EventRow, stack: StackRow) -> bool:
    """Whether an event is about the stack itself."""
    return (row.resource_type, row.physical_id) == (stream.STACK, str(stack.uuid))


def message(message_type: str, uuid: object, project_id: str, events: Sequence[JsonObject]) -> bytes:
    """Return the body of a delivery."""
    return orjson.dumps(
        {"type": message_type, "webhook_id": str(uuid), "project_id": project_id, "events": list(events)}
    )


class WebhookWakeUp:
    """Remembers the last event up to which webhooks were marked as due, while a webhook is active."""

    def __init__(self) -> None:
        """Begin without a position: the first run marks all webhooks."""
        self._rung_until: int | None = None

    def run(self, tools: Maintenance) -> Sequence[Message]:
        """Mark the webhooks that events since the last run concern."""
        self._rung_until = webhooks.mark_due(tools.db, self._rung_until)
        return ()

    def forget(self) -> None:
        """Forget the position: no webhook is active."""
        self._rung_until = None


def wake_up_job() -> MaintenanceJob:
    """Return the job of a new sweep."""
    job = WebhookWakeUp()
    return MaintenanceJob("webhooks", job.run, webhooks.HAS_ACTIVE, rest=job.forget)
