"""The other incarnations of a visited resource: claim them for a release, and record it
(operations/adr/0013-release-before-a-replacement.md).

`resource.released` is NULL while an object holds everything that it needs, false from before the request of a
release or of its return, and true when the release was observed.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.check.visit import ResourceView, ResourceVisit
from orchestrator.json_types import JsonMapping
from orchestrator.store.nodes.visit_sql import HOLDS, LOST_AT

Db = Connection[TupleRow]


class OtherView(NamedTuple):
    """Another incarnation of a visited resource, as stored."""

    id: int
    resource_type: str
    properties: JsonMapping | None
    sealed: str | None
    deletion_policy: str | None
    is_external: bool


OTHERS: Final = f"""
SELECT o.id, coalesce(o.runs_as, o.type), o.properties, convert_from(o.sealed, 'UTF8'),
    d.body->>'deletion_policy', d.body->>'external_id' IS NOT NULL
FROM resource o LEFT JOIN resource_definition d ON d.id = o.definition_id
WHERE o.stack_id = %(stack_id)s AND o.name = %(name)s AND o.id <> %(id)s AND {HOLDS}
ORDER BY o.id
"""
# As a claim (`visit_sql.CLAIM`): the fields of a ResourceView. Nothing is held for a superseded visit.
HOLD: Final = f"""
UPDATE resource r
SET lost_at = {LOST_AT}, released = false,
    lease = %(lease)s, leased_until = clock_timestamp() + make_interval(secs => %(seconds)s)
WHERE r.id = %(id)s AND r.deposed AND (r.lease IS NULL OR r.leased_until < clock_timestamp())
    AND %(traversal)s = (SELECT s.traversal FROM stack s WHERE s.id = r.stack_id)
RETURNING r.id, r.uuid::text, r.name, r.type, r.action, r.status, r.physical_id, r.reference_id,
    r.properties, r.attributes, r.data, convert_from(r.sealed, 'UTF8'), r.attempt, r.op,
    extract(epoch FROM clock_timestamp() - r.op_started_at)::float8,
    extract(epoch FROM r.lost_at - clock_timestamp())::float8,
    r.requires, r.definition_id, r.metadata, r.runs_as, r.value_digest, r.input_digests, r.deposed,
    r.suspended, r.marked_unhealthy, r.repair,
    extract(epoch FROM clock_timestamp() - greatest(r.op_started_at, r.reachable_since))::float8
"""
LET_GO: Final = """
UPDATE resource SET lease = NULL, leased_until = NULL, released = %(released)s,
    lost_at = CASE WHEN %(unanswered)s::bool THEN clock_timestamp() ELSE lost_at END
WHERE id = %(id)s AND lease = %(lease)s
"""
MARK: Final = (
    "UPDATE resource SET released = %(released)s WHERE id = %(id)s AND lease = %(lease)s RETURNING id"
)

IS_SHARED: Final = """
SELECT EXISTS (
    SELECT 1 FROM resource r JOIN resource own ON own.id = %(id)s
    WHERE r.stack_id = %(stack_id)s AND r.name = %(name)s AND r.id <> own.id AND own.deposed
        AND NOT r.deposed
        AND r.physical_id = %(physical_id)s AND coalesce(r.runs_as, r.type) = coalesce(own.runs_as, own.type))
"""


def is_shared(db: Db, visit: ResourceVisit, physical_id: str) -> bool:
    """Return whether the object of a deposed incarnation belongs to the current one."""
    resource = visit.resource
    values = {
        "stack_id": visit.stack.id,
        "name": resource.name,
        "id": resource.id,
        "physical_id": physical_id,
    }
    row = db.execute(IS_SHARED, values).fetchone()
    return row is not None and bool(row[0])


def others(db: Db, visit: ResourceVisit) -> list[OtherView]:
    """Return the deposed incarnations that may hold what the visited one needs."""
    resource = visit.resource
    values = {"stack_id": visit.stack.id, "name": resource.name, "id": resource.id}
    return [OtherView(*row) for row in db.execute(OTHERS, values).fetchall()]


def hold(db: Db, visit: ResourceVisit, id_: int, lease: int, seconds: float) -> ResourceView | None:
    """Lease another incarnation and mark it durably, before its release is requested; None: it is visited, or
    the traversal is over.
    """
    values = {"id": id_, "traversal": visit.traversal, "lease": lease, "seconds": seconds}
    row: tuple[Any, ...] | None = db.execute(HOLD, values).fetchone()
    return None if row is None else ResourceView(*row)


def let_go(db: Db, id_: int, lease: int, *, released: bool, unanswered: bool = False) -> None:
    """Give the lease of another incarnation back, and record whether its release was observed, or a request
    had no answer.
    """
    values = {"id": id_, "lease": lease, "released": released, "unanswered": unanswered}
    db.execute(LET_GO, values)


def mark(db: Db, id_: int, lease: int, released: bool | None) -> bool:
    """Record the release of the visited incarnation; return False if the lease is lost."""
    return db.execute(MARK, {"id": id_, "lease": lease, "released": released}).fetchone() is not None
