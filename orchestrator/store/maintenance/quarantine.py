"""Work that hung its process: recorded by the watchdog before it ends the process, and read by workers.

The kinds of work are `node` (a check, by the id of its node), `observation` and `signals` (by the id of the
resource), `round` (by the id of the observation group), `webhook`, and `request` (by a digest). The next
action of the stack releases its work, the reactivation of a webhook its deliveries, an hour a request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from psycopg import Connection
from psycopg.rows import TupleRow

Db = Connection[TupleRow]

MAX_HANGS: Final = 2  # after which work is not executed again
REQUEST_SECONDS: Final = 3600  # until a request is processed again

COUNT = """
INSERT INTO hung_process AS h (process, ended, last_at, trace) VALUES (%(process)s, 1, now(), %(trace)s)
ON CONFLICT (process) DO UPDATE SET ended = h.ended + 1, last_at = now(), trace = excluded.trace
"""

# Work in progress together with other work is suspect, at most once: it is repeated alone.
RECORD = """
INSERT INTO quarantine AS q (kind, object_id, hangs, position)
SELECT x.kind, x.object_id, 1, %(position)s
FROM unnest(%(kinds)s::text[], %(ids)s::bigint[]) AS x(kind, object_id)
ORDER BY x.kind, x.object_id
ON CONFLICT (kind, object_id) DO UPDATE SET hangs = CASE WHEN %(certain)s THEN q.hangs + 1 ELSE q.hangs END,
    position = excluded.position, last_at = now()
"""

READ = "SELECT kind, object_id, hangs, position FROM quarantine"
RELEASE = """
DELETE FROM quarantine WHERE kind = %(kind)s AND object_id = %(object_id)s AND hangs < %(max_hangs)s
"""

# Nodes of earlier traversals; requests after an hour; resources and groups whose stack, or a stack whose
# project, has begun an action since.
RELEASE_OLD = f"""
DELETE FROM quarantine q WHERE NOT CASE q.kind
    WHEN 'node' THEN EXISTS (SELECT 1 FROM graph_node n JOIN stack s ON s.id = n.stack_id
        WHERE n.id = q.object_id AND n.traversal = s.traversal AND s.deleted_at IS NULL)
    WHEN 'request' THEN q.last_at > now() - interval '{REQUEST_SECONDS} seconds'
    WHEN 'webhook' THEN EXISTS (SELECT 1 FROM webhook w WHERE w.id = q.object_id)
    WHEN 'round' THEN EXISTS (SELECT 1 FROM observation_group g WHERE g.id = q.object_id
        AND NOT EXISTS (SELECT 1 FROM stack s
            WHERE s.project_id = g.project_id AND s.action_started_at > q.last_at))
    ELSE EXISTS (SELECT 1 FROM resource r JOIN stack s ON s.id = r.stack_id
        WHERE r.id = q.object_id AND s.action_started_at <= q.last_at AND s.deleted_at IS NULL) END
"""

RELEASE_WEBHOOK = """
DELETE FROM quarantine q USING webhook w
WHERE q.kind = 'webhook' AND q.object_id = w.id AND w.project_id = %(project_id)s AND w.uuid = %(uuid)s
"""


class Report(NamedTuple):
    """The watchdog's report about a process that it ends."""

    process: str
    trace: str
    work: Sequence[tuple[str, int]]
    certain: bool  # the work has hung the process; otherwise a part of it
    position: str


def record(db: Db, report: Report) -> None:
    """Record the end of a process, and its work."""
    db.execute(COUNT, {"process": report.process, "trace": report.trace})
    values: Mapping[str, object] = {
        "kinds": [kind for kind, _ in report.work],
        "ids": [id_ for _, id_ in report.work],
        "certain": report.certain,
        "position": report.position,
    }
    db.execute(RECORD, values)


class Hung(NamedTuple):
    """How often work has hung a process, and where."""

    hangs: int
    position: str


def read(db: Db) -> dict[tuple[str, int], Hung]:
    """Return all recorded work, after the release of work whose stack has begun another action."""
    rows = db.execute(READ).fetchall()
    if rows:
        db.execute(RELEASE_OLD)
        rows = db.execute(READ).fetchall()
    return {(kind, object_id): Hung(hangs, position) for kind, object_id, hangs, position in rows}


def release(db: Db, kind: str, object_id: int) -> None:
    """Delete the row of suspect work that has completed."""
    db.execute(RELEASE, {"kind": kind, "object_id": object_id, "max_hangs": MAX_HANGS})


def release_webhook(db: Db, project_id: str, uuid: UUID) -> None:
    """Release the deliveries of a webhook that is reactivated."""
    db.execute(RELEASE_WEBHOOK, {"project_id": project_id, "uuid": uuid})
