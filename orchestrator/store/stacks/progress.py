"""The progress of a stack (docs/internals/protocol.md rule 18): counted by the sweep, read by a single key.

Counting walks the nodes of a traversal, so it is rationed: after a count, none follows for fifty times its
duration. A small stack is counted on request; a small nested stack only on request.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.states import RESOURCE_KINDS
from orchestrator.store.connections.database import Database
from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.store.tables.base import check_in

MAX_COUNTED_NODES: Final = 3_000  # maximum number of nodes that are counted on request
EVERY_SECONDS: Final = 2.0  # between two counts of a stack
IDLE_FACTOR: Final = 50  # times the duration of a count

# Stacks in progress without a recent count, and those that have ended since. Of the small stacks in a tree
# only the root is counted, or the sweep would count all day. Nothing is due while the last counts exceed
# their budget.
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

COUNT: Final = f"""
INSERT INTO progress (stack_id, traversal, counts, counted_at, seconds, final)
SELECT %(stack_id)s, %(traversal)s, coalesce(jsonb_object_agg(c.state, c.n), '{{}}'), clock_timestamp(),
    extract(epoch FROM clock_timestamp() - statement_timestamp()), %(final)s
FROM (
    SELECT n.state, count(*) AS n FROM graph_node n
    WHERE n.stack_id = %(stack_id)s AND n.traversal = %(traversal)s AND {check_in("n.kind", RESOURCE_KINDS)}
    GROUP BY n.state) c
ON CONFLICT (stack_id) DO UPDATE SET traversal = excluded.traversal, counts = excluded.counts,
    counted_at = excluded.counted_at, seconds = excluded.seconds, final = excluded.final
"""

# Of each stack the last count and, for a small traversal in progress, the present numbers. The conditions on
# the last count are inside: outside of the subquery, they would be checked after counting.
READ: Final = f"""
SELECT x.stack_id, p.counts, p.counted_at, p.final, fresh.counts, fresh.total, now()
FROM unnest(%(stacks)s::bigint[], %(traversals)s::bigint[]) AS x(stack_id, traversal)
LEFT JOIN progress p ON p.stack_id = x.stack_id AND p.traversal = x.traversal
LEFT JOIN LATERAL (
    SELECT json_object_agg(c.state, c.n) AS counts, sum(c.n)::bigint AS total FROM (
        SELECT n.state, count(*) AS n FROM (
            SELECT g.state FROM graph_node g
            WHERE g.stack_id = x.stack_id AND g.traversal = x.traversal
                AND {check_in("g.kind", RESOURCE_KINDS)} AND p.final IS NOT TRUE
                AND coalesce((SELECT sum(o.n::bigint) FROM jsonb_each_text(p.counts) AS o(state, n)), 0)
                    < %(most)s
            LIMIT %(most)s) n
        GROUP BY n.state) c
    ) fresh ON true
"""


@dataclass(frozen=True, slots=True)
class Progress:
    """The number of visits of a traversal, by their state."""

    counts: Mapping[str, int]  # by node state
    counted_at: dt.datetime | None  # None: not counted yet

    @property
    def total(self) -> int:
        """The number of all visits planned so far."""
        return sum(self.counts.values())

    def of(self, *states: str) -> int:
        """Return the number of visits in these states."""
        return sum(self.counts.get(state, 0) for state in states)


def read(database: Database, stack: StackRow) -> Progress:
    """Return the progress of a stack: present for a small stack, as last counted for a large stack."""
    return read_several(database, [stack])[stack.id]


def read_several(database: Database, stacks: Sequence[StackRow]) -> dict[int, Progress]:
    """Return the progress of stacks by id, each as `read` does."""
    values = {
        "stacks": [stack.id for stack in stacks],
        "traversals": [stack.traversal for stack in stacks],
        "most": MAX_COUNTED_NODES + 1,
    }
    with database.borrow() as db:
        rows = fetch_prepared(db, READ, values) if stacks else []
    return {row[0]: _progress(*row[1:]) for row in rows}


def _progress(
    counts: Mapping[str, int] | None,
    counted_at: dt.datetime | None,
    final: bool | None,
    fresh: Mapping[str, int] | None,
    total: int | None,
    now: dt.datetime,
) -> Progress:
    """Return the present numbers of a small stack, otherwise the last count."""
    stored = Progress(counts or {}, counted_at)
    if final or stored.total > MAX_COUNTED_NODES or (total or 0) > MAX_COUNTED_NODES:
        return stored
    return Progress(fresh or {}, now if fresh else stored.counted_at)


def due(db: Connection[TupleRow], limit: int = 100) -> list[tuple[int, int, bool]]:
    """Return the stacks to count now: stack, traversal, and whether it has ended."""
    return [(row[0], row[1], row[2]) for row in db.execute(DUE, due_values(limit)).fetchall()]


def due_values(limit: int = 1) -> Mapping[str, object]:
    """Return the values of the statement DUE."""
    return {"factor": IDLE_FACTOR, "every": EVERY_SECONDS, "limit": limit, "few": MAX_COUNTED_NODES}


def count(db: Connection[TupleRow], stack_id: int, traversal: int, *, final: bool) -> None:
    """Count a traversal's nodes and store the counts; `final` after its end."""
    db.execute(COUNT, {"stack_id": stack_id, "traversal": traversal, "final": final})
