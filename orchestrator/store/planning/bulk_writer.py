"""Writing a traversal's rows: one slice, one transaction, three COPYs (docs/internals/protocol.md rule 6).

Every slice first takes the stack's row for share and checks the traversal, so that none lands after a newer
one began; and the plan node's, so that none lands after another planner took over.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, overload

import orjson
from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.plan_changes import Row
from orchestrator.errors import Superseded
from orchestrator.store.connections.database import CHECKS

Db = Connection[TupleRow]

STILL_OURS = """
SELECT 1 FROM stack WHERE id = %s AND traversal = %s AND halted_traversal IS DISTINCT FROM traversal FOR SHARE
"""
STILL_HELD = "SELECT 1 FROM graph_node WHERE id = %s AND state = 'checking' AND lease = %s FOR SHARE"

STREAMED = 5_000  # rows that come at a time
FEW = 500  # rows, below which all come at once

COPY_DEFINITION = """
COPY resource_definition (id, stack_id, name, digest, body, requires, dep_attrs, valid_from) FROM STDIN
"""
CLOSE_DEFINITIONS = """
UPDATE resource_definition d SET valid_to = %s
WHERE d.stack_id = %s AND d.valid_to IS NULL AND d.valid_from < %s AND d.name = ANY(%s)
"""
DEFINITIONS = (
    "SELECT name, id, digest, valid_from FROM resource_definition WHERE stack_id = %s AND valid_to IS NULL"
)
ROWS = """
SELECT id, name, coalesce(runs_as, type), action, status, op, attempt, built_digest, requires, input_digests,
    value_digest, leftover, suspended
FROM resource WHERE stack_id = %s
"""
LEAVE_FOR = """
UPDATE resource r SET leftover = true, replaced_by = x.by
FROM unnest(%s::bigint[], %s::bigint[]) AS x(id, by) WHERE r.id = ANY (ARRAY[x.id])
"""
TAKE_BACK = "UPDATE resource SET leftover = false, replaced_by = NULL WHERE id = ANY(%s)"
DROP_ROWS = """
DELETE FROM resource WHERE id = ANY(%s) AND action = 'INIT' AND attempt = 0 AND lease IS NULL
"""
COPY_RESOURCE = "COPY resource (id, uuid, stack_id, name, type, runs_as) FROM STDIN"
COPY_NODE = """
COPY graph_node (id, stack_id, root_id, traversal, kind, resource_id, definition_id, queue, label, needed_by,
    blocked_by, dirty, state)
FROM STDIN
"""

OLDER_CHECKS = """
WITH now AS MATERIALIZED (SELECT coalesce(%(since)s::timestamptz, clock_timestamp()) AS since)
SELECT now.since, EXISTS (SELECT 1 FROM pg_stat_activity a
    WHERE a.datname = current_database() AND a.application_name = %(name)s AND a.pid <> pg_backend_pid()
        AND a.xact_start < now.since)
FROM now
"""
WRITTEN = "SELECT label, id FROM graph_node WHERE stack_id = %s AND traversal = %s AND kind = %s"
CLEANUPS = """
SELECT resource_id::text, id FROM graph_node WHERE stack_id = %s AND traversal = %s AND kind = 'cleanup'
"""
BEGUN = """
SELECT EXISTS (SELECT 1 FROM graph_node WHERE stack_id = %s AND traversal = %s
    AND kind IN ('update', 'cleanup', 'join') AND id > %s)
"""
HOLD_FINISH = "UPDATE graph_node SET blocked_by = %s WHERE id = %s AND state = 'blocked'"
FINISH = "SELECT id FROM graph_node WHERE stack_id = %s AND traversal = %s AND kind = 'finish'"

DROP_OLD_NODES = """
DELETE FROM graph_node WHERE id IN (
    SELECT id FROM graph_node WHERE stack_id = %s AND traversal < %s AND state <> 'checking' LIMIT %s
    FOR UPDATE SKIP LOCKED)  -- a late visit may be releasing them
"""


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A graph node as planned."""

    id: int
    kind: str
    resource_id: int | None
    definition_id: int | None
    queue: str
    label: str
    needed_by: Sequence[int]
    blocked_by: int
    dirty: bool = True


@dataclass(frozen=True, slots=True)
class DefinitionRow:
    """A resource's snippet as planned."""

    id: int
    name: str
    digest: bytes
    body: Any
    requires: Sequence[str]
    dep_attrs: dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class PlanTarget:
    """Whose rows are written."""

    stack_id: int
    root_id: int
    traversal: int
    revision_number: int
    finish_id: int
    plan: tuple[int, int] | None = None  # the plan node and the lease it is held by


@contextmanager
def slice_of(db: Db, target: PlanTarget) -> Iterator[None]:
    """Run one slice in a transaction during which no newer traversal begins, and nobody takes the plan over.

    Raises:
        Superseded: the traversal is no longer the stack's, or has failed, or the plan is another's by now.
    """
    with db.transaction():
        if db.execute(STILL_OURS, (target.stack_id, target.traversal)).fetchone() is None:
            raise Superseded(f"traversal {target.traversal} is over")
        if target.plan is not None and db.execute(STILL_HELD, target.plan).fetchone() is None:
            raise Superseded("another planner took over")
        yield


def wait_for_older_checks(db: Db, seconds: float = 30.0) -> None:
    """Return once no worker runs a statement that began before now.

    One that did may have read the traversal before ours and be about to write; what is read after this has
    it.

    Raises:
        TimeoutError: one ran on for `seconds`. The plan is taken up again when its lease has run out.
    """
    since, deadline = None, time.monotonic() + seconds
    while True:
        row = db.execute(OLDER_CHECKS, {"since": since, "name": CHECKS}).fetchone()
        assert row is not None
        since, there_are = row
        if not there_are:
            return
        if time.monotonic() > deadline:
            raise TimeoutError("a worker's statement runs on; see pg_stat_activity")
        time.sleep(0.002)


def finish_node(db: Db, stack_id: int, traversal: int) -> int:
    """Return the id of the traversal's finish node."""
    row = db.execute(FINISH, (stack_id, traversal)).fetchone()
    if row is None:
        raise Superseded(f"traversal {traversal} is over")
    return int(row[0])


def written(db: Db, stack_id: int, traversal: int, kind: str) -> dict[str, int]:
    """Return the nodes an earlier, interrupted plan wrote: label to id."""
    return dict(db.execute(WRITTEN, (stack_id, traversal, kind)).fetchall())


def cleanups(db: Db, stack_id: int, traversal: int) -> dict[str, int]:
    """Return the cleanup nodes an interrupted plan wrote: resource id, as text, to node id."""
    return dict(db.execute(CLEANUPS, (stack_id, traversal)).fetchall())


def has_written_slices(db: Db, stack_id: int, traversal: int, plan: int) -> bool:
    """Whether the plan of this node, interrupted, has written nodes: those of a plan come after its own."""
    row = db.execute(BEGUN, (stack_id, traversal, plan)).fetchone()
    return row is not None and row[0]


def new_ids(db: Db, table: str, count: int) -> list[int]:
    """Return fresh ids of a table."""
    query = "SELECT nextval((SELECT pg_get_serial_sequence(%s, 'id'))) FROM generate_series(1, %s)"
    return [row[0] for row in db.execute(query, (table, count)).fetchall()]


def hold_finish(db: Db, target: PlanTarget, feeders: int) -> None:
    """Let the finish node wait for `feeders` nodes besides the plan."""
    db.execute(HOLD_FINISH, (feeders + 1, target.finish_id))


def copy_definitions(db: Db, target: PlanTarget, rows: Iterable[DefinitionRow]) -> None:
    """Write definitions, valid from the target's revision on."""
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
    """Write new resources: (id, name, type as written, the type it runs as where that is another)."""
    with db.cursor() as cursor, cursor.copy(COPY_RESOURCE) as copy:
        for id_, name, type_, runs_as in rows:
            copy.write_row((id_, str(uuid.uuid4()), target.stack_id, name, type_, runs_as))


ADOPTED = "SELECT adopted FROM revision WHERE id = %s"
PENDING = """
SELECT id, number, adopted FROM revision WHERE stack_id = %s AND adopted IS NOT NULL ORDER BY number LIMIT 1
"""
PLANNED = "UPDATE revision SET adopted = NULL WHERE stack_id = %s AND adopted IS NOT NULL"
TAKE_OVER = """
UPDATE resource r SET physical_id = x.physical_id, sealed = x.sealed, definition_id = x.definition_id
FROM unnest(%s::bigint[], %s::text[], %s::bytea[], %s::bigint[]) AS x(id, physical_id, sealed, definition_id)
WHERE r.id = x.id
"""


def adopted(db: Db, revision_id: int) -> bytes | None:
    """Return what an adopted stack took over, encrypted."""
    row = db.execute(ADOPTED, (revision_id,)).fetchone()
    return None if row is None else row[0]


def pending_adoption(db: Db, stack_id: int) -> tuple[int, int, bytes] | None:
    """Return what an adoption whose plan never came to its end is to take over: its revision, that one's
    number, and the things, encrypted; None when there is no such.
    """
    return db.execute(PENDING, (stack_id,)).fetchone()


def adoption_is_planned(db: Db, stack_id: int) -> None:
    """Forget what was to be taken over: it is told to the rows that are to be it."""
    db.execute(PLANNED, (stack_id,))


def take_over(db: Db, rows: Sequence[tuple[int, str | None, bytes, int]]) -> None:
    """Write of new resources what is there of them: (id, physical id, data and metadata, definition)."""
    if rows:
        db.execute(TAKE_OVER, tuple(list(column) for column in zip(*rows, strict=True)))


def copy_nodes(db: Db, target: PlanTarget, rows: Iterable[NodeRow]) -> None:
    """Write nodes; those nothing holds back are queued from the start."""
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
                    "{" + ",".join(map(str, row.needed_by)) + "}",
                    row.blocked_by,
                    row.dirty,
                    "blocked" if row.blocked_by else "queued",
                )
            )


def rows(db: Db, stack_id: int) -> list[Row]:
    """Return every resource row of a stack, oldest first."""
    return _rows(db, ROWS, (stack_id,))


def _rows(db: Db, query: str, values: tuple[int, ...]) -> list[Row]:
    """Return resource rows, oldest first.

    What many rows say is kept once: there may be a million.
    """
    said: dict[object, Any] = {}

    def once(value: Any) -> Any:
        return said.setdefault(value, value)

    found = []
    for id_, name, kind, action, status, op, attempt, built, requires, digests, value, *rest in _streamed(
        db, query, values
    ):
        inputs = tuple([once(digest) for digest in digests])
        words = once(kind), once(action), once(status), once(op)
        found.append(Row(id_, name, *words, attempt, built, tuple(requires), inputs, once(value), *rest))
    found.sort(key=_by_id)
    return found


def _by_id(row: Row) -> int:
    return row.id


def _streamed(db: Db, query: str, values: tuple[int, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query without holding all of them at once: few come in one round trip."""
    few = db.execute(f"{query} LIMIT {FEW}", values).fetchall()
    if len(few) < FEW:
        yield from few
        return
    with db.transaction(), db.cursor(name="streamed") as cursor:
        cursor.itersize = STREAMED
        yield from cursor.execute(query, values)


CLEANUP_PLAN_LABEL = (
    "removals"  # the label of the plan node of a traversal's second plan (operations/adr/0002)
)

LEFTOVERS = f"""
{ROWS.strip()} AND leftover AND NOT EXISTS (
    SELECT 1 FROM graph_node n WHERE n.stack_id = resource.stack_id AND n.traversal = %s
        AND n.kind = 'cleanup' AND n.resource_id = resource.id)
"""
LEFTOVERS_UP_TO = f"SELECT count(*) FROM ({LEFTOVERS} LIMIT %s) AS found"
PLAN_REMOVALS = """
WITH held AS (
    UPDATE graph_node SET state = 'blocked', blocked_by = 1, lease = NULL, leased_until = NULL, rung_at = NULL
    WHERE id = %(finish)s AND state IN ('checking', '') AND lease = %(lease)s
    RETURNING id, stack_id, root_id, traversal
)
INSERT INTO graph_node
    (stack_id, root_id, traversal, kind, queue, label, needed_by, state, rung_at, lease, leased_until)
SELECT stack_id, root_id, traversal, 'plan', 'bulk', %(label)s, ARRAY[id], 'checking', now(), %(lease)s,
    clock_timestamp() + make_interval(secs => %(seconds)s)
FROM held RETURNING id
"""


def leftovers(db: Db, stack_id: int, traversal: int) -> list[Row]:
    """Return the rows that no template has and that this traversal does not clean up yet, oldest first."""
    return _rows(db, LEFTOVERS, (stack_id, traversal))


def count_leftovers(db: Db, stack_id: int, traversal: int, limit: int) -> int:
    """Return how many such rows there are, `limit` at most."""
    row = db.execute(LEFTOVERS_UP_TO, (stack_id, traversal, limit)).fetchone()
    assert row is not None
    return int(row[0])


def plan_removals(db: Db, target: PlanTarget, lease: int, seconds: float) -> int | None:
    """Let a claimed finish node wait for a plan node, which takes its lease over for `seconds`; return that
    node's id, None when the finish node is no longer ours.

    Raises:
        Superseded: the traversal is over.
    """
    values = {"finish": target.finish_id, "lease": lease, "seconds": seconds, "label": CLEANUP_PLAN_LABEL}
    with slice_of(db, target):
        row = db.execute(PLAN_REMOVALS, values).fetchone()
    return None if row is None else row[0]


def definitions(db: Db, stack_id: int) -> dict[str, tuple[int, bytes, int]]:
    """Return the definitions in force: name to id, digest and the revision they came with."""
    return {
        name: (id_, digest, since) for name, id_, digest, since in _streamed(db, DEFINITIONS, (stack_id,))
    }


def close_definitions(db: Db, target: PlanTarget, names: Sequence[str]) -> None:
    """End the definitions that the target's revision changes or no longer has."""
    number = target.revision_number
    db.execute(CLOSE_DEFINITIONS, (number, target.stack_id, number, list(names)))


def mark_deposed(db: Db, replaced: Mapping[int, int | None]) -> None:
    """Let rows be leftovers, each for the row that takes its place, if one does."""
    ids = list(replaced)
    db.execute(LEAVE_FOR, (ids, [replaced[id_] for id_ in ids]))


def restore_deposed(db: Db, ids: Sequence[int]) -> None:
    """Let leftovers be what the template has again."""
    db.execute(TAKE_BACK, (list(ids),))


def drop_rows(db: Db, ids: Sequence[int]) -> None:
    """Remove rows of what nobody ever began to make."""
    db.execute(DROP_ROWS, (list(ids),))


def drop_old_nodes(db: Db, stack_id: int, traversal: int, length: int) -> None:
    """Remove, in slices, what earlier traversals left, but what somebody is at: the next plan finds it."""
    while db.execute(DROP_OLD_NODES, (stack_id, traversal, length)).rowcount == length:
        pass


@dataclass(frozen=True, slots=True)
class RevisionTexts:
    """What a plan is made from."""

    environment: Mapping[str, Any]
    files: Mapping[str, str]  # name -> the hash of its text, in hexadecimal
    template_hash: str
    length: int  # of the template, in bytes


REVISION = """
SELECT v.environment, v.files, encode(v.template_hash, 'hex'), length(c.body)
FROM revision v JOIN content c ON c.hash = v.template_hash WHERE v.id = %s
"""


def revision(db: Db, revision_id: int) -> RevisionTexts:
    """Return a revision's environment, the hashes of its files and its template's."""
    row = db.execute(REVISION, (revision_id,)).fetchone()
    assert row is not None
    return RevisionTexts(row[0] or {}, row[1] or {}, row[2], row[3])


@overload
def template_text(db: Db, revision_id: int) -> bytes: ...
@overload
def template_text(db: Db, revision_id: int, at_most: int) -> bytes | None: ...
def template_text(db: Db, revision_id: int, at_most: int | None = None) -> bytes | None:
    """Return a revision's template as stored: JSON text; None if it has more than `at_most` bytes."""
    query = (
        "SELECT CASE WHEN %s::int IS NULL OR length(c.body) <= %s THEN c.body END"
        " FROM revision r JOIN content c ON c.hash = r.template_hash WHERE r.id = %s"
    )
    row = db.execute(query, (at_most, at_most, revision_id)).fetchone()
    assert row is not None
    return None if row[0] is None else bytes(row[0])
