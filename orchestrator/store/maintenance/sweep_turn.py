"""The turn of a sweep, taken by the statement that also reads what there is to do: a sweep without work is a
single statement, and so is the attempt of another worker in the same interval.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.stacks import progress

Db = Connection[TupleRow]

# Each condition is that of the statement that does the work, or wider, and is answered by the same index.
_DUE: Final = """
    EXISTS (SELECT 1 FROM graph_node WHERE state = 'waiting' AND due_at <= now())
    OR EXISTS (SELECT 1 FROM graph_node WHERE state = 'checking' AND leased_until < now())
    OR EXISTS (SELECT 1 FROM signal WHERE due_at <= now())
    OR EXISTS (SELECT 1 FROM observation_group WHERE due_at <= now())
    OR EXISTS (SELECT 1 FROM observation WHERE due_at <= now())
    OR EXISTS (SELECT 1 FROM late_request WHERE due_at <= now())"""
_QUEUED: Final = "EXISTS (SELECT 1 FROM graph_node WHERE state = 'queued')"
_WEBHOOKS: Final = "EXISTS (SELECT 1 FROM webhook WHERE state = 'active')"
_ENDING: Final = """
    EXISTS (SELECT 1 FROM stack WHERE status = 'IN_PROGRESS' AND (keep_going OR halted_traversal = traversal
        OR action_started_at < now() - make_interval(
            secs => coalesce(timeout_mins * 60.0, %(timeout)s)::float8)))
    OR EXISTS (SELECT 1 FROM stack WHERE resume_at <= now())
    OR EXISTS (SELECT 1 FROM stack WHERE queued_action IS NOT NULL)
    OR EXISTS (SELECT 1 FROM snapshot WHERE due_at <= now())"""
_PASSES: Final = "EXISTS (SELECT 1 FROM observation_pass WHERE due_at <= now())"
_FAULTS: Final = "EXISTS (SELECT 1 FROM repair) OR EXISTS (SELECT 1 FROM resource_verdict)"
_COUNTS: Final = f"EXISTS ({progress.DUE})"

# Two sweeps that ask at the same moment may both get the turn, which costs only a sweep. The first line names
# the table: a log of statements shows it.
TAKE: Final = f"""WITH turn AS (INSERT INTO sweep_turn AS t (id, begun_at)
    SELECT 1, clock_timestamp() WHERE NOT EXISTS (
        SELECT 1 FROM sweep_turn WHERE begun_at > clock_timestamp() - make_interval(secs => %(apart)s))
    ON CONFLICT (id) DO UPDATE SET begun_at = excluded.begun_at
    RETURNING id
)
SELECT {_DUE},
    {_QUEUED},
    {_WEBHOOKS},
    {_ENDING},
    {_PASSES},
    {_FAULTS},
    {_COUNTS}
FROM turn
"""

# Held until the end of the transaction in which the due work is queued.
TRY_LOCK: Final = "SELECT pg_try_advisory_xact_lock(%(lock)s)"


class Turn(NamedTuple):
    """The turn of a sweep: which kinds of work there are."""

    due: bool  # nodes, leases, signals or observations
    queued: bool  # nodes whose messages may be lost
    webhooks: bool
    ending: bool  # actions that time out, fail, resume or wait in a queue, and snapshots to be deleted
    passes: bool
    faults: bool  # which are perhaps to be repaired
    counts: bool  # stacks whose progress is to be counted


def take(db: Db, apart: float, default_timeout: float) -> Turn | None:
    """Return the work of a sweep; None if another sweep began within the last `apart` seconds.
    `default_timeout`: of actions without a timeout of their own.
    """
    values = {"apart": apart, "timeout": default_timeout, **progress.due_values()}
    rows = fetch_prepared(db, TAKE, values)
    return Turn(*rows[0]) if rows else None


def lock(db: Db, key: int) -> bool:
    """Return whether no other sweep is queueing due work; if so, others are locked out until the transaction
    ends.
    """
    row = db.execute(TRY_LOCK, {"lock": key}).fetchone()
    return row is not None and bool(row[0])
