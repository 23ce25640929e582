"""The progress of a stack (docs/internals/protocol.md rule 18): counted by the sweep, read by a single key.

All nested stacks are included. Counting walks the nodes of a tree, so it is rationed: after a count, none
follows for fifty times its duration. A small stack is counted on request; a small nested stack only on
request.
"""

from __future__ import annotations

import datetime as dt
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb

from orchestrator.engine.states import RESOURCE_KINDS
from orchestrator.store.connections.database import Database
from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.store.tables.base import check_in

MAX_COUNTED_NODES: Final = 3_000  # maximum number of nodes that are counted on request
MAX_SECONDS_ON_REQUEST: Final = 0.05  # duration of the last count; a slower one is not repeated on request
MAX_ROLLOUTS: Final = 10  # groups whose batches are shown
ROLLOUT: Final = "rollout"  # key of a revision's outline: the batch of a group
EVERY_SECONDS: Final = 2.0  # between two counts of a stack
IDLE_FACTOR: Final = 50  # times the duration of a count

# Stacks in progress without a recent count, and those that have ended since. Of the small stacks in a tree
# only the root is counted, or the sweep would count all day. Nothing is due while the last counts exceed
# their budget.
DUE_VALUES: Final = {"factor": IDLE_FACTOR, "every": EVERY_SECONDS, "few": MAX_COUNTED_NODES}
DUE: Final = """
WITH open AS MATERIALIZED (SELECT p.stack_id, p.counted_at, p.seconds FROM progress p WHERE NOT p.final)
SELECT s.id, s.traversal, s.status <> 'IN_PROGRESS'
FROM (
    SELECT s.id FROM stack s WHERE s.status = 'IN_PROGRESS' AND (s.owner_id IS NULL OR EXISTS (
        SELECT 1 FROM graph_node n WHERE n.stack_id = s.id AND n.traversal = s.traversal OFFSET %(few)s))
    UNION SELECT o.stack_id FROM open o
) x JOIN stack s ON s.id = x.id LEFT JOIN open o ON o.stack_id = s.id
WHERE NOT EXISTS (
        SELECT 1 FROM open w WHERE w.counted_at + make_interval(secs => w.seconds * %(factor)s) > now())
    AND (o.stack_id IS NULL OR s.status <> 'IN_PROGRESS'
        OR o.counted_at < now() - make_interval(secs => %(every)s))
ORDER BY o.counted_at NULLS FIRST LIMIT %(limit)s
"""
HAS_DUE: Final = f"EXISTS ({DUE % {**DUE_VALUES, 'limit': 1}})"

# The last count of each stack and, unless that is final, large or was slow, the present numbers of its tree:
# the nodes of the stack and of the nested stacks whose action began within its action. A revision of a group
# that is updated in batches has its batch in the outline. The conditions on the last count are inside:
# outside of the subquery, they would be checked after counting.
TREE: Final = f"""
SELECT x.stack_id, p.counts, p.rollouts, p.counted_at, p.seconds, p.final, now(), g.*
FROM unnest(%(stacks)s::bigint[], %(traversals)s::bigint[]) AS x(stack_id, traversal)
LEFT JOIN progress p ON p.stack_id = x.stack_id AND p.traversal = x.traversal
LEFT JOIN LATERAL (
    WITH RECURSIVE tree AS (
        SELECT s.id, s.traversal, s.revision_id, s.action_started_at FROM stack s
        WHERE s.id = x.stack_id AND s.traversal = x.traversal AND (%(most)s::bigint IS NULL
            OR p.final IS NOT TRUE AND coalesce(p.seconds, 0) < {MAX_SECONDS_ON_REQUEST}
            AND coalesce((SELECT sum(o.n::bigint) FROM jsonb_each_text(p.counts) AS o(state, n)), 0)
                < %(most)s::bigint)
        UNION ALL
        SELECT c.id, c.traversal, c.revision_id, t.action_started_at
        FROM tree t JOIN stack c ON c.owner_id = t.id AND c.action_started_at >= t.action_started_at
    ), member AS MATERIALIZED (
        SELECT t.id, t.traversal, (SELECT t.id FROM revision v
            WHERE v.id = t.revision_id AND v.traversal = t.traversal
                AND (v.outline -> '{ROLLOUT}') IS NOT NULL) AS rolling_id
        FROM tree t
    ), counted AS (
        SELECT n.rolling_id, n.state, count(*) AS number FROM (
            SELECT m.rolling_id, k.state FROM member m JOIN graph_node k
                ON k.stack_id = m.id AND k.traversal = m.traversal AND {check_in("k.kind", RESOURCE_KINDS)}
            LIMIT %(most)s::bigint) n
        GROUP BY n.rolling_id, n.state
        UNION ALL SELECT m.rolling_id, NULL, 0 FROM member m WHERE m.rolling_id IS NOT NULL  -- without nodes
    )
    SELECT s.id, s.uuid::text, s.name, s.parent_resource, s.status = 'COMPLETE',
        (v.outline -> '{ROLLOUT}')::jsonb, c.state, c.number
    FROM counted c LEFT JOIN stack s ON s.id = c.rolling_id LEFT JOIN revision v ON v.id = s.revision_id
) g ON true
"""
STORE: Final = """
INSERT INTO progress (stack_id, traversal, counts, rollouts, counted_at, seconds, final)
VALUES (%(stack_id)s, %(traversal)s, %(counts)s, %(rollouts)s, clock_timestamp(), %(seconds)s, %(final)s)
ON CONFLICT (stack_id) DO UPDATE SET traversal = excluded.traversal, counts = excluded.counts,
    rollouts = excluded.rollouts, counted_at = excluded.counted_at, seconds = excluded.seconds,
    final = excluded.final
"""


@dataclass(frozen=True, slots=True)
class GroupRollout:
    """A group that is being updated in batches."""

    resource_name: str
    stack_name: str  # of its child
    stack_id: str
    batch: int  # from 1
    batches: int
    updated: int
    total: int  # members to update


@dataclass(frozen=True, slots=True)
class Progress:
    """The number of visits of a traversal, and of those in nested stacks that it has led to, by their state.
    The members of later batches are `blocked`.
    """

    counts: Mapping[str, int]  # by node state
    counted_at: dt.datetime | None  # None: not counted yet
    rollouts: Sequence[GroupRollout] = ()  # unfinished, at most MAX_ROLLOUTS

    @property
    def total(self) -> int:
        """The number of all visits planned so far."""
        return sum(self.counts.values())

    def of(self, *states: str) -> int:
        """Return the number of visits in these states."""
        return sum(self.counts.get(state, 0) for state in states)


class _Row(NamedTuple):
    """The nodes in a state of a stack that is updated in batches, or of all other stacks of a tree."""

    stack_id: int
    counts: Mapping[str, int] | None  # the last count
    rollouts: Sequence[Mapping[str, Any]] | None
    counted_at: dt.datetime | None
    seconds: float | None
    final: bool | None
    now: dt.datetime
    member_id: int | None
    uuid: str | None
    name: str | None
    parent_resource: str | None
    is_complete: bool | None
    rollout: Mapping[str, int] | None
    state: str | None
    number: int | None


def read(database: Database, stack: StackRow) -> Progress:
    """Return the progress of a stack: present for a small stack, as last counted for a large stack."""
    return read_several(database, [stack])[stack.id]


def read_several(database: Database, stacks: Sequence[StackRow]) -> dict[int, Progress]:
    """Return the progress of stacks by id, each as `read` does."""
    if not stacks:
        return {}
    with database.borrow() as db:
        rows = _read(db, [(stack.id, stack.traversal) for stack in stacks], MAX_COUNTED_NODES + 1)
    return {stack_id: _progress(found) for stack_id, found in rows.items()}


def _read(
    db: Connection[TupleRow], stacks: Sequence[tuple[int, int]], most: int | None
) -> dict[int, list[_Row]]:
    ids, traversals = [stack for stack, _ in stacks], [traversal for _, traversal in stacks]
    values = {"stacks": ids, "traversals": traversals, "most": most}
    found: dict[int, list[_Row]] = {}
    for values_ in fetch_prepared(db, TREE, values):
        found.setdefault(values_[0], []).append(_Row(*values_))
    return found


def _progress(rows: Sequence[_Row]) -> Progress:
    """Return the present numbers of a small stack, otherwise the last count."""
    first = rows[0]
    rollouts = tuple(GroupRollout(**rollout) for rollout in first.rollouts or ())
    stored = Progress(first.counts or {}, first.counted_at, rollouts)
    number = sum(row.number or 0 for row in rows)
    if first.final or (first.seconds or 0) >= MAX_SECONDS_ON_REQUEST:
        return stored
    if stored.total > MAX_COUNTED_NODES or number > MAX_COUNTED_NODES:
        return stored
    fresh = _folded(rows, first.now)
    return fresh if fresh.counts else Progress({}, stored.counted_at)


def _folded(rows: Sequence[_Row], now: dt.datetime) -> Progress:
    """Return the numbers of a tree."""
    counts, members = Counter[str](), dict[int, list[_Row]]()
    for row in rows:
        if row.member_id is not None:
            members.setdefault(row.member_id, []).append(row)
        elif row.state is not None:
            counts[row.state] += row.number or 0
    rollouts = []
    for member in members.values():
        rollout, numbers = _in_batches(member)
        counts.update(numbers)
        if rollout.updated < rollout.total:
            rollouts.append(rollout)
    rollouts.sort(key=lambda rollout: rollout.stack_name)
    return Progress({state: n for state, n in counts.items() if n}, now, tuple(rollouts[:MAX_ROLLOUTS]))


def _in_batches(rows: Sequence[_Row]) -> tuple[GroupRollout, Counter[str]]:
    """Return the batch of a group, and its numbers over all batches: only the present batch has nodes."""
    first = rows[0]
    assert first.rollout is not None
    before, size, total = (first.rollout[key] for key in ("before", "size", "total"))
    counts = Counter({row.state: row.number or 0 for row in rows if row.state is not None})
    done = min(before + (size if first.is_complete else min(size, counts.pop("ready", 0))), total)
    counts["ready"] = done
    counts["blocked"] = max(counts["blocked"], total - sum(counts.values()) + counts["blocked"])
    name, stack_name = first.parent_resource or "", first.name or ""
    batch, batches = first.rollout["batch"], first.rollout["batches"]
    return GroupRollout(name, stack_name, first.uuid or "", batch, batches, done, total), counts


def due(db: Connection[TupleRow], limit: int = 100) -> list[tuple[int, int, bool]]:
    """Return the stacks to count now: stack, traversal, and whether it has ended."""
    return [(row[0], row[1], row[2]) for row in db.execute(DUE, {**DUE_VALUES, "limit": limit}).fetchall()]


def count(db: Connection[TupleRow], stack_id: int, traversal: int, *, final: bool) -> None:
    """Count the nodes of a traversal and of the nested stacks in its action, and store the counts; `final`
    after its end.
    """
    started = time.monotonic()
    rows = _read(db, [(stack_id, traversal)], None)[stack_id]
    counted = _folded(rows, rows[0].now)
    values = {
        "stack_id": stack_id,
        "traversal": traversal,
        "counts": Jsonb(dict(counted.counts)),
        "rollouts": Jsonb([asdict(rollout) for rollout in counted.rollouts]),
        "seconds": time.monotonic() - started,
        "final": final,
    }
    db.execute(STORE, values)
