"""Circuit breakers in the database: shared by all workers (operations/adr/0010).

Every statement is its own transaction. A row exists while a service gives a project no answer, and for a
while afterwards, so that an outage with interruptions counts as one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

Db = Connection[TupleRow]

FAILURES_TO_OPEN: Final = 3  # calls in a row without an answer
OUTAGES_APART_SECONDS: Final = 60.0  # shorter interruptions of an outage start no new outage
KEPT_SECONDS: Final = 3_600  # after the last answer
DOUBT_SECONDS: Final = 10.0  # after an outage, in which absences are confirmed
PROBE_LEASE_SECONDS: Final = 30.0  # after which another visit may call the service
MAX_NOTED_STACKS: Final = 1_000  # with an event about the same outage
MAX_WOKEN: Final = 1_000  # nodes; further nodes become due by themselves

READ = """
SELECT failures, opened_at IS NOT NULL, last_error,
    greatest(probe_at, probing_until) > clock_timestamp(),
    coalesce(answered_at > clock_timestamp() - make_interval(secs => %(doubt_seconds)s), false)
FROM circuit_breaker WHERE project_id = %(project_id)s AND service = %(service)s
"""

# A single visit calls an open service.
START_PROBE = """
UPDATE circuit_breaker SET probing_until = clock_timestamp() + make_interval(secs => %(lease_seconds)s)
WHERE project_id = %(project_id)s AND service = %(service)s AND probe_at <= clock_timestamp()
    AND (probing_until IS NULL OR probing_until < clock_timestamp())
RETURNING true
"""

RECORD_FAILURE = """
INSERT INTO circuit_breaker AS b (project_id, service, last_error)
VALUES (%(project_id)s, %(service)s, %(error)s)
ON CONFLICT (project_id, service) DO UPDATE SET
    failures = least(b.failures + 1, 1000000), last_error = excluded.last_error, probing_until = NULL,
    answered_at = NULL, stacks = CASE WHEN b.answered_at < now() - make_interval(secs => %(apart)s) THEN '{}'
        ELSE b.stacks END,
    probes = CASE WHEN b.opened_at IS NULL THEN 0 ELSE least(b.probes + 1, 100) END,
    opened_at = CASE WHEN b.failures + 1 >= %(threshold)s THEN coalesce(b.opened_at, now()) END,
    probe_at = CASE WHEN b.failures + 1 >= %(threshold)s THEN clock_timestamp() + make_interval(
        secs => least(%(max_seconds)s, power(2, least(b.probes, 10))) * (0.5 + random() / 2)) END
RETURNING failures, opened_at IS NOT NULL
"""

# The service answers again: nodes and failed stacks that wait for it need not wait any longer.
CLOSE = """
WITH closed AS (
    UPDATE circuit_breaker b SET failures = 0, opened_at = NULL, probe_at = NULL, probing_until = NULL,
        probes = 0, answered_at = now()
    FROM (SELECT c.project_id, c.service, c.opened_at FROM circuit_breaker c
        WHERE c.project_id = %(project_id)s AND c.service = %(service)s AND c.failures > 0 FOR UPDATE) AS old
    WHERE b.project_id = old.project_id AND b.service = old.service
    RETURNING old.opened_at
), waiting AS MATERIALIZED (
    SELECT n.id FROM closed CROSS JOIN graph_node n JOIN stack s ON s.id = n.stack_id
    WHERE closed.opened_at IS NOT NULL AND n.state = 'waiting' AND n.due_at > now()
        AND n.due_at <> 'infinity' AND n.unreachable_tries > 0 AND s.project_id = %(project_id)s
    LIMIT %(most)s FOR UPDATE OF n SKIP LOCKED
), due AS (
    UPDATE graph_node n SET due_at = now() FROM waiting WHERE n.id = waiting.id
), continued AS (
    UPDATE stack s SET resume_at = now() FROM closed
    WHERE s.project_id = %(project_id)s AND s.resume_at > now()
)
SELECT opened_at IS NOT NULL FROM closed
"""

# One event for each stack in progress and outage.
NOTE_STACK = """
WITH noted AS (
    UPDATE circuit_breaker SET stacks = stacks || %(stack_id)s::bigint
    WHERE project_id = %(project_id)s AND service = %(service)s
        AND NOT stacks @> ARRAY[%(stack_id)s::bigint] AND cardinality(stacks) < %(most)s
    RETURNING last_error
)
INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason)
SELECT s.id, s.name, 'OS::Heat::Stack', s.uuid::text, s.action, s.status,
    %(service)s || ' is unavailable: ' || noted.last_error
    || '. Its operations are tried again until the timeout of the stack.'
FROM noted CROSS JOIN stack s WHERE s.id = %(stack_id)s AND s.status = 'IN_PROGRESS'
"""

PURGE = "DELETE FROM circuit_breaker WHERE answered_at < now() - make_interval(secs => %(seconds)s)"


@dataclass(frozen=True, slots=True)
class BreakerState:
    """The recorded failures of a service; `blocked`: it is open, and may not be called at this moment."""

    failures: int = 0
    is_open: bool = False
    last_error: str = ""
    blocked: bool = False
    recovered: bool = False  # it answers again since a short time

    @property
    def after_outage(self) -> bool:
        """Whether the service gave no answer a short time ago: an absence is in doubt."""
        return self.failures > 0 or self.recovered


ANSWERING: Final = BreakerState()
RECOVERED: Final = BreakerState(recovered=True)


def read(db: Db, project_id: str, service: str) -> BreakerState:
    """Return the state of a service for a project."""
    values = {"project_id": project_id, "service": service, "doubt_seconds": DOUBT_SECONDS}
    row = db.execute(READ, values).fetchone()
    if row is None:
        return ANSWERING
    failures, is_open, last_error, paused, recovered = row
    return BreakerState(failures, is_open, last_error, bool(is_open and paused), recovered)


def start_probe(db: Db, project_id: str, service: str) -> bool:
    """Return whether the caller may call an open service now; no other visit may then."""
    values = {"project_id": project_id, "service": service, "lease_seconds": PROBE_LEASE_SECONDS}
    return db.execute(START_PROBE, values).fetchone() is not None


def record_failure(db: Db, project_id: str, service: str, error: str, max_seconds: float) -> BreakerState:
    """Record a call without an answer. `max_seconds`: longest pause between two calls of an open service."""
    values = {
        "project_id": project_id,
        "service": service,
        "error": error,
        "threshold": FAILURES_TO_OPEN,
        "max_seconds": max_seconds,
        "apart": OUTAGES_APART_SECONDS,
    }
    row = db.execute(RECORD_FAILURE, values).fetchone()
    assert row is not None
    return BreakerState(row[0], row[1], error, row[1])


def close(db: Db, project_id: str, service: str) -> bool:
    """Record an answer; return whether the breaker was open."""
    row = db.execute(CLOSE, {"project_id": project_id, "service": service, "most": MAX_WOKEN}).fetchone()
    return row is not None and bool(row[0])


def is_in_doubt(db: Db, project_id: str, service: str) -> bool:
    """Return whether an absence that a service has just reported is in doubt (operations/adr/0023). The
    report is an answer, which ends the outage.
    """
    state = read(db, project_id, service)
    if state.failures:
        close(db, project_id, service)
    return state.after_outage


def note_stack(db: Db, project_id: str, service: str, stack_id: int) -> None:
    """Write the event about this outage for a stack, unless it has it."""
    values = {"project_id": project_id, "service": service, "stack_id": stack_id, "most": MAX_NOTED_STACKS}
    db.execute(NOTE_STACK, values)


def purge(db: Db) -> None:
    """Delete the rows of services that have answered for a while."""
    db.execute(PURGE, {"seconds": KEPT_SECONDS})
