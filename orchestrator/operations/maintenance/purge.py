"""Forget, in slices, what is kept no longer (docs/internals/protocol.md rule 19): a little at every tick, or
by a command.

One pass goes over all stacks. It removes those that were deleted long ago, then of every other what is older
than the policy keeps: events, revisions with the definitions only they had, finished visits, causes of old
failures. In the end go texts that no revision names. Every slice is a transaction of its own and may run
beside anything; a pass that is given up leaves nothing half done. Which rows may go is said in
`store/maintenance/purge.py`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.config import Settings
from orchestrator.logs import logger
from orchestrator.store.connections import locks
from orchestrator.store.maintenance import purge as purging

log = logger()

SLICE = 2_000  # rows
STACKS = 200  # looked at together
CONTENTS = 500
PASS_SECONDS = 600.0  # from the end of a pass to the next
BUDGET_SECONDS = 0.1  # what a tick may spend: whoever ticks rings, too
LOCK = 0x5055524745  # held by the one process that purges, wherever it runs, until its connection ends

Gone = tuple[str, int]  # a part, and how many rows of it


@dataclass(frozen=True, slots=True)
class Policy:
    """How long what is kept; seconds, and a number of revisions of each stack."""

    deleted_seconds: float
    events_seconds: float
    revisions: int
    revisions_seconds: float
    nodes_seconds: float

    @classmethod
    def of(cls, settings: Settings) -> Policy:
        """Return what the settings say."""
        return cls(
            settings.purge_deleted_after_seconds,
            settings.event_retention_seconds,
            settings.revision_retention_count,
            settings.revision_retention_seconds,
            settings.node_retention_seconds,
        )

    def values(self) -> dict[str, Any]:
        """Return what the statements are given."""
        return {
            "deleted": self.deleted_seconds,
            "events": self.events_seconds,
            "kept": self.revisions,
            "revisions": self.revisions_seconds,
            "nodes": self.nodes_seconds,
            "first": SLICE,
            "limit": SLICE,
            "going": [],
        }


def purge_steps(db: Connection[TupleRow], policy: Policy) -> Iterator[Gone]:
    """Go over everything once, yielding after each slice; stop asking, and the rest stays as it is."""
    values = policy.values()
    yield from _deleted(db, values)
    after = 0
    while batch := purging.ids(db, purging.STACKS, {"after": after, "limit": STACKS}):
        after = batch[-1]
        for part in purging.PARTS:
            for stacks in _groups(db, part, {**values, "stacks": batch}):
                while gone := purging.remove(db, part, {**values, "stacks": stacks}):
                    yield part.name, gone
        yield "", 0
    while gone := purging.remove(db, purging.STRAYS, values):
        yield purging.STRAYS.name, gone
    last = b""
    while hashes := purging.ids(db, purging.CONTENTS, {"after": last, "limit": CONTENTS}):
        last = hashes[-1]
        unnamed = purging.unreferenced(db, hashes)
        yield "texts", purging.remove_contents(db, unnamed) if unnamed else 0


def _groups(
    db: Connection[TupleRow], part: purging.PurgeTarget, values: Mapping[str, Any]
) -> Iterator[list[int]]:
    """Yield the stacks to remove a part of: each by itself where many rows of one may go."""
    if part.probe is None:
        yield values["stacks"]
    else:
        yield from ([stack_id] for stack_id in purging.ids(db, part.probe, values))


def _deleted(db: Connection[TupleRow], values: Mapping[str, Any]) -> Iterator[Gone]:
    """Remove stacks that were deleted long ago, with all they left, their own rows last."""
    while stacks := purging.ids(db, purging.DELETED, {**values, "limit": 10}):
        for stack_id in stacks:
            for table in purging.LEFT:
                while gone := purging.remove_of_deleted(db, table, stack_id, SLICE):
                    yield f"{table} of deleted stacks", gone
            yield "deleted stacks", purging.remove_deleted(db, stack_id)


def purge(db: Connection[TupleRow], policy: Policy) -> dict[str, int]:
    """Go over everything once; return how many rows of what are gone."""
    return _summed(purge_steps(db, policy))


def count_purgeable(db: Connection[TupleRow], policy: Policy) -> dict[str, int]:
    """Return how many rows of what `purge` would remove, changing nothing."""
    return _summed(_counted(db, policy))


def _counted(db: Connection[TupleRow], policy: Policy) -> Iterator[Gone]:
    values = {**policy.values(), "first": None}
    deleted = purging.ids(db, purging.DELETED, {**values, "limit": None})
    for table in purging.LEFT:
        yield f"{table} of deleted stacks", purging.count_of_deleted(db, table, deleted)
    yield "deleted stacks", len(deleted)
    gone = set(deleted)
    going = purging.ids(db, purging.REVISIONS_OF_STACKS, {"stacks": deleted})
    after = 0
    while batch := purging.ids(db, purging.STACKS, {"after": after, "limit": STACKS}):
        after = batch[-1]
        here = {**values, "stacks": [id_ for id_ in batch if id_ not in gone]}
        revisions = purging.ids(db, purging.REVISIONS.which, here)
        going += revisions
        for part in purging.PARTS:
            yield part.name, purging.count(db, part, {**here, "going": revisions})
    yield purging.STRAYS.name, purging.count(db, purging.STRAYS, values)
    last = b""
    while hashes := purging.ids(db, purging.CONTENTS, {"after": last, "limit": CONTENTS}):
        last = hashes[-1]
        yield "texts", len(purging.unreferenced(db, hashes, going))


def _summed(gone: Iterator[Gone]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for name, rows in gone:
        total[name] += rows
    return {name: rows for name, rows in total.items() if rows}


@dataclass(slots=True)
class IncrementalPurge:
    """The purge by a process that ticks: a pass now and then, a little of it at every tick.

    Whoever came first goes on with it for as long as its connection lasts; the others ask now and then
    whether it is gone.
    """

    policy: Policy
    pass_seconds: float = PASS_SECONDS
    _begin_at: float = field(default_factory=lambda: time.monotonic() + PASS_SECONDS / 10)
    _pass: Iterator[Gone] | None = None
    _mine: Connection[TupleRow] | None = None  # holds the lock
    _total: Counter[str] = field(default_factory=Counter)

    def tick(self, db: Connection[TupleRow], budget_seconds: float = BUDGET_SECONDS) -> None:
        """Go on with a pass, or begin one when it is time and nobody else does it."""
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

    def _go_on(self, a_pass: Iterator[Gone], until: float) -> None:
        for name, rows in a_pass:
            self._total[name] += rows
            if time.monotonic() > until:
                return
        gone = {name: rows for name, rows in self._total.items() if rows}
        if gone:
            log.info("purged", **{name.replace(" ", "_"): rows for name, rows in gone.items()})
        self._rest()

    def _take(self, db: Connection[TupleRow]) -> bool:
        if self._mine is not db:
            self._mine = db if locks.try_lock(db, LOCK) else None
        return self._mine is db

    def _rest(self) -> None:
        self._pass, self._begin_at = None, time.monotonic() + self.pass_seconds
