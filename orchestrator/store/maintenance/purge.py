"""The purge in SQL: which rows of a target may be deleted, their number, and the deletion of a slice.

Every statement may run concurrently with checks, plans, requests and itself. It locks the rows with SKIP
LOCKED, so it waits for no other transaction, and it selects and deletes in a single snapshot or selects again
under the lock. Each of `PARTS` is a SELECT of the keys that may be deleted, within the stacks %(stacks)s.
%(going)s are revisions to be treated as deleted: a dry run only counts them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.states import STATES_VISITED
from orchestrator.store.tables.base import check_in

Db = Connection[TupleRow]
Values = Mapping[str, Any]

BEFORE = "now() - make_interval(secs => %({0})s::float8)"

# A stack without a running traversal, and without a running visit of an ended traversal.
STACK_IDLE = f"""s.status <> 'IN_PROGRESS' AND NOT EXISTS (
        SELECT 1 FROM graph_node w WHERE w.stack_id = s.id AND {check_in("w.state", STATES_VISITED)})"""


@dataclass(frozen=True, slots=True)
class PurgeTarget:
    """Rows `x` of a table that may be deleted; `probe` finds cheaply the stacks that may have many."""

    name: str
    table: str
    which: str
    probe: str | None = None
    scope: str = "true"  # condition on the first columns of the primary key

    @property
    def count(self) -> str:
        """The statement that counts the rows."""
        return f"SELECT count(*) FROM ({self.which}) AS may_go"

    @property
    def remove(self) -> str:
        """The statement that deletes %(limit)s rows."""
        return f"""
DELETE FROM {self.table} WHERE {self.scope} AND id = ANY(ARRAY(
    {self.which} LIMIT %(limit)s FOR UPDATE OF x SKIP LOCKED))"""


# Finished visits of idle stacks. Of a failed stack the unfinished nodes of the last traversal are kept, for
# diagnosis. The snapshot of this statement has no rows of a traversal that starts now.
NODES: Final = PurgeTarget(
    "nodes",
    "graph_node",
    f"""SELECT x.id FROM stack s JOIN graph_node x ON x.stack_id = s.id
    WHERE s.id = ANY(%(stacks)s) AND s.status <> 'IN_PROGRESS'
        AND s.action_started_at < {BEFORE.format("nodes")}
        AND x.traversal <= s.traversal AND x.state <> 'checking'
        AND (s.status = 'COMPLETE' OR x.state IN ('ready', 'dropped') OR x.traversal < s.traversal)""",
    probe=f"""SELECT s.id FROM stack s
    WHERE s.id = ANY(%(stacks)s) AND s.status <> 'IN_PROGRESS'
        AND s.action_started_at < {BEFORE.format("nodes")}
        AND EXISTS (SELECT 1 FROM graph_node n WHERE n.stack_id = s.id)""",
)

# Events by age. Kept are the final events of a stack's last action, all events of an action in progress, and
# always the newest event. The first event of an action is deleted with the rest: while it exists, all of them
# do. Ids grow with time, so only the first few are read: nothing is walked where nothing is old.
EVENTS: Final = PurgeTarget(
    "events",
    "event",
    f"""SELECT x.id FROM stack s CROSS JOIN LATERAL (
        SELECT e.id, e.created_at, e.physical_id, e.status FROM event e WHERE e.stack_id = s.id ORDER BY e.id
        LIMIT %(first)s) AS f
    JOIN event x ON x.stack_id = s.id AND x.id = f.id
    WHERE s.id = ANY(%(stacks)s) AND f.created_at < {BEFORE.format("events")}
        AND (f.created_at < s.action_started_at
            OR s.status <> 'IN_PROGRESS'
            AND (f.physical_id IS DISTINCT FROM s.uuid::text OR f.status = 'IN_PROGRESS'))
        AND f.id < (
            SELECT e.id FROM event e WHERE e.stack_id = s.id ORDER BY e.stack_id DESC, e.id DESC LIMIT 1)""",
    probe=f"""SELECT s.id FROM stack s
    WHERE s.id = ANY(%(stacks)s) AND {BEFORE.format("events")} > (
        SELECT e.created_at FROM event e WHERE e.stack_id = s.id ORDER BY e.id LIMIT 1)""",
    scope="stack_id = ANY(%(stacks)s)",
)

FAILURES: Final = PurgeTarget(
    "failures",
    "failure",
    f"""SELECT x.id FROM stack s JOIN failure x ON x.stack_id = s.id AND x.traversal < s.traversal
    WHERE s.id = ANY(%(stacks)s) AND x.created_at < {BEFORE.format("events")}""",
    scope="stack_id = ANY(%(stacks)s)",
)

# Never the desired revision, which is the revision in progress, nor the last good revision, nor that of a
# snapshot.
REVISIONS: Final = PurgeTarget(
    "revisions",
    "revision",
    f"""SELECT x.id FROM stack s JOIN revision x ON x.stack_id = s.id
    WHERE s.id = ANY(%(stacks)s) AND {STACK_IDLE} AND x.created_at < {BEFORE.format("revisions")}
        AND x.number <= (SELECT max(v.number) FROM revision v WHERE v.stack_id = s.id) - %(kept)s
        AND x.id IS DISTINCT FROM s.revision_id AND x.id IS DISTINCT FROM s.good_revision_id
        AND NOT EXISTS (SELECT 1 FROM snapshot p WHERE p.revision_id = x.id)""",
    probe="""SELECT v.stack_id FROM stack s CROSS JOIN LATERAL (
        SELECT r.stack_id FROM revision r WHERE r.stack_id = s.id ORDER BY r.number DESC
        OFFSET %(kept)s LIMIT 1) AS v WHERE s.id = ANY(%(stacks)s)""",
)

# Definitions of deleted revisions, unless a resource was built from them: its deletion and its comparison
# need the definition. The visits of a traversal use the desired revision's.
DEFINITIONS: Final = PurgeTarget(
    "definitions",
    "resource_definition",
    f"""SELECT x.id FROM stack s JOIN resource_definition x ON x.stack_id = s.id
    WHERE s.id = ANY(%(stacks)s) AND {STACK_IDLE} AND x.valid_to IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM revision v WHERE v.stack_id = x.stack_id
            AND v.number >= x.valid_from AND v.number < x.valid_to AND v.id <> ALL(%(going)s))
        AND NOT EXISTS (SELECT 1 FROM resource r WHERE r.stack_id = x.stack_id AND r.name = x.name
            AND r.definition_id = x.id)""",
    probe="""SELECT s.id FROM stack s WHERE s.id = ANY(%(stacks)s) AND EXISTS (
        SELECT 1 FROM resource_definition d WHERE d.stack_id = s.id AND d.valid_to IS NOT NULL)""",
)

# Per stack, in this order: revisions before their definitions, and both before the contents.
PARTS: Final = (NODES, EVENTS, FAILURES, REVISIONS, DEFINITIONS)

ORPHANS: Final = PurgeTarget(
    "orphans", "orphan", f"SELECT x.id FROM orphan x WHERE x.handled_at < {BEFORE.format('events')}"
)
AUDIT_RECORDS: Final = PurgeTarget(
    "audit records",
    "audit_record",
    f"SELECT x.id FROM audit_record x WHERE x.created_at < {BEFORE.format('audit')}",
)
ENDED_SESSIONS: Final = PurgeTarget(
    "ended sessions",
    "ended_session",
    f"SELECT x.id FROM ended_session x WHERE x.ends_at < {BEFORE.format('ended')}",
)
VERDICTS: Final = PurgeTarget(
    "verdicts",
    "verdict_history",
    f"SELECT x.id FROM verdict_history x WHERE x.ended_at < {BEFORE.format('events')}",
)
RULES: Final = PurgeTarget(
    "observation rules",
    "observation_rule",
    f"""SELECT x.id FROM observation_rule x WHERE x.ended_at < {BEFORE.format("events")}
        OR x.repeats = '' AND x.ends_at < {BEFORE.format("events")}""",
)
REPAIRS: Final = PurgeTarget(
    "repairs",
    "repair",
    f"""SELECT x.id FROM repair x WHERE x.created_at < {BEFORE.format("events")} AND x.status <> 'started'
        AND NOT EXISTS (SELECT 1 FROM resource_verdict v WHERE v.id = x.fault_id)""",
)
ALONE: Final = (ORPHANS, AUDIT_RECORDS, ENDED_SESSIONS, VERDICTS, RULES, REPAIRS)

# Tables with rows of a deleted stack. Deleting the stack's row cascades to its revisions and snapshots.
TABLES_OF_DELETED: Final = (
    "graph_node",
    "event",
    "failure",
    "signal",
    "access",
    "watcher",
    "progress",
    "stale_child",
    "observation",
    "observation_pass",
    "resource_verdict",
    "verdict_history",
    "observation_rule",
    "repair",
    "resource_definition",
    "resource",
)

DELETED = f"""
SELECT s.id FROM stack s WHERE s.deleted_at < {BEFORE.format("deleted")}
    AND NOT EXISTS (SELECT 1 FROM stack c WHERE c.owner_id = s.id)
    AND NOT EXISTS (  -- with resource snapshots still to be deleted
        SELECT 1 FROM snapshot p WHERE p.stack_id = s.id AND p.action = 'DELETE')
ORDER BY s.deleted_at LIMIT %(limit)s
"""
REVISIONS_OF_STACKS = "SELECT id FROM revision WHERE stack_id = ANY(%(stacks)s)"
DELETE_STACK = "DELETE FROM stack WHERE id = %(stack_id)s AND deleted_at IS NOT NULL"
STACKS = "SELECT id FROM stack WHERE id > %(after)s ORDER BY id LIMIT %(limit)s"
CONTENTS = "SELECT hash FROM content WHERE hash > %(after)s ORDER BY hash LIMIT %(limit)s"

# Contents that no revision refers to. A new content may be referred to by a request that is not committed
# yet: such a request locks the row, and locked rows are skipped here and checked again later.
FILE_HASHES: Final = "jsonb_path_query_array(r.files, '$.*')"
UNREFERENCED = f"""
SELECT c.hash FROM content c WHERE c.hash = ANY(%(hashes)s)
    AND NOT EXISTS (SELECT 1 FROM revision r WHERE r.template_hash = c.hash AND r.id <> ALL(%(going)s))
    AND (SELECT r.id FROM revision r  -- not EXISTS, which would become a join of all rows with all rows
        WHERE {FILE_HASHES} ? encode(c.hash, 'hex') AND r.id <> ALL(%(going)s)
        LIMIT 1) IS NULL
"""
USE_FILE_INDEX = "SET LOCAL enable_bitmapscan = on"  # it is off on hot connections, and GIN needs it
LOCK_CONTENTS = "SELECT hash FROM content WHERE hash = ANY(%(hashes)s) FOR UPDATE SKIP LOCKED"
DELETE_CONTENTS = f"DELETE FROM content WHERE hash = ANY(ARRAY({UNREFERENCED}))"

# The texts among these that a project has no revision with any more.
RELEASED: Final = f"""
SELECT c.project_id, c.hash FROM project_content c WHERE c.hash = ANY(%(hashes)s)
    AND (SELECT r.id FROM revision r JOIN stack s ON s.id = r.stack_id
        WHERE r.template_hash = c.hash AND s.project_id = c.project_id LIMIT 1) IS NULL
    AND (SELECT r.id FROM revision r JOIN stack s ON s.id = r.stack_id
        WHERE {FILE_HASHES} ? encode(c.hash, 'hex') AND s.project_id = c.project_id LIMIT 1) IS NULL
"""
DELETE_RELEASED: Final = f"""
DELETE FROM project_content p USING ({RELEASED}) AS released
WHERE p.project_id = released.project_id AND p.hash = released.hash
"""


def remove(db: Db, part: PurgeTarget, values: Values) -> int:
    """Delete a slice of a target; return the number of rows."""
    return db.execute(part.remove, values).rowcount


def count(db: Db, part: PurgeTarget, values: Values) -> int:
    """Return the number of rows of a target."""
    row = db.execute(part.count, values).fetchone()
    assert row is not None
    return int(row[0])


def ids(db: Db, query: str, values: Values) -> list[Any]:
    """Return the first column of a query."""
    return [row[0] for row in db.execute(query, values).fetchall()]


def remove_of_deleted(db: Db, table: str, stack_id: int, limit: int) -> int:
    """Delete a slice of the rows of a deleted stack in a table of LEFT."""
    query = f"""
DELETE FROM {table} WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM {table} WHERE stack_id = %(stack_id)s LIMIT %(limit)s))"""
    return db.execute(query, {"stack_id": stack_id, "limit": limit}).rowcount


def count_of_deleted(db: Db, table: str, stack_ids: Sequence[int]) -> int:
    """Return the number of rows of deleted stacks in a table of LEFT."""
    query = f"SELECT count(*) FROM {table} WHERE stack_id = ANY(%(stacks)s)"
    return int(ids(db, query, {"stacks": list(stack_ids)})[0])


def remove_deleted(db: Db, stack_id: int) -> int:
    """Delete the row of a deleted stack without rows in LEFT, and its revisions and snapshots."""
    return db.execute(DELETE_STACK, {"stack_id": stack_id}).rowcount


def unreferenced(db: Db, hashes: Sequence[bytes], going: Sequence[int] = ()) -> list[bytes]:
    """Return the contents that no revision refers to, except for the revisions `going`."""
    with db.transaction():
        db.execute(USE_FILE_INDEX)
        return ids(db, UNREFERENCED, {"hashes": list(hashes), "going": list(going)})


def remove_contents(db: Db, hashes: Sequence[bytes]) -> int:
    """Delete the contents without present or imminent references; return their number."""
    with db.transaction():
        db.execute(USE_FILE_INDEX)
        locked = ids(db, LOCK_CONTENTS, {"hashes": list(hashes)})
        return db.execute(DELETE_CONTENTS, {"hashes": locked, "going": []}).rowcount


def release_contents(db: Db, hashes: Sequence[bytes]) -> int:
    """Stop to count contents for the projects that refer to them no more; return their number.

    A content that a request locks is skipped: it may refer to it from now on.
    """
    with db.transaction():
        db.execute(USE_FILE_INDEX)
        released = db.execute(RELEASED, {"hashes": list(hashes)}).fetchall()
        if not released:
            return 0
        locked = ids(db, LOCK_CONTENTS, {"hashes": list({hash_ for _, hash_ in released})})
        return db.execute(DELETE_RELEASED, {"hashes": locked}).rowcount
