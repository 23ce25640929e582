"""The resources that a round observes.

A resource with an open operation or a lease is not read, nor one that is being deleted. `version` is the
`xmin` of the row: while it is the same, nobody has changed the row.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from psycopg import Connection, DataError
from psycopg.rows import TupleRow

from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.logs import logger
from orchestrator.store.connections.damaged_rows import damage, decoded
from orchestrator.store.nodes import repository
from orchestrator.store.nodes.visit_sql import VISIT_COLUMNS, VISIT_JOINS
from orchestrator.store.observation.rules import TREE
from orchestrator.store.stacks.physical_ids import IS_NAMED

Db = Connection[TupleRow]
log = logger()

PAGE: Final = 5_000  # rows read at a time

VERSION: Final = "r.xmin::text::bigint"
TYPE: Final = "coalesce(r.runs_as, r.type)"
AT_REST: Final = """r.physical_id IS NOT NULL AND r.op IS NULL AND r.lease IS NULL AND NOT r.deposed
    AND r.action <> 'DELETE' AND r.released IS NULL"""

TYPES = f"""
SELECT DISTINCT {TYPE} FROM stack s JOIN resource r ON r.stack_id = s.id
WHERE s.project_id = %(project_id)s AND s.deleted_at IS NULL AND r.physical_id IS NOT NULL
"""

# Whether a stack of the project is at work, and whether an action has started since; without stacks as well.
ACTIVITY = """
SELECT coalesce(bool_or(status = 'IN_PROGRESS'), false),
    coalesce(bool_or(action_started_at > coalesce(%(since)s::timestamptz, '-infinity')), true)
FROM stack WHERE project_id = %(project_id)s AND deleted_at IS NULL
"""

SCAN = f"""
SELECT r.id, r.physical_id, {VERSION}, {TYPE}, s.root_id
FROM stack s JOIN resource r ON r.stack_id = s.id
WHERE s.project_id = %(project_id)s AND s.deleted_at IS NULL AND {TYPE} = ANY(%(types)s) AND {AT_REST}
    AND r.id > %(after_id)s
"""
FOLLOWING = f"{SCAN} ORDER BY r.id LIMIT %(limit)s"
NAMED = f"""
WITH r AS MATERIALIZED (
    SELECT r.id, r.physical_id, {VERSION} AS version, {TYPE} AS type, r.stack_id FROM resource r
    WHERE {IS_NAMED} AND {AT_REST}
)
SELECT r.id, r.physical_id, r.version, r.type, s.root_id
FROM r JOIN stack s ON s.id = r.stack_id
WHERE s.project_id = %(project_id)s AND s.deleted_at IS NULL
ORDER BY r.id
"""

TREE_SCAN = f"""{TREE}
SELECT r.id, r.physical_id, {VERSION}, {TYPE}, s.root_id, t.prefix || r.name
FROM t JOIN stack s ON s.id = t.id JOIN resource r ON r.stack_id = t.id
WHERE {AT_REST} ORDER BY r.id
"""

VISITS = f"""
SELECT {VISIT_COLUMNS}, n.version, (
    SELECT x.revision_id IS NOT DISTINCT FROM x.good_revision_id FROM stack x WHERE x.id = s.root_id)
FROM (
    SELECT 0::bigint AS id, 'observation' AS kind, 0::bigint AS traversal, 'observe' AS queue,
        x.name AS label,
        0 AS retry_count, 0 AS lost_leases, x.stack_id, x.id AS resource_id, NULL::bigint AS definition_id,
        '{{}}'::text[] AS hooks, 0 AS unreachable_tries, false AS absent, NULL::jsonb AS refused_since,
        NULL::text AS refusal,
        NULL::timestamptz AS waiting_since, NULL::bigint[] AS needed_by, NULL::bigint[] AS early_needed_by,
        x.xmin::text::bigint AS version
    FROM resource x WHERE x.id = ANY(%(ids)s)) AS n
{VISIT_JOINS}"""


class Activity(NamedTuple):
    """The activity of the stacks of a project."""

    at_work: bool  # an action is in progress
    started: bool  # an action has started since, or there is no stack


class Watched(NamedTuple):
    """A resource at rest, with the id of its object."""

    id: int
    physical_id: str
    version: int
    type_name: str
    root_id: int


class Placed(NamedTuple):
    """A resource at rest, with its path in the stack that a request names."""

    item: Watched
    path: str


class VersionedVisit(NamedTuple):
    """A resource in the form of a visit, the version of its row, and whether its root stack has reached its
    desired revision.
    """

    visit: ResourceVisit
    version: int
    reached: bool


def types_in_use(db: Db, project_id: str) -> list[str]:
    """Return the names of the types of a project's resources."""
    return [row[0] for row in db.execute(TYPES, {"project_id": project_id}).fetchall()]


def activity(db: Db, project_id: str, since: dt.datetime | None) -> Activity:
    """Return the activity of a project since a time, None: since ever."""
    row = db.execute(ACTIVITY, {"project_id": project_id, "since": since}).fetchone()
    assert row is not None
    return Activity(*row)


def scan(db: Db, project_id: str, types: Collection[str]) -> Iterator[Watched]:
    """Yield the resources of these types that are at rest, from a single snapshot. Exhaust it before any
    provider is called.
    """
    values = {"project_id": project_id, "types": list(types), "after_id": 0}
    with db.transaction(), db.cursor("watched") as cursor:
        cursor.itersize = PAGE
        for row in cursor.execute(SCAN, values):
            yield Watched(*row)


def tree(db: Db, stack_id: int) -> list[Placed]:
    """Return the resources of a stack and its nested stacks that are at rest."""
    rows = db.execute(TREE_SCAN, {"stack_id": stack_id}).fetchall()
    return [Placed(Watched(*row[:-1]), row[-1]) for row in rows]


def following(db: Db, project_id: str, types: Collection[str], after_id: int, limit: int) -> list[Watched]:
    """Return the next resources of these types that are at rest, in the order of their ids."""
    values = {"project_id": project_id, "types": list(types), "after_id": after_id, "limit": limit}
    return [Watched(*row) for row in db.execute(FOLLOWING, values).fetchall()]


def named(db: Db, project_id: str, ids: Collection[str]) -> list[Watched]:
    """Return the resources at rest with these physical ids."""
    rows = db.execute(NAMED, {"project_id": project_id, "ids": list(ids)}).fetchall()
    return [Watched(*row) for row in rows]


def visits(db: Db, ids: Sequence[int]) -> list[VersionedVisit]:
    """Return these resources with all their values; those that are gone or damaged are left out."""
    try:
        rows = db.execute(VISITS, {"ids": list(ids)}).fetchall()
    except DataError as error:  # the statement cannot read one of them
        if len(ids) > 1:
            return [found for id_ in ids for found in visits(db, [id_])]
        log.error("row_damaged", kind="resource", id=ids[0], error=damage(error))
        return []
    return list(
        decoded(rows, lambda row: VersionedVisit(repository.resource_visit(row), *row[-2:]), "resource")
    )
