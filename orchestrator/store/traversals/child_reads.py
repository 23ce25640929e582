"""Reads of child stacks and of the inputs that they inherit (docs/internals/engine-semantics.md §13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow
from sqlalchemy import Connection as PooledConnection

from orchestrator.engine.check.child_status import ChildState
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.tables.base import check_in

Db = Connection[TupleRow]


# After a failed operation, or by an observation; an object that its type repairs still serves.
BROKEN = f"""({{0}}observed = 'failed' OR {check_in("{0}repair ->> 'cause'", ("MISSING", "FAILED"))}
    AND {{0}}repair ->> 'action' <> 'recover')"""

CHILD_STATE = """
    c.id, c.uuid::text, c.name, c.project_id, c.traversal, c.action, c.status, c.status_reason,
    c.revision_id, c.deleted_at IS NOT NULL,
    EXISTS (SELECT 1 FROM stale_child d WHERE d.stack_id = c.id),
    c.halted_traversal IS NOT DISTINCT FROM c.traversal"""

STATE = f"""
SELECT {CHILD_STATE}
FROM stack c WHERE c.parent_resource_id = %(resource_id)s::bigint
"""

STALE_RESOURCES = """
SELECT s.parent_resource FROM stack s JOIN stale_child d ON d.stack_id = s.id
WHERE s.owner_id = %(stack_id)s AND s.parent_resource_id IS NOT NULL
"""

CAUSES = """
SELECT reason FROM failure WHERE stack_id = %(stack_id)s AND traversal = %(traversal)s
ORDER BY id LIMIT %(limit)s
"""

# The content of a child's revision, if it has reached the revision.
REACHED = """
SELECT v.id, v.template_hash, v.environment, v.files, v.parameters, v.sealed
FROM stack s JOIN revision v ON v.id = s.revision_id
WHERE s.id = %(stack_id)s AND s.good_revision_id = s.revision_id AND s.deleted_at IS NULL
    AND v.template_hash = %(template_hash)s
"""

MEMBERS = f"""
SELECT name, coalesce(runs_as, type), action, status, physical_id, reference_id,
    extract(epoch FROM created_at)::float8, attributes, convert_from(sealed, 'UTF8'),
    coalesce({BROKEN.format("")}, false)
FROM resource WHERE stack_id = %(stack_id)s AND NOT deposed AND action <> 'DELETE' ORDER BY created_at, id
"""

NESTED_MEMBERS = f"""
SELECT r.name, r.type, r.runs_as, r.data, convert_from(r.sealed, 'UTF8'), {CHILD_STATE}
FROM stack c JOIN resource r ON r.id = c.parent_resource_id
WHERE c.owner_id = %(stack_id)s AND c.deleted_at IS NULL AND r.stack_id = %(stack_id)s
    AND NOT r.deposed AND r.action <> 'DELETE'
"""

SIBLINGS = """
SELECT name, properties, metadata, convert_from(sealed, 'UTF8'), physical_id FROM resource
WHERE stack_id = %(stack_id)s AND NOT deposed AND action <> 'DELETE'
    AND (physical_id = %(id)s OR reference_id = %(id)s)
LIMIT 1
"""

FAILED = f"""
SELECT name FROM resource
WHERE stack_id = %(stack_id)s AND NOT deposed AND action <> 'DELETE'
    AND (status = 'FAILED' OR {BROKEN.format("")})
"""

# An object never became ready if its create is still open after its traversal has ended, or if it is being
# discarded.
CONDITIONS = f"""
SELECT r.name,
    CASE WHEN r.op = 'DISCARD' OR r.op = 'CREATE' AND s.status <> 'IN_PROGRESS' THEN 'stuck'
        WHEN r.status = 'FAILED' OR {BROKEN.format("r.")} THEN 'failed'
        WHEN r.physical_id IS NULL THEN 'uncreated'
        ELSE 'unready' END,
    CASE WHEN r.op = 'CREATE' THEN extract(epoch FROM clock_timestamp() - r.op_started_at)::float8 END,
    coalesce(r.runs_as, r.type)
FROM resource r JOIN stack s ON s.id = r.stack_id
WHERE r.stack_id = %(stack_id)s AND NOT r.deposed AND r.action <> 'DELETE'
    AND (r.status <> 'COMPLETE' OR {BROKEN.format("r.")} OR r.op IS NOT NULL OR r.physical_id IS NULL)
"""

COUNT = """
SELECT count(*) FROM resource WHERE stack_id = %(stack_id)s AND NOT deposed AND action <> 'DELETE'
"""

NAMES = """
SELECT name FROM resource WHERE stack_id = %(stack_id)s AND NOT deposed AND action <> 'DELETE'
"""

INHERITED = """
SELECT v.environment, v.files, s.depth, v.sealed, v.denied_types
FROM revision v JOIN stack s ON s.id = %(stack_id)s::bigint
WHERE v.id = %(revision_id)s::bigint
"""

TEMPLATE = """
SELECT convert_from(c.body, 'UTF8') FROM revision v JOIN content c ON c.hash = v.template_hash
WHERE v.id = %(revision_id)s
"""

MAX_CAUSES = 1_000  # of a child's failure, reported by the parent


def state(db: Db, resource_id: int) -> ChildState | None:
    """Return the child stack of a resource, None if it has none."""
    for row in fetch_prepared(db, STATE, {"resource_id": str(resource_id)}):
        return ChildState(*row)
    return None


def stale_resources(db: Db, stack_id: int) -> list[str]:
    """Return the names of the resources whose child stacks, or stacks below these, were changed directly."""
    return [row[0] for row in db.execute(STALE_RESOURCES, {"stack_id": stack_id}).fetchall()]


class RevisionContent(NamedTuple):
    """The content of a revision with a given template."""

    id: int
    template_hash: bytes
    environment: JsonObject
    files: Mapping[str, str]
    parameters: JsonObject
    sealed: bytes | None


def reached(db: Db, stack_id: int, template_hash: bytes) -> RevisionContent | None:
    """Return the desired revision of a child that has reached it, if it has this template."""
    values = {"stack_id": stack_id, "template_hash": template_hash}
    row = db.execute(REACHED, values).fetchone()
    return None if row is None else RevisionContent(*row)


def causes(db: Db, child: ChildState) -> list[str]:
    """Return the causes of a child's failure, in the order of the failures."""
    return [
        row[0]
        for row in db.execute(
            CAUSES, {"stack_id": child.id, "traversal": child.traversal, "limit": MAX_CAUSES}
        ).fetchall()
    ]


COUNT_BELOW = """
SELECT count(*) FROM (
    SELECT 1 FROM stack s JOIN resource r ON r.stack_id = s.id
    WHERE s.root_id = %(root)s AND s.uuid <> %(but)s::uuid AND s.deleted_at IS NULL AND NOT r.deposed
    LIMIT %(most)s) AS found
"""


def count_below(connection: PooledConnection, root_id: int, most: int, but: str) -> int:
    """Return the number of resources in a tree without a single stack's, at most `most`."""
    values = {"root": root_id, "most": most, "but": but}
    count_: int = connection.exec_driver_sql(COUNT_BELOW, values).scalar_one()
    return count_


def members(db: Db, child_id: int) -> list[tuple[Any, ...]]:
    """Return a child's resources, the oldest first."""
    return db.execute(MEMBERS, {"stack_id": child_id}).fetchall()


def nested_members(db: Db, child_id: int) -> list[tuple[Any, ...]]:
    """Return a child's resources that are stacks: name, type, effective type, data, sealed values, and the
    columns of `ChildState`.
    """
    return db.execute(NESTED_MEMBERS, {"stack_id": child_id}).fetchall()


def siblings(db: Db, stack_id: int, id_: str) -> list[tuple[Any, ...]]:
    """Return the resource of a stack with this reference id or physical id, if any."""
    return db.execute(SIBLINGS, {"stack_id": stack_id, "id": id_}).fetchall()


def failed(db: Db, child_id: int) -> list[str]:
    """Return the names of a child's broken resources."""
    return [row[0] for row in db.execute(FAILED, {"stack_id": child_id}).fetchall()]


def conditions(db: Db, child_id: int) -> list[tuple[str, str, float | None, str]]:
    """Return the members that are not in service: name, condition, age of an open create in seconds, type."""
    return [(row[0], row[1], row[2], row[3]) for row in db.execute(CONDITIONS, {"stack_id": child_id})]


def count(db: Db, child_id: int) -> int:
    """Return the number of a child's resources."""
    [(result,)] = db.execute(COUNT, {"stack_id": child_id}).fetchall()
    return int(result)


def names(db: Db, child_id: int) -> list[str]:
    """Return the names of a child's resources."""
    return [row[0] for row in db.execute(NAMES, {"stack_id": child_id}).fetchall()]


class InheritedInputs(NamedTuple):
    """The inputs that children inherit from a stack: a revision's, and the depth."""

    environment: JsonMapping
    files: Mapping[str, str]
    depth: int
    sealed: bytes | None  # the encrypted values of the revision
    denied_types: Sequence[str] | None  # to its author; None: not known


def inherited(db: Db, stack_id: int, revision_id: int) -> InheritedInputs:
    """Return the inputs that children inherit from a stack with this revision."""
    values = {"stack_id": str(stack_id), "revision_id": str(revision_id)}
    [row] = fetch_prepared(db, INHERITED, values)
    return InheritedInputs(*row)


def template(db: Db, revision_id: int) -> str | None:
    """Return a revision's template as stored."""
    row = db.execute(TEMPLATE, {"revision_id": revision_id}).fetchone()
    return None if row is None else row[0]
