"""The statements a check lives by: claim, look, begin, and the five ways a visit ends (PROTOCOL.md 1-5,
11-15).

Each is one statement in a transaction of its own, guarded so that a late writer matches no row: the
resource's outcome by
`resource.lease` alone, the node's by state and lease. Rows are passed as one JSON array, so that one node and
fifty cost one round trip. What every statement that may free a node returns is rows of (what, id, traversal,
queue, label, root): `ring` for messages to send, `held` for the resources whose lease was still ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, errors
from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb

from orchestrator.engine.messages import Ring
from orchestrator.engine.visit import DefinitionView, NodeData, ResourceView, StackView, Visit

Hot = Connection[TupleRow]

CLAIM = """
WITH want AS MATERIALIZED (
    SELECT n.id, n.resource_id FROM graph_node n
    WHERE n.id = ANY(%(ids)s) AND n.traversal = %(traversal)s AND n.state = 'queued'
    ORDER BY n.id FOR UPDATE SKIP LOCKED
), held AS (
    UPDATE resource r
    SET lost_at = CASE WHEN r.lease IS NULL THEN r.lost_at ELSE r.leased_until END,
        lease = %(lease)s, leased_until = clock_timestamp() + make_interval(secs => %(seconds)s)
    FROM want w WHERE r.id = w.resource_id AND (r.lease IS NULL OR r.leased_until < clock_timestamp())
    RETURNING w.id
), free AS (
    SELECT id FROM held UNION ALL SELECT id FROM want WHERE resource_id IS NULL
)
UPDATE graph_node n
SET state = 'checking', lease = %(lease)s,
    leased_until = clock_timestamp() + make_interval(secs => %(seconds)s)
FROM free WHERE n.id = free.id
RETURNING n.id
"""

# Somebody operates on the resource: look again when it may be free, or soon, for it is mostly a matter of
# milliseconds.
REFUSE = """
UPDATE graph_node n
SET state = 'waiting', rung_at = NULL, rings = 0, waiting_since = coalesce(n.waiting_since, now()),
    due_at = least(r.leased_until, clock_timestamp() + interval '1 second')
FROM resource r
WHERE n.id = ANY(%(ids)s) AND n.traversal = %(traversal)s AND n.state = 'queued'
    AND r.id = n.resource_id AND r.leased_until >= clock_timestamp()
"""

LOOK = """
SELECT n.id, n.kind, n.traversal, n.queue, n.label, n.retry_count, n.lost_leases,
    s.id, s.uuid::text, s.name, s.project_id, s.root_id, s.traversal, s.halted_traversal, s.action, s.status,
        s.revision_id,
    s.timeout_mins * 60.0,
    s.timeout_mins * 60.0 - extract(epoch FROM now() - s.action_started_at)::float8,
    r.id, r.uuid::text, r.name, r.type, r.action, r.status, r.physical_id, r.reference_id, r.properties,
        r.attributes,
    r.data, convert_from(r.sealed, 'UTF8'), r.attempt, r.op,
    extract(epoch FROM clock_timestamp() - r.op_started_at)::float8,
    extract(epoch FROM r.lost_at - clock_timestamp())::float8,
    r.requires, r.definition_id, r.metadata,
    d.id, d.body, encode(d.digest, 'hex'), d.requires, d.dep_attrs,
    CASE WHEN n.kind = 'update' AND cardinality(d.requires) > 0 THEN (
        SELECT jsonb_agg(jsonb_build_array(
            q.id, q.name, q.physical_id, q.reference_id, q.action, q.status,
            CASE
                WHEN d.dep_attrs -> q.name ? '*' THEN q.attributes
                WHEN d.dep_attrs ? q.name THEN (
                    SELECT jsonb_object_agg(a.name, q.attributes -> a.name)
                    FROM jsonb_array_elements_text(d.dep_attrs -> q.name) AS a(name)
                    WHERE q.attributes ? a.name)
            END,
            convert_from(q.sealed, 'UTF8')))
        FROM resource q WHERE q.stack_id = n.stack_id AND q.name = ANY(d.requires) AND q.replaced_by IS NULL)
    END
FROM graph_node n
JOIN stack s ON s.id = n.stack_id
LEFT JOIN resource r ON r.id = n.resource_id
LEFT JOIN resource_definition d ON d.id = coalesce(n.definition_id, r.definition_id)
WHERE n.id = ANY(%(ids)s) AND n.lease = %(lease)s
ORDER BY n.id
"""

ROWS = """
WITH i AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(%(rows)s) AS x(
        node_id bigint, resource_id bigint, stack_id bigint, name text, type text,
        action text, status text, reason text, started boolean, changed boolean,
        physical_id text, reference_id text, properties jsonb, attributes jsonb, metadata jsonb, data jsonb,
            sealed text,
        definition_id bigint, digest text, requires bigint[], input_digests text[], observed text,
        op text, attempt integer, wait_seconds float8, retried boolean)
)"""

EVENTS = """
, told AS (
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason,
        properties)
    SELECT i.stack_id, i.name, i.type, i.physical_id, i.action, x.status, x.reason,
        CASE WHEN i.sealed IS NULL AND x.status <> 'IN_PROGRESS' THEN i.properties END
    FROM i JOIN r ON r.id = i.resource_id
    CROSS JOIN LATERAL (VALUES ('IN_PROGRESS', 'state changed'), (i.status, i.reason)) AS x(status, reason)
    WHERE CASE WHEN x.status = 'IN_PROGRESS' THEN i.started ELSE true END
    ORDER BY i.node_id
)"""

# Wakes what waits for a resource just let go: the node of a newer traversal, which this visit held up. The
# conditions are those of ix_graph_node_active, and of no other index: the number of waiting nodes must not
# matter.
WOKEN = """
UPDATE graph_node n SET state = 'queued', due_at = NULL, rung_at = now(), rings = 0
FROM i WHERE n.stack_id = i.stack_id AND n.resource_id = i.resource_id AND n.id <> i.node_id
    AND n.state IN ('checking', 'waiting') AND n.due_at IS NOT NULL AND n.lease IS NULL
RETURNING n.id, n.traversal, n.queue, n.label
"""

WAKE = f", woken AS ({WOKEN})"

WAKE_LATE = f"""
WITH i AS (SELECT n.id AS node_id, n.stack_id, n.resource_id FROM graph_node n WHERE n.id = ANY(%(ids)s)),
    woken AS ({WOKEN})
SELECT 'ring', id, traversal, queue, label FROM woken
"""

RELEASE = """
, dec AS (
    SELECT d.id, count(*) AS k, bool_or(done.changed) AS changed, row_number() OVER () AS nth
    FROM done CROSS JOIN LATERAL unnest(done.needed_by) AS d(id) GROUP BY d.id
), locked AS (  -- one lock order for everybody: no deadlocks
    SELECT n.id, dec.k, dec.changed,
        dec.nth FROM dec JOIN graph_node n ON n.id = dec.id ORDER BY n.id FOR UPDATE OF n
), released AS (
    UPDATE graph_node n
    SET blocked_by = n.blocked_by - l.k, dirty = n.dirty OR l.changed,
        state = CASE WHEN n.blocked_by = l.k THEN 'queued' ELSE 'blocked' END,
        rung_at = CASE WHEN n.blocked_by = l.k AND l.nth <= %(ring)s THEN now() END
    FROM locked l WHERE n.id = l.id AND n.state = 'blocked'
    RETURNING n.id, n.traversal, n.queue, n.label, n.state, n.rung_at
)"""

SETTLED = """
SELECT CASE WHEN rung_at IS NULL THEN 'queued' ELSE 'ring' END, id, traversal, queue, label
FROM released WHERE state = 'queued'
UNION ALL SELECT 'held', r.id, NULL, NULL, NULL FROM r
"""

MARK_READY = """
, done AS (
    UPDATE graph_node n
    SET state = 'ready', observed_ready = true, observed_ready_at = now(), lease = NULL, leased_until = NULL,
        last_error = NULL
    FROM i JOIN r ON r.id = i.resource_id
    WHERE n.id = i.node_id AND n.state = 'checking' AND n.lease = %(lease)s
    RETURNING n.id, n.needed_by, i.changed
)"""

SETTLE = (
    ROWS
    + """
, r AS (
    UPDATE resource r
    SET action = i.action, status = i.status, status_reason = i.reason, physical_id = i.physical_id,
        reference_id = i.reference_id, properties = i.properties, attributes = i.attributes,
            metadata = i.metadata, data = i.data,
        sealed = convert_to(i.sealed, 'UTF8'), definition_id = i.definition_id,
            built_digest = decode(i.digest, 'hex'),
        requires = i.requires, input_digests = i.input_digests, attempt = greatest(r.attempt, 1),
        updated_at = CASE WHEN i.action = 'CREATE' THEN r.updated_at ELSE now() END,
        observed = i.observed, observed_at = now(),
        op = NULL, op_started_at = NULL, lost_at = NULL, lease = NULL, leased_until = NULL
    FROM i WHERE r.id = i.resource_id AND r.lease = %(lease)s
    RETURNING r.id
)"""
    + MARK_READY
    + EVENTS
    + RELEASE
    + SETTLED
)

# As SETTLE, when nothing changed: the resource keeps its row as it is.
SETTLE_KEPT = (
    ROWS
    + """
, r AS (
    UPDATE resource r SET lease = NULL, leased_until = NULL
    FROM i WHERE r.id = i.resource_id AND r.lease = %(lease)s RETURNING r.id
)"""
    + MARK_READY
    + RELEASE
    + SETTLED
)

# As SETTLE, when the provider confirmed absence: the resource's row goes.
SETTLE_GONE = (
    ROWS
    + """
, r AS (
    DELETE FROM resource r USING i WHERE r.id = i.resource_id AND r.lease = %(lease)s RETURNING r.id
)"""
    + MARK_READY
    + EVENTS.replace("ORDER BY", "AND i.action IS NOT NULL ORDER BY")
    + RELEASE
    + SETTLED
)

SETTLE_NODES = (
    """
WITH i AS (SELECT id AS node_id FROM unnest(%(ids)s) AS id), r AS (SELECT NULL::bigint AS id WHERE false),
done AS (
    UPDATE graph_node n
    SET state = 'ready', observed_ready = true, observed_ready_at = now(), lease = NULL, leased_until = NULL,
        last_error = NULL
    FROM i WHERE n.id = i.node_id AND n.state = 'checking' AND n.lease = %(lease)s
    RETURNING n.id, n.needed_by, n.dirty AS changed
)"""
    + RELEASE
    + SETTLED
)

BEGIN = (
    ROWS
    + """
, r AS (
    UPDATE resource r
    SET op = i.op, op_started_at = now(), attempt = i.attempt, action = i.action, status = 'IN_PROGRESS',
        status_reason = 'state changed', definition_id = coalesce(i.definition_id, r.definition_id),
        properties = coalesce(i.properties, r.properties),
            sealed = coalesce(convert_to(i.sealed, 'UTF8'), r.sealed),
        requires = i.requires, input_digests = i.input_digests
    FROM i WHERE r.id = i.resource_id AND r.lease = %(lease)s
    RETURNING r.id
)"""
    + EVENTS.replace("(i.status, i.reason)", "(NULL, NULL)").replace("ELSE true", "ELSE false")
    + "\nSELECT id FROM r"
)

# Not ready yet, or to be tried again: the operation stays open, the lease is given back, the node comes due.
WAIT = (
    ROWS
    + """
, r AS (
    UPDATE resource r
    SET op_started_at = CASE WHEN i.op IS NULL THEN NULL WHEN r.op = i.op THEN r.op_started_at ELSE now() END,
        op = i.op, attempt = i.attempt, action = i.action, status = 'IN_PROGRESS', status_reason = i.reason,
        physical_id = i.physical_id, properties = i.properties, data = i.data,
            sealed = convert_to(i.sealed, 'UTF8'),
        definition_id = coalesce(i.definition_id, r.definition_id), requires = i.requires,
            input_digests = i.input_digests,
        lost_at = CASE WHEN i.physical_id IS NULL THEN r.lost_at END, lease = NULL, leased_until = NULL
    FROM i WHERE r.id = i.resource_id AND r.lease = %(lease)s
    RETURNING r.id
), done AS (
    UPDATE graph_node n
    SET state = 'waiting', lease = NULL, leased_until = NULL, rung_at = NULL, rings = 0,
        waiting_since = coalesce(n.waiting_since, now()),
            last_error = CASE WHEN i.retried THEN i.reason ELSE n.last_error END,
        retry_count = n.retry_count + i.retried::int,
        due_at = CASE WHEN i.wait_seconds IS NULL THEN 'infinity'
            ELSE clock_timestamp() + make_interval(secs => i.wait_seconds) END
    FROM i JOIN r ON r.id = i.resource_id WHERE n.id = i.node_id AND n.state = 'checking'
        AND n.lease = %(lease)s
)"""
    + EVENTS.replace("(i.status, i.reason)", "(NULL, NULL)").replace("ELSE true", "ELSE false")
    + WAKE
    + "\nSELECT 'held', r.id, NULL, NULL, NULL FROM r"
    + "\nUNION ALL SELECT 'ring', id, traversal, queue, label FROM woken"
)

FAIL = (
    ROWS
    + """
, r AS (
    UPDATE resource r
    SET op = NULL, op_started_at = NULL, action = i.action, status = 'FAILED', status_reason = i.reason,
        attempt = i.attempt,
        physical_id = i.physical_id, properties = i.properties, data = i.data,
            sealed = convert_to(i.sealed, 'UTF8'),
        definition_id = coalesce(i.definition_id, r.definition_id), requires = i.requires,
            input_digests = i.input_digests,
        observed = i.observed, observed_at = CASE WHEN i.observed IS NULL THEN NULL ELSE now() END,
        lease = NULL, leased_until = NULL
    FROM i WHERE r.id = i.resource_id AND r.lease = %(lease)s
    RETURNING r.id
), done AS (
    UPDATE graph_node n SET state = 'failed', lease = NULL, leased_until = NULL, last_error = i.reason
    FROM i JOIN r ON r.id = i.resource_id WHERE n.id = i.node_id AND n.state = 'checking'
        AND n.lease = %(lease)s
    RETURNING n.id, n.stack_id, n.traversal, i.name, i.reason
), cause AS (
    INSERT INTO failure (stack_id, traversal, resource_name, reason) SELECT stack_id, traversal, name,
        reason FROM done
), halted AS (  -- the first failure stops the traversal, once
    UPDATE stack s SET halted_traversal = s.traversal
    FROM (SELECT DISTINCT stack_id, traversal FROM done) f
    WHERE s.id = f.stack_id AND s.traversal = f.traversal AND s.halted_traversal IS DISTINCT FROM s.traversal
)"""
    + EVENTS
    + WAKE
    + "\nSELECT 'held', r.id, NULL, NULL, NULL FROM r"
    + "\nUNION ALL SELECT 'ring', id, traversal, queue, label FROM woken"
)

# The traversal is over for these nodes: give everything back and wake who was held up.
DROP = (
    """
WITH i AS MATERIALIZED (
    SELECT n.id AS node_id, n.stack_id,
        n.resource_id FROM graph_node n WHERE n.id = ANY(%(ids)s) AND n.lease = %(lease)s
), r AS (
    UPDATE resource r SET lease = NULL, leased_until = NULL
    FROM i WHERE r.id = i.resource_id AND r.lease = %(lease)s RETURNING r.id
), done AS (
    UPDATE graph_node n SET state = 'dropped', lease = NULL, leased_until = NULL
    FROM i WHERE n.id = i.node_id AND n.state = 'checking'
)"""
    + WAKE
    + """
SELECT 'held', r.id, NULL, NULL, NULL FROM r UNION ALL SELECT 'ring', id, traversal, queue, label FROM woken
"""
)

STRAY = """
INSERT INTO stray (stack_id, resource_id, token, type, physical_id)
VALUES (%(stack_id)s, %(resource_id)s, %(token)s, %(type)s, %(physical_id)s)
"""

RENEW = """
WITH r AS (
    UPDATE resource SET leased_until = clock_timestamp() + make_interval(secs => %(seconds)s)
    WHERE id = ANY(%(resources)s) AND lease = ANY(%(leases)s)
)
UPDATE graph_node SET leased_until = clock_timestamp() + make_interval(secs => %(seconds)s)
WHERE id = ANY(%(nodes)s) AND lease = ANY(%(leases)s)
"""

TOP_UP = """
WITH outstanding AS (
    SELECT count(*) AS n FROM (
        SELECT 1 FROM graph_node WHERE root_id = %(root)s AND state = 'queued' AND rung_at IS NOT NULL
            LIMIT %(window)s) o
), chosen AS MATERIALIZED (
    SELECT id FROM graph_node WHERE root_id = %(root)s AND state = 'queued' AND rung_at IS NULL
    LIMIT greatest(0, %(window)s - (SELECT n FROM outstanding)) FOR UPDATE SKIP LOCKED
), rung AS (
    UPDATE graph_node n SET rung_at = now(), rings = 0 FROM chosen c WHERE n.id = c.id
    RETURNING n.id, n.traversal, n.queue, n.label
)
SELECT 'outstanding', n, NULL, NULL, NULL FROM outstanding
UNION ALL SELECT 'ring', id, traversal, queue, label FROM rung
"""


@dataclass(frozen=True, slots=True)
class Settled:
    """What a statement that moves nodes did: messages to send, resources still ours, and nodes left for the
    window.
    """

    rings: list[Ring]
    held: frozenset[int]
    unrung: int = 0
    outstanding: int = 0


def _settled(rows: Sequence[tuple[Any, ...]], root: str) -> Settled:
    rings = [Ring(row[1], row[2], row[3], row[4], root) for row in rows if row[0] == "ring"]
    return Settled(
        rings,
        frozenset(row[1] for row in rows if row[0] == "held"),
        sum(row[0] == "queued" for row in rows),
        sum(row[1] for row in rows if row[0] == "outstanding"),
    )


def claim(db: Hot, ids: Sequence[int], traversal: int, lease: int, seconds: float) -> list[int]:
    """Take these nodes and their resources for one visit; return those we got. Committed on return."""
    values = {"ids": list(ids), "traversal": traversal, "lease": lease, "seconds": seconds}
    claimed = [row[0] for row in _retried(db, CLAIM, values)]
    if len(claimed) < len(ids):
        db.execute(REFUSE, {"ids": [id_ for id_ in ids if id_ not in claimed], "traversal": traversal})
    return claimed


def look(db: Hot, ids: Sequence[int], lease: int) -> list[Visit]:
    """Read what the claimed nodes need, in a snapshot later than the claim (PROTOCOL.md 2)."""
    return [_visit(row) for row in db.execute(LOOK, {"ids": list(ids), "lease": lease}).fetchall()]


def begin(db: Hot, rows: Sequence[Mapping[str, Any]], lease: int) -> frozenset[int]:
    """Open an operation, durably, before its provider is called; return the resources that were ours."""
    return frozenset(row[0] for row in _retried(db, BEGIN, {"rows": Jsonb(list(rows)), "lease": lease}))


def write(
    db: Hot, statement: str, rows: Sequence[Mapping[str, Any]], lease: int, root: str, ring: int = 0
) -> Settled:
    """Run SETTLE, SETTLE_KEPT, SETTLE_GONE, WAIT or FAIL over `rows`; ring at most `ring` released nodes."""
    values: dict[str, Any] = {"rows": Jsonb(list(rows)), "lease": lease}
    if "%(ring)s" in statement:
        values["ring"] = ring
    return _settled(_retried(db, statement, values), root)


def settle_nodes(db: Hot, ids: Sequence[int], lease: int, root: str, ring: int = 0) -> Settled:
    """Settle nodes that visit no resource: joins and plans."""
    return _settled(_retried(db, SETTLE_NODES, {"ids": list(ids), "lease": lease, "ring": ring}), root)


def drop(db: Hot, ids: Sequence[int], lease: int, root: str) -> Settled:
    """Let go of nodes whose traversal is over."""
    return _settled(_retried(db, DROP, {"ids": list(ids), "lease": lease}), root)


def wake(db: Hot, ids: Sequence[int], root: str) -> list[Ring]:
    """Ring for nodes of newer traversals that these nodes' visits held up."""
    return _settled(_retried(db, WAKE_LATE, {"ids": list(ids)}), root).rings


def top_up(db: Hot, root_id: int, root: str, window: int) -> Settled:
    """Ring queued nodes of a root stack until `window` messages are outstanding (PROTOCOL.md 15)."""
    return _settled(db.execute(TOP_UP, {"root": root_id, "window": window}).fetchall(), root)


def record_stray(db: Hot, visit: Visit, token: str, physical_id: str) -> None:
    """Keep note of a thing made under a lease that was lost (PROTOCOL.md 4)."""
    assert visit.resource is not None
    db.execute(
        STRAY,
        {
            "stack_id": visit.stack.id,
            "resource_id": visit.resource.id,
            "token": token,
            "type": visit.resource.type,
            "physical_id": physical_id,
        },
    )


def renew(db: Hot, held: Sequence[tuple[int, int | None, int]], seconds: float) -> None:
    """Lengthen the leases of (node, resource, lease)."""
    db.execute(
        RENEW,
        {
            "nodes": [node for node, _, _ in held],
            "resources": [resource for _, resource, _ in held if resource is not None],
            "leases": [lease for _, _, lease in held],
            "seconds": seconds,
        },
    )


def _retried(db: Hot, statement: str, values: Mapping[str, Any], tries: int = 5) -> list[tuple[Any, ...]]:
    """Run a statement, again when PostgreSQL broke a deadlock with it (40P01)."""
    while True:
        try:
            return db.execute(statement, values).fetchall()
        except (errors.DeadlockDetected, errors.SerializationFailure):
            tries -= 1
            if not tries:
                raise


def _visit(row: tuple[Any, ...]) -> Visit:
    resource = definition = None
    if row[19] is not None:
        resource = ResourceView(*row[19:38])
    if row[38] is not None:
        definition = DefinitionView(row[38], row[39], row[40], tuple(row[41]), row[42])
    inputs = tuple(NodeData(*data) for data in row[43] or ())
    return Visit(
        row[0],
        row[1],
        row[2],
        row[3],
        row[4],
        row[5],
        row[6],
        StackView(*row[7:19]),
        resource,
        definition,
        inputs,
    )
