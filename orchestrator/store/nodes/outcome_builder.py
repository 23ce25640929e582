"""What the endings of `outcome_sql.py` are made of, and the forms that each comes in: for a node that
was claimed and for one that was not (operations/adr/0001), for several rows and for just one.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from orchestrator.store.nodes.visit_sql import CHECKING, QUEUED

# What a visit writes: column and type. A statement gets its rows as one JSON array or, when there is just
# one, the columns that it uses one by one: then `i` dissolves into parameters, and the plan is half the size.
COLUMNS = {
    "node_id": "bigint",
    "resource_id": "bigint",
    "stack_id": "bigint",
    "name": "text",
    "type": "text",
    "action": "text",
    "status": "text",
    "reason": "text",
    "started": "boolean",
    "changed": "boolean",
    "physical_id": "text",
    "reference_id": "text",
    "properties": "json",
    "attributes": "json",
    "metadata": "json",
    "data": "json",
    "sealed": "text",
    "definition_id": "bigint",
    "digest": "text",
    "requires": "bigint[]",
    "input_digests": "text[]",
    "value_digest": "text",
    "observed": "text",
    "op": "text",
    "attempt": "integer",
    "wait_seconds": "float8",
    "retried": "boolean",
    "traversal": "bigint",
    "unanswered": "boolean",
    "continued": "boolean",
    "heir": "uuid",
    "runs_as": "text",
    "was_fine": "boolean",
    "was": "text",
}
ROWS = f"""
WITH i AS MATERIALIZED (
    SELECT *
        FROM json_to_recordset(%(rows)s) AS x({
    ", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items())
})
    WHERE x.node_id > 0 AND x.resource_id > 0 AND x.stack_id > 0
)"""


def single_row_form(statement: str) -> str:
    """Return an ending for just one row.

    Its events are told in the order they are written in: a list of VALUES, joined with one row, is gone
    through as it is.
    """
    used = set(re.findall(r"\bi\.(\w+)", statement))
    columns = ", ".join(f"%({name})s::{COLUMNS[name]} AS {name}" for name in COLUMNS if name in used)
    text = statement.replace(ROWS, f"\nWITH i AS NOT MATERIALIZED (\n    SELECT {columns}\n)")
    return re.sub(r"\s+ORDER BY i\.node_id, .*", "", text)


# A node is ours to settle while our claim of it stands.
LEASE_IS_OURS = f"{CHECKING} AND n.lease = %(lease)s"

# A resource may be written while its lease is ours and, for rows with a traversal, while that is the
# stack's.
RESOURCE_LEASE_IS_OURS = """r.id = ANY (ARRAY[i.resource_id]) AND r.lease = %(lease)s AND (i.traversal IS NULL
        OR i.traversal = (SELECT s.traversal FROM stack s WHERE s.id = ANY (ARRAY[i.stack_id])))"""

EVENTS = """
, told AS (
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason,
        properties)
    SELECT i.stack_id, i.name, i.type, i.physical_id, i.action, x.status, x.reason,
        CASE WHEN i.sealed IS NULL AND x.status <> 'IN_PROGRESS' THEN i.properties END
    FROM i JOIN r ON r.id = i.resource_id
    CROSS JOIN LATERAL (VALUES ('IN_PROGRESS', 'state changed'), (i.status, i.reason)) AS x(status, reason)
    WHERE CASE WHEN x.status = 'IN_PROGRESS' THEN i.started ELSE true END
    ORDER BY i.node_id, x.status <> 'IN_PROGRESS'
)"""

# Wakes what waits for a resource just let go: the node of a newer traversal, which this visit held up. The
# conditions are those of ix_graph_node_at_work, and of no other index: the number of waiting nodes must not
# matter.
WOKEN = """
UPDATE graph_node n SET state = 'queued', due_at = NULL, rung_at = now(), rings = 0
FROM i CROSS JOIN LATERAL (
    SELECT m.id FROM graph_node m
    WHERE m.stack_id = i.stack_id AND m.resource_id = i.resource_id AND m.id <> i.node_id
        AND m.state IN ('checking', 'waiting') AND m.due_at IS NOT NULL OFFSET 0) AS held_up
WHERE n.id = ANY (ARRAY[held_up.id]) AND n.due_at IS NOT NULL
RETURNING n.id, n.traversal, n.queue, n.label
"""

WAKE = f", woken AS ({WOKEN})"

COUNTED = """
, dec AS (  -- several of the rows may feed the same node
    SELECT d.id, count(*) AS k, bool_or(done.changed) AS changed, row_number() OVER () AS nth
    FROM done CROSS JOIN LATERAL unnest(done.needed_by) AS d(id) GROUP BY d.id
"""
EACH = """
, dec AS (
    SELECT d.id, 1 AS k, done.changed, d.nth
    FROM done CROSS JOIN LATERAL unnest(done.needed_by) WITH ORDINALITY AS d(id, nth)
"""
RELEASE = f"""{COUNTED}), released AS (
    UPDATE graph_node n
    SET blocked_by = n.blocked_by - l.k, dirty = n.dirty OR l.changed,
        state = CASE WHEN n.blocked_by = l.k THEN 'queued' ELSE 'blocked' END,
        rung_at = CASE WHEN n.blocked_by = l.k AND (n.dirty OR l.changed) AND l.nth <= %(ring)s THEN now() END
    FROM (SELECT * FROM dec ORDER BY id) l  -- locked in this order by everybody: no deadlocks
    WHERE n.id = ANY (ARRAY[l.id]) AND n.state = 'blocked'
    RETURNING n.id, n.traversal, n.queue, n.label, n.state, n.rung_at, n.dirty
)"""

SETTLED = """
SELECT CASE WHEN NOT dirty THEN 'clean' WHEN rung_at IS NULL THEN 'queued' ELSE 'ring' END, id, traversal,
    queue, label
FROM released WHERE state = 'queued'
UNION ALL SELECT 'held', r.id, NULL, NULL, NULL FROM r
"""

MARK_READY = f"""
, done AS (
    UPDATE graph_node n
    SET state = 'ready', observed_ready = true, observed_ready_at = now(), lease = NULL, leased_until = NULL,
        last_error = NULL
    FROM i JOIN r ON r.id = i.resource_id
    WHERE n.id = ANY (ARRAY[i.node_id]) AND {LEASE_IS_OURS}
    RETURNING n.id, n.needed_by, i.changed
)"""

# The first failure stops the traversal, once. What of it still runs is waited for, and users read so.
HALTS = """
, halted AS (
    UPDATE stack s
    SET halted_traversal = s.traversal,
        status_reason = 'Stack ' || s.action || ' is winding down: ' || f.reason
    FROM (SELECT stack_id, traversal, (array_agg(reason ORDER BY id))[1] AS reason FROM done
        GROUP BY stack_id, traversal) f
    WHERE s.id = ANY (ARRAY[f.stack_id]) AND s.traversal = f.traversal AND NOT s.keep_going
        AND s.halted_traversal IS DISTINCT FROM s.traversal
)"""

OURS_OR_THOUGHT_LOST = "(n.state = 'checking' AND n.lease = %(lease)s OR n.state IN ('queued', 'waiting'))"

# The same endings for a check that claimed nothing: they take what they write, or match nothing. A node goes
# once, in the traversal that is the stack's, while it still visits the resource that was seen (it may have
# gone on to another that took its place), and that only while nobody holds it and it has the status that the
# visit saw: it may have been marked since.
LOCK_QUEUED_NODE = f"""
, mine AS MATERIALIZED (
    SELECT n.id FROM i JOIN graph_node n ON n.id = ANY (ARRAY[i.node_id])
    JOIN stack s ON s.id = ANY (ARRAY[n.stack_id])
    WHERE {QUEUED} AND n.resource_id = i.resource_id AND n.traversal = s.traversal
        AND (s.halted_traversal IS DISTINCT FROM s.traversal OR i.continued)
    ORDER BY i.node_id FOR UPDATE OF n
)
, r AS ("""
RESOURCE_IS_FREE = """mine.id = i.node_id AND r.id = ANY (ARRAY[i.resource_id])
        AND (r.lease IS NULL OR r.leased_until < clock_timestamp()) AND r.status = i.was"""


def leaseless_form(statement: str) -> str:
    """Return an ending for a node that no claim was made for."""
    text = statement.replace("\n, r AS (", LOCK_QUEUED_NODE, 1).replace(
        f"i WHERE {RESOURCE_LEASE_IS_OURS}", f"i, mine WHERE {RESOURCE_IS_FREE}", 1
    )
    for claimed in (LEASE_IS_OURS, OURS_OR_THOUGHT_LOST):
        text = text.replace(claimed, QUEUED)
    return text


# Of one node that no claim was made for, the lock has its dependents already: it is made ready, and they are
# released, by one UPDATE. PostgreSQL opens a table's indexes and reads its CHECKs anew for each.
LOCKED = "SELECT n.id FROM i JOIN graph_node n"
LOCKED_WITH_DEPENDENTS = "SELECT n.id, n.id || n.needed_by AS moved FROM i JOIN graph_node n"


def settle_and_release(of: str = "r", becomes: str = "") -> str:
    """Return the UPDATE of a node (the first of them) and its dependents, once `of` has its row; the node is
    given what `becomes` sets besides.
    """
    return f"""
, released AS (
    UPDATE graph_node n
    SET state = CASE WHEN l.nth = 0 THEN 'ready' WHEN n.blocked_by = 1 THEN 'queued' ELSE 'blocked' END,
        observed_ready = l.nth = 0, observed_ready_at = CASE WHEN l.nth = 0 THEN now() END, last_error = NULL,
        lease = NULL, leased_until = NULL,{becomes}
        blocked_by = CASE WHEN l.nth = 0 THEN 0 ELSE n.blocked_by - 1 END, dirty = n.dirty OR l.changed,
        rung_at = CASE WHEN l.nth = 0 THEN n.rung_at
            WHEN n.blocked_by = 1 AND (n.dirty OR l.changed) AND l.nth <= %(ring)s THEN now() END
    FROM (
        SELECT d.id, d.nth - 1 AS nth, i.changed, {of}.id AS made
        FROM i CROSS JOIN {of} CROSS JOIN mine
        CROSS JOIN LATERAL unnest(mine.moved) WITH ORDINALITY AS d(id, nth)
        ORDER BY d.id  -- locked in this order by everybody: no deadlocks
    ) l
    WHERE n.id = ANY (ARRAY[l.id]) AND n.state = CASE WHEN l.nth = 0 THEN 'queued' ELSE 'blocked' END
    RETURNING n.id, n.traversal, n.queue, n.label, n.state, n.rung_at, n.dirty
)"""


def merged_release_form(statement: str, marked: str, released: str) -> str:
    """Return an unclaimed ending of one row that does with `released` what `marked` and RELEASE do."""
    if marked not in statement or RELEASE not in statement:
        return statement
    text = statement.replace(LOCKED, LOCKED_WITH_DEPENDENTS, 1)
    return text.replace(marked, "", 1).replace(RELEASE, released, 1)


def variants(
    endings: Collection[str], marked: str = MARK_READY, released: str = settle_and_release()
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the forms for nodes that no claim was made for, and those of all for just one row.

    `marked` is what marks the node in these endings, and `released` what stands for that and for RELEASE
    where there is just one.
    """
    free = {ending: leaseless_form(ending) for ending in endings}
    one = {ending: ending for ending in endings}
    one |= {ending: merged_release_form(ending, leaseless_form(marked), released) for ending in free.values()}
    return free, {ending: single_row_form(form).replace(COUNTED, EACH) for ending, form in one.items()}
