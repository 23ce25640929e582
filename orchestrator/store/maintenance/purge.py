"""What is kept no longer, in SQL: which rows of a part may go, how many they are, and a slice of them gone.

Every statement may run beside checks, plans and requests, and beside itself. It takes the rows it removes
with SKIP LOCKED, so it waits for nobody, and it judges and removes in one snapshot or judges again under the
lock. Each of `PARTS` is a SELECT of the keys that may go, out of the stacks with the ids %(stacks)s;
%(going)s are revisions to be taken for gone already: those that a dry run only counts.
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

AGO = "now() - make_interval(secs => %({0})s::float8)"

# A stack that nothing runs for: no traversal, and no visit of an ended one that still finishes.
STACK_IDLE = f"""s.status <> 'IN_PROGRESS' AND NOT EXISTS (
        SELECT 1 FROM graph_node w WHERE w.stack_id = s.id AND {check_in("w.state", STATES_VISITED)})"""


@dataclass(frozen=True, slots=True)
class PurgeTarget:
    """Rows `x` of one table that may go; `probe` finds cheaply which stacks may have many."""

    name: str
    table: str
    which: str
    probe: str | None = None
    scope: str = "true"  # how the table's key begins

    @property
    def count(self) -> str:
        """Return the statement that counts them."""
        return f"SELECT count(*) FROM ({self.which}) AS may_go"

    @property
    def remove(self) -> str:
        """Return the statement that removes %(limit)s of them."""
        return f"""
DELETE FROM {self.table} WHERE {self.scope} AND id = ANY(ARRAY(
    {self.which} LIMIT %(limit)s FOR UPDATE OF x SKIP LOCKED))"""


# Finished visits. Nobody asks for those of a stack at rest; of one that has failed, what it did not come to
# stays, for people to see. A traversal that begins now is not among the rows this sees.
NODES: Final = PurgeTarget(
    "nodes",
    "graph_node",
    f"""SELECT x.id FROM stack s JOIN graph_node x ON x.stack_id = s.id
    WHERE s.id = ANY(%(stacks)s) AND s.status <> 'IN_PROGRESS' AND s.action_started_at < {AGO.format("nodes")}
        AND x.traversal <= s.traversal AND x.state <> 'checking'
        AND (s.status = 'COMPLETE' OR x.state IN ('ready', 'dropped') OR x.traversal < s.traversal)""",
    probe=f"""SELECT s.id FROM stack s
    WHERE s.id = ANY(%(stacks)s) AND s.status <> 'IN_PROGRESS' AND s.action_started_at < {AGO.format("nodes")}
        AND EXISTS (SELECT 1 FROM graph_node n WHERE n.stack_id = s.id)""",
)

# Events by age; how a stack's last action ended stays, while one runs all of it, and always the newest. The
# first of an action goes with the others: with it, all of them are there.
# Ids grow with time, so only the first few are looked at: nothing is walked where nothing is old.
EVENTS: Final = PurgeTarget(
    "events",
    "event",
    f"""SELECT x.id FROM stack s CROSS JOIN LATERAL (
        SELECT e.id, e.created_at, e.physical_id, e.status FROM event e WHERE e.stack_id = s.id ORDER BY e.id
        LIMIT %(first)s) AS f
    JOIN event x ON x.stack_id = s.id AND x.id = f.id
    WHERE s.id = ANY(%(stacks)s) AND f.created_at < {AGO.format("events")}
        AND (f.created_at < s.action_started_at
            OR s.status <> 'IN_PROGRESS'
            AND (f.physical_id IS DISTINCT FROM s.uuid::text OR f.status = 'IN_PROGRESS'))
        AND f.id < (
            SELECT e.id FROM event e WHERE e.stack_id = s.id ORDER BY e.stack_id DESC, e.id DESC LIMIT 1)""",
    probe=f"""SELECT s.id FROM stack s
    WHERE s.id = ANY(%(stacks)s) AND {AGO.format("events")} > (
        SELECT e.created_at FROM event e WHERE e.stack_id = s.id ORDER BY e.id LIMIT 1)""",
    scope="stack_id = ANY(%(stacks)s)",
)

FAILURES: Final = PurgeTarget(
    "failures",
    "failure",
    f"""SELECT x.id FROM stack s JOIN failure x ON x.stack_id = s.id AND x.traversal < s.traversal
    WHERE s.id = ANY(%(stacks)s) AND x.created_at < {AGO.format("events")}""",
    scope="stack_id = ANY(%(stacks)s)",
)

# Never the desired one, which is the one in progress, nor the last good one, nor what a snapshot names.
REVISIONS: Final = PurgeTarget(
    "revisions",
    "revision",
    f"""SELECT x.id FROM stack s JOIN revision x ON x.stack_id = s.id
    WHERE s.id = ANY(%(stacks)s) AND {STACK_IDLE} AND x.created_at < {AGO.format("revisions")}
        AND x.number <= (SELECT max(v.number) FROM revision v WHERE v.stack_id = s.id) - %(kept)s
        AND x.id IS DISTINCT FROM s.revision_id AND x.id IS DISTINCT FROM s.good_revision_id
        AND NOT EXISTS (SELECT 1 FROM snapshot p WHERE p.revision_id = x.id)""",
    probe="""SELECT v.stack_id FROM stack s CROSS JOIN LATERAL (
        SELECT r.stack_id FROM revision r WHERE r.stack_id = s.id ORDER BY r.number DESC
        OFFSET %(kept)s LIMIT 1) AS v WHERE s.id = ANY(%(stacks)s)""",
)

# Definitions of revisions that are gone, unless a resource was built from one: how it is to be removed, and
# what it is compared with, is written there. The visits of a traversal use those of the desired revision.
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

# Of every stack in turn. A revision goes before its definitions, and both before the texts.
PARTS: Final = (NODES, EVENTS, FAILURES, REVISIONS, DEFINITIONS)

STRAYS: Final = PurgeTarget(
    "strays", "stray", f"SELECT x.id FROM stray x WHERE x.handled_at < {AGO.format('events')}"
)

# What a deleted stack leaves; the stack's own row takes its revisions and snapshots along.
LEFT: Final = (
    "graph_node",
    "event",
    "failure",
    "signal",
    "access",
    "watcher",
    "progress",
    "disturbed_stack",
    "resource_definition",
    "resource",
)

DELETED = f"""
SELECT s.id FROM stack s WHERE s.deleted_at < {AGO.format("deleted")}
    AND NOT EXISTS (SELECT 1 FROM stack c WHERE c.owner_id = s.id)
    AND NOT EXISTS (  -- whose copies are still to be removed
        SELECT 1 FROM snapshot p WHERE p.stack_id = s.id AND p.action = 'DELETE')
ORDER BY s.deleted_at LIMIT %(limit)s
"""
REVISIONS_OF_STACKS = "SELECT id FROM revision WHERE stack_id = ANY(%(stacks)s)"
STACKS = "SELECT id FROM stack WHERE id > %(after)s ORDER BY id LIMIT %(limit)s"
CONTENTS = "SELECT hash FROM content WHERE hash > %(after)s ORDER BY hash LIMIT %(limit)s"

# Texts that no revision names. One just written may be named by a request that is not committed yet: whoever
# names one holds its row, and what is locked is not taken here but judged again afterwards.
UNNAMED = """
SELECT c.hash FROM content c WHERE c.hash = ANY(%(hashes)s)
    AND NOT EXISTS (SELECT 1 FROM revision r WHERE r.template_hash = c.hash AND r.id <> ALL(%(going)s))
    AND (SELECT r.id FROM revision r  -- not EXISTS, which would become a join of everything with everything
        WHERE jsonb_path_query_array(r.files, '$.*') ? encode(c.hash, 'hex') AND r.id <> ALL(%(going)s)
        LIMIT 1) IS NULL
"""
BY_FILES = "SET LOCAL enable_bitmapscan = on"  # hot connections have it off, and that index knows no other
LOCK_CONTENTS = "SELECT hash FROM content WHERE hash = ANY(%(hashes)s) FOR UPDATE SKIP LOCKED"
DROP_CONTENTS = f"DELETE FROM content WHERE hash = ANY(ARRAY({UNNAMED}))"


def remove(db: Db, part: PurgeTarget, values: Values) -> int:
    """Remove a slice of a part; return how many rows."""
    return db.execute(part.remove, values).rowcount


def count(db: Db, part: PurgeTarget, values: Values) -> int:
    """Return how many rows of a part may go."""
    row = db.execute(part.count, values).fetchone()
    assert row is not None
    return int(row[0])


def ids(db: Db, query: str, values: Values) -> list[Any]:
    """Return the first column of what a query gives."""
    return [row[0] for row in db.execute(query, values).fetchall()]


def remove_of_deleted(db: Db, table: str, stack_id: int, limit: int) -> int:
    """Remove a slice of what a deleted stack left in one of the tables in LEFT."""
    query = (
        f"DELETE FROM {table} WHERE ctid = ANY(ARRAY(SELECT ctid FROM {table} WHERE stack_id = %s LIMIT %s))"
    )
    return db.execute(query, (stack_id, limit)).rowcount


def count_of_deleted(db: Db, table: str, stack_ids: Sequence[int]) -> int:
    """Return the number of rows of deleted stacks in one of the tables in LEFT."""
    query = f"SELECT count(*) FROM {table} WHERE stack_id = ANY(%(stacks)s)"
    return int(ids(db, query, {"stacks": list(stack_ids)})[0])


def remove_deleted(db: Db, stack_id: int) -> int:
    """Remove the row of a deleted stack, of which nothing else is left, with its revisions and snapshots."""
    return db.execute("DELETE FROM stack WHERE id = %s AND deleted_at IS NOT NULL", (stack_id,)).rowcount


def unreferenced(db: Db, hashes: Sequence[bytes], going: Sequence[int] = ()) -> list[bytes]:
    """Return those of the texts that no revision names but those `going`."""
    with db.transaction():
        db.execute(BY_FILES)
        return ids(db, UNNAMED, {"hashes": list(hashes), "going": list(going)})


def remove_contents(db: Db, hashes: Sequence[bytes]) -> int:
    """Remove those of the texts that nobody names, nor is about to; return how many."""
    with db.transaction():
        db.execute(BY_FILES)
        locked = ids(db, LOCK_CONTENTS, {"hashes": list(hashes)})
        return db.execute(DROP_CONTENTS, {"hashes": locked, "going": []}).rowcount
