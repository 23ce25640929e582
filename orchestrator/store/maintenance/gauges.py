"""Gauges of pending work, for metrics. Each is read through an index that exists for another purpose; none
walks all nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import psycopg
from sqlalchemy import text

from orchestrator.engine.states import STATES_AT_WORK
from orchestrator.store.connections.database import Database
from orchestrator.store.connections.sessions import NO_WRITES
from orchestrator.store.maintenance.quarantine import MAX_HANGS
from orchestrator.store.schema.collation import collation
from orchestrator.store.tables.base import check_in

STATEMENT_TIMEOUT: Final = "SET LOCAL statement_timeout = '2s'"  # a metric is not worth more load

# A step per root stack with queued nodes, as in the sweep; of each, the nodes in flight, at most a window.
QUEUES: Final = """
WITH RECURSIVE roots AS (
    (SELECT root_id FROM graph_node WHERE state = 'queued' ORDER BY root_id LIMIT 1)
    UNION ALL
    SELECT (SELECT g.root_id FROM graph_node g WHERE g.state = 'queued' AND g.root_id > roots.root_id
        ORDER BY g.root_id LIMIT 1)
    FROM roots WHERE roots.root_id IS NOT NULL
)
SELECT x.queue, count(*), extract(epoch FROM clock_timestamp() - min(x.enqueued_at))::float8
FROM roots CROSS JOIN LATERAL (
    SELECT n.queue, n.enqueued_at FROM graph_node n
    WHERE n.root_id = roots.root_id AND n.state = 'queued' AND n.enqueued_at IS NOT NULL) x
GROUP BY x.queue
"""

# Blocked nodes have no index: their number comes from the last progress count of the stacks in progress.
NODES: Final = f"""
SELECT 'queued', count(*) FROM graph_node WHERE state = 'queued'
UNION ALL SELECT 'checking', count(*) FROM graph_node WHERE state = 'checking'
UNION ALL SELECT 'waiting', count(*) FROM graph_node WHERE state = 'waiting'
UNION ALL SELECT 'paused', count(*) FROM graph_node WHERE {check_in("state", STATES_AT_WORK)}
    AND state = 'paused'
UNION ALL SELECT 'blocked', coalesce(sum((counts ->> 'blocked')::bigint), 0)::bigint FROM progress
    WHERE NOT final
"""

WEBHOOKS: Final = """
SELECT count(*) FILTER (WHERE state = 'active' AND due_at <= now()) AS due,
    count(*) FILTER (WHERE state = 'active' AND tries > 0) AS failing,
    count(*) FILTER (WHERE state = 'dead') AS dead,
    extract(epoch FROM clock_timestamp() - min(least(due_at, failing_since))
        FILTER (WHERE state = 'active'))::float8 AS oldest
FROM webhook
"""
SCHEMA_AND_ACCESS: Final = """
SELECT to_regclass('alembic_version') IS NOT NULL, current_setting('transaction_read_only') = 'on'
"""
ENDED: Final = "SELECT process, ended FROM hung_process"
QUARANTINED: Final = "SELECT kind, count(*) FROM quarantine WHERE hangs >= :hangs GROUP BY kind"
STACKS: Final = "SELECT action, count(*) FROM stack WHERE status = 'IN_PROGRESS' GROUP BY action"


@dataclass(frozen=True, slots=True)
class Gauges:
    """The unfinished work at a moment."""

    enqueued: Mapping[str, int]  # queue -> nodes with a check message in flight
    oldest_seconds: Mapping[str, float]  # queue -> age of the oldest message in flight
    nodes: Mapping[str, int]  # state -> unfinished nodes
    stacks: Mapping[str, int]  # action -> stacks in progress
    webhooks: Mapping[str, int]  # due, failing and dead webhooks
    webhook_seconds: float  # age of the oldest event not delivered yet, or 0
    ended: Mapping[str, int]  # kind of process -> hung processes that were ended
    quarantined: Mapping[str, int]  # kind -> quarantined work


def read_gauges(database: Database) -> Gauges:
    """Read the gauges.

    Raises:
        UNREACHABLE: the database is unreachable, or too busy.
    """
    with database.engine.begin() as connection:
        connection.execute(text(STATEMENT_TIMEOUT))
        queues = connection.execute(text(QUEUES)).all()
        nodes = connection.execute(text(NODES)).all()
        stacks = connection.execute(text(STACKS)).all()
        ended = connection.execute(text(ENDED)).all()
        quarantined = connection.execute(text(QUARANTINED), {"hangs": MAX_HANGS}).all()
        *webhooks, oldest = connection.execute(text(WEBHOOKS)).one()
    return Gauges(
        {queue: count for queue, count, _ in queues},
        {queue: max(0.0, seconds) for queue, _, seconds in queues},
        dict(tuple(row) for row in nodes),
        dict(tuple(row) for row in stacks),
        dict(zip(("due", "failing", "dead"), webhooks, strict=True)),
        max(0.0, oldest or 0.0),
        dict(tuple(row) for row in ended),
        dict(tuple(row) for row in quarantined),
    )


def schema_and_collation(database: Database) -> tuple[str | None, str]:
    """Return the version of the database's schema, None if it has none, and the collation of the database.

    Raises:
        UNREACHABLE: the database is unreachable, or accepts no writes.
    """
    with database.engine.connect() as connection:
        has_schema, read_only = connection.execute(text(SCHEMA_AND_ACCESS)).one()
        if read_only:
            raise psycopg.errors.ReadOnlySqlTransaction(NO_WRITES)
        if not has_schema:
            return None, collation(connection)
        version: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
        return version, collation(connection)
