"""Delete expired data in slices (docs/internals/protocol.md rule 19), a few at every tick or all by a
command.

A pass visits all stacks. It deletes stacks whose deletion is older than the policy keeps them. Of all other
stacks it deletes expired events, revisions with the definitions used by no other revision, nodes of finished
traversals, and causes of old failures. At the end it deletes texts without references. Every slice is a
separate transaction and may run concurrently with any other work; an interrupted pass leaves no
inconsistent state. `store/maintenance/purge.py` has the conditions for each deletion.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.config import DAY, Settings
from orchestrator.engine.messages import Message
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.logs import logger
from orchestrator.operations.runtime.maintenance_job import AUDIT_SECONDS, Maintenance, MaintenanceJob
from orchestrator.store import circuit_breakers
from orchestrator.store.connections.database import try_lock
from orchestrator.store.maintenance import purge as purging

log = logger()

SLICE = 2_000  # rows per slice
STACKS_PER_GROUP = 200  # stacks per group
CONTENTS = 500
PASS_SECONDS = 600.0  # from the end of a pass to the start of the next
BUDGET_SECONDS = 0.1  # time budget of a tick, which also enqueues overdue nodes
LOCK = 0x5055524745  # held by the purging process, on any host, until its connection ends

# An API process may believe for a while that an expired session is valid: its clock may be slow.
ENDED_SESSION_SECONDS = 3_600.0

YOUNG_REVISION_SECONDS = float(DAY)  # younger revisions are kept regardless of their number
NODE_SECONDS = 3_600.0  # finished visits of a stack without an action in progress

DeletedRows = tuple[str, int]  # the kind of rows, and their number


@dataclass(frozen=True, slots=True)
class Policy:
    """How long each kind of data is kept: seconds, and a number of revisions per stack."""

    deleted_seconds: float
    events_seconds: float
    revisions: int
    revisions_seconds: float
    nodes_seconds: float
    audit_seconds: float = 365 * DAY

    @classmethod
    def of(cls, settings: Settings) -> Policy:
        """Return the policy of the settings."""
        kept = settings.retention
        return cls(
            kept["deleted_stacks"],
            kept["events"],
            int(kept["revisions"]),
            YOUNG_REVISION_SECONDS,
            NODE_SECONDS,
            kept["audit_records"],
        )

    def values(self) -> JsonObject:
        """Return the parameters of the statements."""
        return {
            "deleted": self.deleted_seconds,
            "events": self.events_seconds,
            "kept": self.revisions,
            "revisions": self.revisions_seconds,
            "nodes": self.nodes_seconds,
            "audit": self.audit_seconds,
            "ended": ENDED_SESSION_SECONDS,
            "first": SLICE,
            "limit": SLICE,
            "going": [],
        }


def purge_steps(db: Connection[TupleRow], policy: Policy) -> Iterator[DeletedRows]:
    """Run a whole pass, yielding after each slice; the caller may stop at any slice."""
    values = policy.values()
    yield from _deleted(db, values)
    after = 0
    while batch := purging.ids(db, purging.STACKS, {"after": after, "limit": STACKS_PER_GROUP}):
        after = batch[-1]
        for part in purging.PARTS:
            for stacks in _groups(db, part, {**values, "stacks": batch}):
                while gone := purging.remove(db, part, {**values, "stacks": stacks}):
                    yield part.name, gone
        yield "", 0
    for target in purging.ALONE:
        while gone := purging.remove(db, target, values):
            yield target.name, gone
    last = b""
    while hashes := purging.ids(db, purging.CONTENTS, {"after": last, "limit": CONTENTS}):
        last = hashes[-1]
        purging.release_contents(db, hashes)
        unnamed = purging.unreferenced(db, hashes)
        yield "texts", purging.remove_contents(db, unnamed) if unnamed else 0


def _groups(db: Connection[TupleRow], part: purging.PurgeTarget, values: JsonMapping) -> Iterator[list[int]]:
    """Yield groups of stacks; a stack is its own group where it may have many rows to delete."""
    if part.probe is None:
        yield values["stacks"]
    else:
        yield from ([stack_id] for stack_id in purging.ids(db, part.probe, values))


def _deleted(db: Connection[TupleRow], values: JsonMapping) -> Iterator[DeletedRows]:
    """Delete stacks whose deletion has expired, with all their rows, the stack's own row last."""
    while stacks := purging.ids(db, purging.DELETED, {**values, "limit": 10}):
        for stack_id in stacks:
            for table in purging.TABLES_OF_DELETED:
                while gone := purging.remove_of_deleted(db, table, stack_id, SLICE):
                    yield f"{table} of deleted stacks", gone
            yield "deleted stacks", purging.remove_deleted(db, stack_id)


def purge(db: Connection[TupleRow], policy: Policy) -> dict[str, int]:
    """Run a whole pass; return the number of deleted rows of each kind."""
    return _summed(purge_steps(db, policy))


def count_purgeable(db: Connection[TupleRow], policy: Policy) -> dict[str, int]:
    """Return the number of rows of each kind that `purge` would delete, without changing anything."""
    return _summed(_counted(db, policy))


def _counted(db: Connection[TupleRow], policy: Policy) -> Iterator[DeletedRows]:
    values = {**policy.values(), "first": None}
    deleted = purging.ids(db, purging.DELETED, {**values, "limit": None})
    for table in purging.TABLES_OF_DELETED:
        yield f"{table} of deleted stacks", purging.count_of_deleted(db, table, deleted)
    yield "deleted stacks", len(deleted)
    gone = set(deleted)
    going = purging.ids(db, purging.REVISIONS_OF_STACKS, {"stacks": deleted})
    after = 0
    while batch := purging.ids(db, purging.STACKS, {"after": after, "limit": STACKS_PER_GROUP}):
        after = batch[-1]
        here = {**values, "stacks": [id_ for id_ in batch if id_ not in gone]}
        revisions = purging.ids(db, purging.REVISIONS.which, here)
        going += revisions
        for part in purging.PARTS:
            yield part.name, purging.count(db, part, {**here, "going": revisions})
    for target in purging.ALONE:
        yield target.name, purging.count(db, target, values)
    last = b""
    while hashes := purging.ids(db, purging.CONTENTS, {"after": last, "limit": CONTENTS}):
        last = hashes[-1]
        yield "texts", len(purging.unreferenced(db, hashes, going))


def _summed(gone: Iterator[DeletedRows]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for name, rows in gone:
        total[name] += rows
    return {name: rows for name, rows in total.items() if rows}


@dataclass(slots=True)
class IncrementalPurge:
    """The purge of a process that ticks: a pass every PASS_SECONDS, a few slices of it at each tick.

    The first process with the lock purges until its connection ends; other processes try the lock now and
    then.
    """

    policy: Policy
    pass_seconds: float = PASS_SECONDS
    _begin_at: float = field(default_factory=lambda: time.monotonic() + PASS_SECONDS / 10)
    _pass: Iterator[DeletedRows] | None = None
    _lock_connection: Connection[TupleRow] | None = None  # the connection that holds the lock
    _total: Counter[str] = field(default_factory=Counter)

    def tick(self, db: Connection[TupleRow], budget_seconds: float = BUDGET_SECONDS) -> None:
        """Continue a pass, or start the next when it is due and no other process purges."""
        if self._pass is None:
            if time.monotonic() < self._begin_at:
                return
            if not self._take(db):
                self._rest()
                return
            self._pass, self._total = purge_steps(db, self.policy), Counter()
        try:
            self._go_on(self._pass, time.monotonic() + budget_seconds)
        except BaseException:
            self._rest()
            raise

    def _go_on(self, a_pass: Iterator[DeletedRows], until: float) -> None:
        for name, rows in a_pass:
            self._total[name] += rows
            if time.monotonic() > until:
                return
        gone = {name: rows for name, rows in self._total.items() if rows}
        if gone:
            log.info("purged", **{name.replace(" ", "_"): rows for name, rows in gone.items()})
        self._rest()

    def _take(self, db: Connection[TupleRow]) -> bool:
        if self._lock_connection is not db:
            self._lock_connection = db if try_lock(db, LOCK) else None
        return self._lock_connection is db

    def _rest(self) -> None:
        self._pass, self._begin_at = None, time.monotonic() + self.pass_seconds


def purge_breakers(tools: Maintenance) -> Sequence[Message]:
    """Delete the rows of services that have answered for a while."""
    circuit_breakers.purge(tools.db)
    return ()


BREAKERS: Final = MaintenanceJob("circuit_breakers", purge_breakers, every=AUDIT_SECONDS)
