"""Writes of a traversal's rows: a slice is a transaction with three COPYs (docs/internals/protocol.md rule
6).

Every slice first locks the stack's row for share and checks the traversal, so that no slice is written after
a newer traversal began. It locks the plan's node too, so that no slice is written after another planner took
the plan over.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson
from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.plan_changes import Row
from orchestrator.errors import Superseded
from orchestrator.store.connections.database import CHECKS_NAME
from orchestrator.store.nodes.visit_sql import IS_CHECKING
from orchestrator.store.tables.base import IS_SUSPECT

Db = Connection[TupleRow]

LOCK_TRAVERSAL = """
SELECT 1 FROM stack
WHERE id = %(stack_id)s AND traversal = %(traversal)s AND halted_traversal IS DISTINCT FROM traversal
FOR SHARE
"""
LOCK_PLAN = (
    "SELECT 1 FROM graph_node WHERE id = %(id)s AND state = 'checking' AND lease = %(lease)s FOR SHARE"
)

FETCH_SIZE = 5_000  # rows per fetch of a server-side cursor
MAX_UNSTREAMED = 500  # rows; a smaller result is fetched in one round trip

COPY_DEFINITION = """
COPY resource_definition (id, stack_id, name, digest, body, requires, dep_attrs, valid_from) FROM STDIN
"""
CLOSE_DEFINITIONS = """
UPDATE resource_definition d SET valid_to = %(number)s
WHERE d.stack_id = %(stack_id)s AND d.valid_to IS NULL AND d.valid_from < %(number)s
    AND d.name = ANY(%(names)s)
"""
DEFINITIONS = """
SELECT name, id, digest, valid_from FROM resource_definition
WHERE stack_id = %(stack_id)s AND valid_to IS NULL
"""
ROWS = f"""
SELECT id, name, coalesce(runs_as, type), action, status, op, attempt, built_digest, requires, input_digests,
    value_digest, deposed, suspended, {IS_SUSPECT} OR released IS NOT NULL
FROM resource WHERE stack_id = %(stack_id)s
"""
MARK_DEPOSED = """
UPDATE resource r SET deposed = true, replaced_by = x.by
FROM unnest(%(ids)s::bigint[], %(replacements)s::bigint[]) AS x(id, by) WHERE r.id = ANY (ARRAY[x.id])
"""
RESTORE_DEPOSED = "UPDATE resource SET deposed = false, replaced_by = NULL WHERE id = ANY(%(ids)s)"
DROP_ROWS = """
DELETE FROM resource WHERE id = ANY(%(ids)s) AND action = 'INIT' AND attempt = 0 AND lease IS NULL
"""
COPY_RESOURCE = "COPY resource (id, uuid, stack_id, name, type, runs_as) FROM STDIN"
COPY_NODE = """
COPY graph_node (id, stack_id, root_id, traversal, kind, resource_id, definition_id, queue, label, needed_by,
    blocked_by, dirty, state, early_needed_by)
FROM STDIN
"""

OLDER_CHECKS = """
WITH now AS MATERIALIZED (SELECT coalesce(%(since)s::timestamptz, clock_timestamp()) AS since)
SELECT now.since, EXISTS (SELECT 1 FROM pg_stat_activity a
    WHERE a.datname = current_database() AND a.application_name = %(name)s AND a.pid <> pg_backend_pid()
        AND a.xact_start < now.since)
FROM now
"""
WRITTEN = """
SELECT label, id FROM graph_node
WHERE stack_id = %(stack_id)s AND traversal = %(traversal)s AND kind = %(kind)s
"""
CLEANUPS = """
SELECT resource_id::text, id FROM graph_node
WHERE stack_id = %(stack_id)s AND traversal = %(traversal)s AND kind = 'cleanup'
"""
HAS_WRITTEN_SLICES = """
SELECT EXISTS (SELECT 1 FROM graph_node WHERE stack_id = %(stack_id)s AND traversal = %(traversal)s
    AND kind IN ('update', 'cleanup', 'join') AND id > %(plan)s)
"""
HOLD_FINISH = "UPDATE graph_node SET blocked_by = %(blocked_by)s WHERE id = %(id)s AND state = 'blocked'"
FINISH = """
SELECT id FROM graph_node WHERE stack_id = %(stack_id)s AND traversal = %(traversal)s AND kind = 'finish'
"""

DROP_OLD_NODES = """
DELETE FROM graph_node WHERE id IN (
    SELECT id FROM graph_node
    WHERE stack_id = %(stack_id)s AND traversal < %(traversal)s AND state <> 'checking' LIMIT %(length)s
    FOR UPDATE SKIP LOCKED)  -- a late visit may be releasing them
"""


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A graph node to write."""

    id: int
    kind: str
    resource_id: int | None
    definition_id: int | None
    queue: str
    label: str
    needed_by: Sequence[int]
    blocked_by: int
    dirty: bool = True
    early_needed_by: Sequence[int] | None = None


@dataclass(frozen=True, slots=True)
class DefinitionRow:
    """A definition to write."""

    id: int
    name: str
    digest: bytes
    body: Any
    requires: Sequence[str]
    dep_attrs: dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class PlanTarget:
    """The traversal whose rows are written."""

    stack_id: int
    root_id: int
    traversal: int
    revision_number: int
    finish_id: int
    plan: tuple[int, int] | None = None  # the plan node and its lease


@contextmanager
def slice_of(db: Db, target: PlanTarget) -> Iterator[None]:
    """Run one slice in a transaction that excludes a newer traversal and another planner.

    Raises:
        Superseded: the traversal is over or has failed, or another planner has the plan.
    """
    values = {"stack_id": target.stack_id, "traversal": target.traversal}
    with db.transaction():
        if db.execute(LOCK_TRAVERSAL, values).fetchone() is None:
            raise Superseded(f"traversal {target.traversal} is over")
        if target.plan is not None:
            id_, lease = target.plan
            if db.execute(LOCK_PLAN, {"id": id_, "lease": lease}).fetchone() is None:
                raise Superseded("another planner took over")
        yield


def wait_for_older_checks(db: Db, seconds: float = 30.0) -> None:
    """Return when no worker runs a statement that began before this call.

    Such a statement may have read the previous traversal and be about to write. Later reads see its result.

    Raises:
        TimeoutError: a statement ran longer than `seconds`. The plan is resumed after its lease expires.
    """
    since, deadline = None, time.monotonic() + seconds
    while True:
        row = db.execute(OLDER_CHECKS, {"since": since, "name": CHECKS_NAME}).fetchone()
        assert row is not None
        since, there_are = row
        if not there_are:
            return
        if time.monotonic() > deadline:
            raise TimeoutError("a worker's statement is still running; see pg_stat_activity")
        time.sleep(0.002)


def finish_node(db: Db, stack_id: int, traversal: int) -> int:
    """Return the id of the traversal's finish node."""
    row = db.execute(FINISH, {"stack_id": stack_id, "traversal": traversal}).fetchone()
    if row is None:
        raise Superseded(f"traversal {traversal} is over")
    return int(row[0])


def written(db: Db, stack_id: int, traversal: int, kind: str) -> dict[str, int]:
    """Return the nodes that an interrupted plan wrote, by label."""
    values = {"stack_id": stack_id, "traversal": traversal, "kind": kind}
    return dict(db.execute(WRITTEN, values).fetchall())


def cleanups(db: Db, stack_id: int, traversal: int) -> dict[str, int]:
    """Return the cleanup nodes that an interrupted plan wrote, by the text of the resource's id."""
    return dict(db.execute(CLEANUPS, {"stack_id": stack_id, "traversal": traversal}).fetchall())


def has_written_slices(db: Db, stack_id: int, traversal: int, plan: int) -> bool:
    """Whether an interrupted run of this plan wrote nodes; their ids are above the plan node's."""
    values = {"stack_id": stack_id, "traversal": traversal, "plan": plan}
    row = db.execute(HAS_WRITTEN_SLICES, values).fetchone()
    return row is not None and row[0]


def new_ids(db: Db, table: str, count: int) -> list[int]:
    """Return new ids for a table."""
    query = (
        "SELECT nextval((SELECT pg_get_serial_sequence(%(table)s, 'id'))) FROM generate_series(1, %(count)s)"
    )
    return [row[0] for row in db.execute(query, {"table": table, "count": count}).fetchall()]


def hold_finish(db: Db, target: PlanTarget, feeders: int) -> None:
    """Let the finish node wait for the plan and for `feeders` nodes."""
    db.execute(HOLD_FINISH, {"blocked_by": feeders + 1, "id": target.finish_id})


def copy_definitions(db: Db, target: PlanTarget, rows: Iterable[DefinitionRow]) -> None:
    """Write definitions that are valid from the target's revision."""
    with db.cursor() as cursor, cursor.copy(COPY_DEFINITION) as copy:
        for row in rows:
            copy.write_row(
                (
                    row.id,
                    target.stack_id,
                    row.name,
                    row.digest,
                    orjson.dumps(row.body).decode(),
                    list(row.requires),
                    orjson.dumps(row.dep_attrs).decode(),
                    target.revision_number,
                )
            )


def copy_resources(db: Db, target: PlanTarget, rows: Iterable[tuple[int, str, str, str | None]]) -> None:
    """Write new resources: (id, name, type as written, type that runs it if different)."""
    with db.cursor() as cursor, cursor.copy(COPY_RESOURCE) as copy:
        for id_, name, type_, runs_as in rows:
            copy.write_row((id_, str(uuid.uuid4()), target.stack_id, name, type_, runs_as))


def copy_nodes(db: Db, target: PlanTarget, rows: Iterable[NodeRow]) -> None:
    """Write nodes; those without blockers are queued at once."""
    with db.cursor() as cursor, cursor.copy(COPY_NODE) as copy:
        for row in rows:
            copy.write_row(
                (
                    row.id,
                    target.stack_id,
                    target.root_id,
                    target.traversal,
                    row.kind,
                    row.resource_id,
                    row.definition_id,
                    row.queue,
                    row.label,
                    _array(row.needed_by),
                    row.blocked_by,
                    row.dirty,
                    "blocked" if row.blocked_by else "queued",
                    None if row.early_needed_by is None else _array(row.early_needed_by),
                )
            )


def _array(ids: Sequence[int]) -> str:
    return "{" + ",".join(map(str, ids)) + "}"


def rows(db: Db, stack_id: int) -> list[Row]:
    """Return all resource rows of a stack, oldest first."""
    return _rows(db, ROWS, {"stack_id": stack_id})


def _rows(db: Db, query: str, values: Mapping[str, int]) -> list[Row]:
    """Return resource rows, oldest first.

    Equal values share an object, for a stack may have a million rows.
    """
    said: dict[object, Any] = {}

    def once(value: object) -> Any:
        return said.setdefault(value, value)

    result = []
    for row in _streamed(db, query, values):
        id_, name, type_name, action, status, op, attempt, built, requires, digests, value, *rest = row
        inputs = tuple([once(digest) for digest in digests])
        labels = once(type_name), once(action), once(status), once(op)
        result.append(Row(id_, name, *labels, attempt, built, tuple(requires), inputs, once(value), *rest))
    result.sort(key=_by_id)
    return result


def _by_id(row: Row) -> int:
    return row.id


def _streamed(db: Db, query: str, values: Mapping[str, int]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query without holding all of them; a small result takes one round trip."""
    few = db.execute(f"{query} LIMIT {MAX_UNSTREAMED}", values).fetchall()
    if len(few) < MAX_UNSTREAMED:
        yield from few
        return
    with db.transaction(), db.cursor(name="streamed") as cursor:
        cursor.itersize = FETCH_SIZE
        yield from cursor.execute(query, values)


CLEANUP_PLAN_LABEL = "removals"  # label of the plan node of a traversal's second plan (operations/adr/0002)

UNPLANNED_DEPOSED = f"""
{ROWS.strip()} AND deposed AND NOT EXISTS (
    SELECT 1 FROM graph_node n WHERE n.stack_id = resource.stack_id AND n.traversal = %(traversal)s
        AND n.kind = 'cleanup' AND n.resource_id = resource.id)
"""
COUNT_UNPLANNED_DEPOSED = f"SELECT count(*) FROM ({UNPLANNED_DEPOSED} LIMIT %(limit)s) AS found"
PLAN_REMOVALS = f"""
WITH held AS (
    UPDATE graph_node
    SET state = 'blocked', blocked_by = 1, lease = NULL, leased_until = NULL, enqueued_at = NULL
    WHERE id = %(finish)s AND {IS_CHECKING} AND lease = %(lease)s
    RETURNING id, stack_id, root_id, traversal
)
INSERT INTO graph_node
    (stack_id, root_id, traversal, kind, queue, label, needed_by, state, enqueued_at, lease, leased_until)
SELECT stack_id, root_id, traversal, 'plan', 'bulk', %(label)s, ARRAY[id], 'checking', now(), %(lease)s,
    clock_timestamp() + make_interval(secs => %(seconds)s)
FROM held RETURNING id
"""


def unplanned_deposed(db: Db, stack_id: int, traversal: int) -> list[Row]:
    """Return the deposed rows that this traversal does not clean up yet, oldest first."""
    return _rows(db, UNPLANNED_DEPOSED, {"stack_id": stack_id, "traversal": traversal})


def count_unplanned_deposed(db: Db, stack_id: int, traversal: int, limit: int) -> int:
    """Return the number of these rows, at most `limit`."""
    values = {"stack_id": stack_id, "traversal": traversal, "limit": limit}
    row = db.execute(COUNT_UNPLANNED_DEPOSED, values).fetchone()
    assert row is not None
    return int(row[0])


def plan_removals(db: Db, target: PlanTarget, lease: int, seconds: float) -> int | None:
    """Let a claimed finish node wait for a new plan node, which takes its lease over for `seconds`. Return
    that node's id, None when the finish node's lease is lost.

    Raises:
        Superseded: the traversal is over.
    """
    values = {"finish": target.finish_id, "lease": lease, "seconds": seconds, "label": CLEANUP_PLAN_LABEL}
    with slice_of(db, target):
        row = db.execute(PLAN_REMOVALS, values).fetchone()
    return None if row is None else row[0]


def definitions(db: Db, stack_id: int) -> dict[str, tuple[int, bytes, int]]:
    """Return the definitions in force by name: id, digest and first revision."""
    return {
        name: (id_, digest, since)
        for name, id_, digest, since in _streamed(db, DEFINITIONS, {"stack_id": stack_id})
    }


def close_definitions(db: Db, target: PlanTarget, names: Sequence[str]) -> None:
    """End the validity of definitions that the target's revision changes or removes."""
    number = target.revision_number
    db.execute(CLOSE_DEFINITIONS, {"number": number, "stack_id": target.stack_id, "names": list(names)})


def mark_deposed(db: Db, replaced: Mapping[int, int | None]) -> None:
    """Mark rows deposed; `replaced` has the id of each row's replacement, if it has any."""
    ids = list(replaced)
    db.execute(MARK_DEPOSED, {"ids": ids, "replacements": [replaced[id_] for id_ in ids]})


def restore_deposed(db: Db, ids: Sequence[int]) -> None:
    """Make deposed rows current again."""
    db.execute(RESTORE_DEPOSED, {"ids": list(ids)})


def drop_rows(db: Db, ids: Sequence[int]) -> None:
    """Delete rows whose resources were never created."""
    db.execute(DROP_ROWS, {"ids": list(ids)})


def drop_old_nodes(db: Db, stack_id: int, traversal: int, length: int, at_most: int | None = None) -> None:
    """Delete the nodes of earlier traversals in slices, or `at_most` so many. Nodes being checked are left to
    the next plan.
    """
    values = {"stack_id": stack_id, "traversal": traversal, "length": at_most or length}
    while db.execute(DROP_OLD_NODES, values).rowcount == length and at_most is None:
        pass
