"""Stacks that failed because a service gave no answer until the timeout, and continue after the outage.

`resume_at` marks such a stack. A new traversal of any kind clears the mark.
"""

from __future__ import annotations

from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.messages import CheckMessage
from orchestrator.engine.states import TEMPLATE_ACTIONS
from orchestrator.store.traversals.traversals import start_traversal

Db = Connection[TupleRow]

FIRST_SECONDS: Final = 15.0  # the pause before the first continuation; it doubles
MAX_SECONDS: Final = 900.0
PROBED_SECONDS: Final = 5.0  # a service with a newer probe is still being probed by other visits

# An automatic rollback has a revision without an author.
SCHEDULE = """
UPDATE stack s
SET resume_at = now() + make_interval(secs => least(%(longest)s, %(first)s * power(2, s.resume_tries))),
    resume_tries = least(s.resume_tries + 1, 100)
WHERE s.id = %(stack_id)s AND s.traversal = %(traversal)s AND s.owner_id IS NULL
    AND coalesce(s.resume, s.action = 'ROLLBACK'
        AND EXISTS (SELECT 1 FROM revision r WHERE r.id = s.revision_id AND r.created_by = ''))
RETURNING true
"""
# Visits to operations that are still open probe the service. Without such a visit the continuation does.
HAS_DUE: Final = "EXISTS (SELECT 1 FROM stack WHERE resume_at <= now())"
DUE = """
WITH probed AS MATERIALIZED (
    SELECT d.id, EXISTS (
        SELECT 1 FROM circuit_breaker b WHERE b.project_id = d.project_id AND b.opened_at IS NOT NULL
            AND b.probe_at > now() - make_interval(secs => %(probed)s)) AS waits
    FROM stack d WHERE d.resume_at <= now() ORDER BY d.resume_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
UPDATE stack s
SET resume_at = CASE WHEN probed.waits THEN now() + make_interval(secs => %(probed)s) ELSE s.resume_at END
FROM probed WHERE s.id = probed.id RETURNING s.id, s.traversal, probed.waits
"""
READ = """
SELECT action, revision_id, converge FROM stack
WHERE id = %(stack_id)s AND traversal = %(traversal)s AND status = 'FAILED' AND resume_at <= now()
    AND deleted_at IS NULL FOR UPDATE
"""
REOPEN_REVISION = "UPDATE revision SET outcome = NULL, ended_at = NULL WHERE id = %(revision_id)s"
FORGET = "UPDATE stack SET resume_at = NULL WHERE id = %(stack_id)s AND traversal = %(traversal)s"


def schedule(db: Db, stack_id: int, traversal: int) -> bool:
    """Return whether a stack that fails in an outage continues afterwards, and mark it so."""
    values = {"stack_id": stack_id, "traversal": traversal, "first": FIRST_SECONDS, "longest": MAX_SECONDS}
    return db.execute(SCHEDULE, values).fetchone() is not None


def due(db: Db, limit: int) -> list[tuple[int, int]]:
    """Return the stacks that may continue now: id and traversal. Others are postponed while their services
    are being probed without success.
    """
    rows = db.execute(DUE, {"probed": PROBED_SECONDS, "limit": limit}).fetchall()
    return [(row[0], row[1]) for row in rows if not row[2]]


def resume(db: Db, stack_id: int, traversal: int) -> list[CheckMessage]:
    """Start the failed action again, to the same revision; return the messages to send."""
    values: dict[str, object] = {"stack_id": stack_id, "traversal": traversal}
    with db.transaction():
        row = db.execute(READ, values).fetchone()
        if row is None:
            db.execute(FORGET, values)
            return []
        action, revision_id, converge = row
        applies = action in TEMPLATE_ACTIONS
        if applies:
            db.execute(REOPEN_REVISION, {"revision_id": revision_id})
        started = start_traversal(
            db,
            stack_id,
            action,
            revision_id=revision_id if applies else None,
            expected=traversal,
            converge=converge,
            resumed=True,
        )
    return [] if started is None else [started.message]
