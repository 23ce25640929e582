"""The periodic scan for due, lost, overdue or stalled work. It re-enqueues that work, so losing messages of
the broker is harmless (invariant 1).

A sweep runs beside every worker, in a single process at a time, and each part is a transaction of its own.
Its cost depends on the amount of due work, not on the total amount.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator import metrics
from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.config import Settings
from orchestrator.engine.messages import CheckMessage, Message, ObservationMessage
from orchestrator.logs import logger
from orchestrator.operations import queued_actions, stack_completion
from orchestrator.operations.keystone.delegated_credentials import cloud_of_stack
from orchestrator.operations.maintenance.orphan_access import OrphanAccess
from orchestrator.operations.maintenance.orphan_searches import search_orphans
from orchestrator.operations.maintenance.orphans import delete_orphans
from orchestrator.operations.maintenance.purge import IncrementalPurge, Policy
from orchestrator.operations.observation.healing import limits_of, repair_due_faults
from orchestrator.operations.observation.observation_pass import continue_pass
from orchestrator.operations.snapshots import cleanup
from orchestrator.operations.software.type_store import DeploymentStore
from orchestrator.resources.base import ResourceType
from orchestrator.resources.stack_context import StackLocation
from orchestrator.security.encryption import Cipher
from orchestrator.store import circuit_breakers, observations
from orchestrator.store.connections.damaged_rows import apart
from orchestrator.store.connections.database import UNREACHABLE, Database, try_lock, unlock
from orchestrator.store.events import webhooks
from orchestrator.store.maintenance import late_requests, stalled, sweep_queries, sweep_turn
from orchestrator.store.nodes import repository
from orchestrator.store.observation import groups
from orchestrator.store.signals import queue
from orchestrator.store.stacks import progress
from orchestrator.store.traversals import queued_actions as stored_queued_actions
from orchestrator.store.traversals import resumption, traversals

log = logger()

MAX_ROWS = 1_000  # maximum rows per kind of work and sweep
AUDIT_SECONDS = 30.0
REPAIR_SECONDS = 2.0  # between two searches for due repairs
LOCK = 0x5357454550  # for a single sweep at a time on all hosts
MAX_LOGGED = 20  # lost leases that a sweep logs one by one
LEASE_EXPIRED = "its worker or planner died, hung, or could not reach the database"
COUNTING = LOCK + 1  # for a single count at a time
ENQUEUED_WITHIN_SECONDS = 2.0  # of the commit that marked the nodes
COUNTING_SECONDS = 0.025  # time after which a sweep counts no further stack


WaitingSeconds = Callable[[Collection[str]], Mapping[str, float]]


def no_message_waits(_stacks: Collection[str]) -> Mapping[str, float]:
    """Return nothing, for workers without a fair queue."""
    return {}


@dataclass(slots=True)
class Sweep:
    """A worker's sweep, with its own connection."""

    database: Database
    settings: Settings
    types: Mapping[str, ResourceType]
    cipher: Cipher
    min_interval: float = 0.0  # seconds between the starts of two sweeps in any process
    waiting_seconds: WaitingSeconds = no_message_waits
    _db: Connection[TupleRow] | None = None
    _repaired_at: float = -REPAIR_SECONDS
    _audited_at: float = field(default_factory=time.monotonic)
    # failing traversals whose open operations are followed
    _followed: set[tuple[int, int]] = field(default_factory=set)
    _rung_until: int | None = None  # last event up to which webhooks were marked due
    _purging: IncrementalPurge = field(init=False)
    _shared_lists: Mapping[str, str] = field(init=False)  # by the name of the resource type

    def __post_init__(self) -> None:
        """Take the limits from the settings."""
        self._purging = IncrementalPurge(Policy.of(self.settings))
        self._shared_lists = {
            name: f"{type_.service}/{type_.lists}" for name, type_ in self.types.items() if type_.lists
        }

    def run(self) -> list[Message]:
        """Sweep once, unless another process sweeps or has just swept; return the messages to send."""
        if self._db is None or self._db.closed:
            self._db = self.database.connect(hot=True, replan=True, name="orchestrator-sweep")
            sweep_queries.bound_transactions(self._db)
        db, messages = self._db, list[Message]()
        turn = sweep_turn.take(db, self.min_interval, self.settings.stack_action_timeout)
        if turn is None:
            return []
        if turn.due:
            messages += self._enqueue_all_due(db)
        if turn.queued:
            messages += self._enqueue_queued(db)
        self._rung_until = webhooks.mark_due(db, self._rung_until) if turn.webhooks else None
        messages += self._end(db) if turn.ending else self._audited(db)
        if turn.passes:
            messages += self._continue_observations(db)
        if turn.faults:
            messages += self._repair(db)
        if turn.counts:
            self._count(db)
        return messages

    def purge(self) -> None:
        """Purge a few slices, for a tick without messages to send."""
        if self._db is not None and not self._db.closed:
            self._purging.tick(self._db)

    def close(self) -> None:
        """Close the connection; the next sweep opens a new connection."""
        if self._db is not None:
            self._db.close()

    def _enqueue_all_due(self, db: Connection[TupleRow]) -> list[Message]:
        """Return messages for all due work, unless another sweep does so now."""
        with db.transaction():
            if not sweep_turn.lock(db, LOCK):
                return []
            messages: list[Message] = [*self._enqueue_due(db)]
            sent = queue.due(db, self.settings.re_enqueue_seconds, MAX_ROWS)
            metrics.count_recovered("signal", len(sent))
            messages += sent
            if self.settings.observation_interval_seconds:
                messages += groups.due(db, MAX_ROWS)
            observed = observations.due(db, self.settings.re_enqueue_seconds, MAX_ROWS)
            metrics.count_recovered("observation", len(observed))
            messages += observed
            messages += late_requests.due(db, self.settings.re_enqueue_seconds, MAX_ROWS)
        return messages

    def _enqueue_due(self, db: Connection[TupleRow]) -> list[CheckMessage]:
        messages = sweep_queries.due(db, MAX_ROWS, self._shared_lists)
        metrics.count_recovered("due", len(messages))
        queued, lost = sweep_queries.expired_leases(db, MAX_ROWS)
        metrics.count_recovered("lease_lost", len(lost))
        if lost:
            log.warning("leases_lost", count=len(lost))
        for lease in lost[:MAX_LOGGED]:  # the log of the worker that held it says more, unless it was killed
            log.warning("lease_expired", **lease._asdict(), reason=LEASE_EXPIRED)
        return messages + queued

    def _enqueue_queued(self, db: Connection[TupleRow]) -> list[CheckMessage]:
        """Return messages for queued nodes whose messages were lost or not sent. Each statement is a
        transaction of its own: none is open while the broker is asked.
        """
        window, seconds = self.settings.dispatch_window, self.settings.re_enqueue_seconds
        roots = sweep_queries.roots(db)
        messages = self._re_enqueue(db, [root for root in roots if root.message_seconds > seconds])
        for root in roots:
            if root.has_unsent:
                with apart("stack", stack=root.uuid):
                    topped = repository.refill_window(db, root.id, root.uuid, window).messages
                    metrics.count_recovered("not_enqueued", len(topped))
                    messages += topped
        return messages

    def _re_enqueue(
        self, db: Connection[TupleRow], roots: Sequence[sweep_queries.QueuedRoot]
    ) -> list[CheckMessage]:
        """Return messages for queued nodes whose messages were lost: neither received nor waiting."""
        if not roots:
            return []
        messages: list[CheckMessage] = []
        ages = self.waiting_seconds([root.uuid for root in roots])
        for root in roots:
            waiting = ages[root.uuid] + ENQUEUED_WITHIN_SECONDS if root.uuid in ages else 0.0
            if root.message_seconds < waiting:
                continue
            with apart("stack", stack=root.uuid):
                again = sweep_queries.re_enqueue(
                    db, root, self.settings.re_enqueue_seconds, self.settings.dispatch_window, waiting
                )
                if again:
                    log.info("re_enqueued", stack=root.uuid, count=len(again))
                metrics.count_recovered("unprocessed", len(again))
                messages += again
        return messages

    def _end(self, db: Connection[TupleRow]) -> list[CheckMessage]:
        messages: list[CheckMessage] = []
        for stack_id, traversal in sweep_queries.timed_out(db, self.settings.stack_action_timeout):
            metrics.count_recovered("timed_out", 1)
            with apart("stack", stack_id=stack_id):
                timed_out = stack_completion.TIMED_OUT
                messages += stack_completion.fail(self.database, stack_id, traversal, timed_out)
        for stack_id, traversal in resumption.due(db, MAX_ROWS):
            metrics.count_recovered("resumed", 1)
            with apart("stack", stack_id=stack_id):
                messages += resumption.resume(db, stack_id, traversal)
        for stack_id, traversal in sweep_queries.keep_going_finished(db):
            with apart("stack", stack_id=stack_id):
                traversals.halt(db, stack_id, traversal)
        halted = sweep_queries.failing(db)
        for stack_id, traversal in halted:
            if (stack_id, traversal) not in self._followed:
                with apart("stack", stack_id=stack_id):
                    traversals.enqueue_open_operations(db, stack_id, traversal)
        self._followed = set(halted)
        for stack_id, traversal in sweep_queries.drained(db):
            with apart("stack", stack_id=stack_id):
                messages += stack_completion.drain(self.database, stack_id, traversal)
        for stack_id in stored_queued_actions.stacks_at_rest(db):
            metrics.count_recovered("queued_action", 1)
            with apart("stack", stack_id=stack_id):
                messages += queued_actions.start_or_drop(db, stack_id)
        cleanup.delete_pending_snapshots(db, self.types, self.cipher, self.settings)
        return messages + self._audited(db)

    def _continue_observations(self, db: Connection[TupleRow]) -> list[ObservationMessage]:
        messages: list[ObservationMessage] = []
        for stack_id in observations.due_passes(db):
            with apart("stack", stack_id=stack_id), db.transaction():
                messages += continue_pass(db, self.types, stack_id, self.settings.re_enqueue_seconds)
        return messages

    def _repair(self, db: Connection[TupleRow]) -> list[CheckMessage]:
        """Start due repairs. A fault of this code must not stop the sweep."""
        now = time.monotonic()
        if not self.settings.observation_interval_seconds or now - self._repaired_at < REPAIR_SECONDS:
            return []
        self._repaired_at = now
        try:
            return repair_due_faults(db, self.types, limits=limits_of(self.settings))
        except UNREACHABLE:
            raise
        except Exception:
            log.exception("repair_error")
            return []

    def _audited(self, db: Connection[TupleRow]) -> list[CheckMessage]:
        """Audit every AUDIT_SECONDS; return the messages to send."""
        if time.monotonic() - self._audited_at <= AUDIT_SECONDS:
            return []
        self._audited_at = time.monotonic()
        return self._audit(db)

    def _audit(self, db: Connection[TupleRow]) -> list[CheckMessage]:
        for root in sweep_queries.roots(db):
            with apart("stack", stack=root.uuid):
                while sweep_queries.drop_superseded(db, root.id, MAX_ROWS) == MAX_ROWS:
                    pass
        circuit_breakers.purge(db)
        interval = self.settings.observation_interval_seconds
        if interval:
            groups.start_discoveries(db, self.settings.region_name, interval)
        messages = self._recover_stalled(db)
        access = OrphanAccess(
            self.types,
            self.settings,
            software=lambda project_id: self._software(db, project_id),
            cloud=lambda root_id: self._cloud(db, root_id),
        )
        search_orphans(db, access)
        delete_orphans(db, access)
        return messages

    def _cloud(self, db: Connection[TupleRow], root_id: int) -> Cloud | None:
        return cloud_of_stack(lambda: nullcontext(db), self.cipher, self.settings, root_id)

    def _software(self, db: Connection[TupleRow], project_id: str) -> DeploymentStore:
        return DeploymentStore(
            lambda: nullcontext(db), self.database, self.cipher, self.settings, StackLocation(project_id)
        )

    def _recover_stalled(self, db: Connection[TupleRow]) -> list[CheckMessage]:
        """Recover stalled stacks; there should never be any (docs/internals/protocol.md rule 16)."""
        messages: list[CheckMessage] = []
        for stack_id, traversal, stack in stalled.stalled_stacks(db):
            metrics.count_recovered("stalled", 1)
            log.error("stack_stalled", stack=stack, traversal=traversal)
            with apart("stack", stack=stack):
                messages += stalled.restart_traversal(db, stack_id, traversal)
        for stack_id, traversal, stack in stalled.unplanned_stacks(db):
            metrics.count_recovered("stranded", 1)
            log.error("stack_stranded", stack=stack, traversal=traversal)
            with apart("stack", stack=stack):
                messages += stack_completion.fail_immediately(self.database, stack_id, traversal)
        return messages

    def _count(self, db: Connection[TupleRow]) -> None:
        """Count the progress of active stacks; the more expensive the count, the more rarely."""
        if not try_lock(db, COUNTING):
            return
        try:
            started = time.monotonic()
            for stack_id, traversal, ended in progress.due(db):
                with apart("stack", stack_id=stack_id):
                    progress.count(db, stack_id, traversal, final=ended)
                if time.monotonic() - started > COUNTING_SECONDS:
                    break
        finally:
            unlock(db, COUNTING)
