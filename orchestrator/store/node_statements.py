"""The SQL a check lives by, each a statement in a transaction of its own (PROTOCOL.md 1-5, 11-15).

Guarded so that a late writer matches no row: a resource's outcome by `resource.lease`, a node's by state and
lease. What every statement that may free a node returns is rows of (what, id, traversal, queue, label):
`ring` for messages to send, `queued` for nodes freed without one, `held` for the resources whose lease was
still ours. `nodes.py` has the functions that run them.
"""

from __future__ import annotations

# Plans are made once, maybe while the tables were empty, and must not depend on it. So every row is reached
# by its primary key from a handful of others: `x.id > 0` and the like are true of every row, and tell the
# planner that there are few rows where it would guess 100; `+ 0` keeps it off an index.
#
# How a node is reached by its id while it has a state. The second word, which is no state, keeps the planner
# off the partial indexes: a plan made while those were nearly empty would walk all of them when they are not.
QUEUED = "n.state IN ('queued', '')"
CHECKING = "n.state IN ('checking', '')"

# What `_visit` reads, out of n (node), s (stack), r (resource) and d (definition).
SEEN = """
n.id, n.kind, n.traversal, n.queue, n.label, n.retry_count, n.lost_leases,
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
        SELECT json_agg(json_build_array(
            q.id, q.name, q.physical_id, q.reference_id, q.action, q.status,
            CASE
                WHEN d.dep_attrs -> q.name ? '*' THEN q.attributes
                WHEN d.dep_attrs ? q.name THEN (
                    SELECT json_object_agg(a.name, q.attributes -> a.name)
                    FROM jsonb_array_elements_text(d.dep_attrs -> q.name) AS a(name)
                    WHERE q.attributes -> a.name IS NOT NULL)
            END,
            convert_from(q.sealed, 'UTF8')))
        FROM resource q WHERE q.stack_id = n.stack_id AND q.name = ANY(d.requires) AND q.replaced_by IS NULL)
    END
"""

LOOK = f"""
SELECT {SEEN}
FROM graph_node n
JOIN stack s ON s.id = n.stack_id
LEFT JOIN resource r ON r.id = n.resource_id
LEFT JOIN resource_definition d ON d.id = coalesce(n.definition_id, r.definition_id)
WHERE n.id = ANY(%(ids)s) AND n.lease = %(lease)s
ORDER BY n.id
"""

TAKE = f"""
WITH want AS MATERIALIZED (
    SELECT n.id, n.resource_id FROM unnest(%(ids)s) AS x(id) JOIN graph_node n ON n.id = x.id
    WHERE x.id > 0 AND n.traversal + 0 = %(traversal)s AND {QUEUED}
    ORDER BY n.id FOR UPDATE OF n SKIP LOCKED
), r AS (
    UPDATE resource r
    SET lost_at = CASE WHEN r.lease IS NULL THEN r.lost_at ELSE r.leased_until END,
        lease = %(lease)s, leased_until = clock_timestamp() + make_interval(secs => %(seconds)s)
    FROM want w WHERE r.id = w.resource_id AND (r.lease IS NULL OR r.leased_until < clock_timestamp())
    RETURNING w.id AS node_id, r.*
), free AS (
    SELECT node_id FROM r
    UNION ALL SELECT w.id FROM want w  -- none to take, or an older visit removed it meanwhile
    WHERE w.resource_id IS NULL OR NOT EXISTS (SELECT 1 FROM resource x WHERE x.id = w.resource_id)
), n AS (
    UPDATE graph_node n
    SET state = 'checking', lease = %(lease)s,
        leased_until = clock_timestamp() + make_interval(secs => %(seconds)s)
    FROM free WHERE n.id = free.node_id
    RETURNING n.*
)
"""

CLAIM = TAKE + "SELECT n.id FROM n"

# Claim and look at once: for types that call nobody. What they write is fenced by the traversal instead
# (adr/0001-one-look-for-those-who-call-nobody.md).
CLAIM_AND_LOOK = f"""
{TAKE}
SELECT {SEEN}
FROM n
JOIN stack s ON s.id = n.stack_id
LEFT JOIN r ON r.node_id = n.id
LEFT JOIN resource_definition d ON d.id = coalesce(n.definition_id, r.definition_id)
ORDER BY n.id
"""

# Somebody operates on the resource: look again when it may be free, or soon, for it is mostly a matter of
# milliseconds.
REFUSE = f"""
UPDATE graph_node n
SET state = 'waiting', rung_at = NULL, rings = 0, waiting_since = coalesce(n.waiting_since, now()),
    due_at = least(r.leased_until, clock_timestamp() + interval '1 second')
FROM resource r
WHERE n.id = ANY(%(ids)s) AND n.traversal = %(traversal)s AND {QUEUED}
    AND r.id = n.resource_id AND r.leased_until >= clock_timestamp()
"""

ROWS = """
WITH i AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%(rows)s) AS x(
        node_id bigint, resource_id bigint, stack_id bigint, name text, type text,
        action text, status text, reason text, started boolean, changed boolean,
        physical_id text, reference_id text, properties json, attributes json, metadata json, data json,
            sealed text,
        definition_id bigint, digest text, requires bigint[], input_digests text[], observed text,
        op text, attempt integer, wait_seconds float8, retried boolean, traversal bigint,
        unanswered boolean)
    WHERE x.node_id > 0 AND x.resource_id > 0 AND x.stack_id > 0
)"""

# A resource may be written while its lease is ours and, for rows with a traversal, while that is the stack's.
HELD = """r.id = i.resource_id AND r.lease = %(lease)s AND (i.traversal IS NULL
        OR i.traversal = (SELECT s.traversal FROM stack s WHERE s.id = i.stack_id))"""

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
FROM i CROSS JOIN LATERAL (
    SELECT m.id FROM graph_node m
    WHERE m.stack_id = i.stack_id AND m.resource_id = i.resource_id AND m.id <> i.node_id
        AND m.state IN ('checking', 'waiting') AND m.due_at IS NOT NULL OFFSET 0) AS held_up
WHERE n.id = held_up.id AND n.due_at IS NOT NULL
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

MARK_READY = f"""
, done AS (
    UPDATE graph_node n
    SET state = 'ready', observed_ready = true, observed_ready_at = now(), lease = NULL, leased_until = NULL,
        last_error = NULL
    FROM i JOIN r ON r.id = i.resource_id
    WHERE n.id = i.node_id AND {CHECKING} AND n.lease = %(lease)s
    RETURNING n.id, n.needed_by, i.changed
)"""

SETTLE = (
    ROWS
    + f"""
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
    FROM i WHERE {HELD}
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
    + f"""
, r AS (
    UPDATE resource r SET lease = NULL, leased_until = NULL
    FROM i WHERE {HELD} RETURNING r.id
)"""
    + MARK_READY
    + RELEASE
    + SETTLED
)

# As SETTLE, when the provider confirmed absence: the resource's row goes.
SETTLE_GONE = (
    ROWS
    + f"""
, r AS (
    DELETE FROM resource r USING i WHERE {HELD} RETURNING r.id
)"""
    + MARK_READY
    + EVENTS.replace("ORDER BY", "AND i.action IS NOT NULL ORDER BY")
    + RELEASE
    + SETTLED
)

SETTLE_NODES = (
    f"""
WITH i AS (SELECT id AS node_id FROM unnest(%(ids)s) AS id), r AS (SELECT NULL::bigint AS id WHERE false),
done AS (
    UPDATE graph_node n
    SET state = 'ready', observed_ready = true, observed_ready_at = now(), lease = NULL, leased_until = NULL,
        last_error = NULL
    FROM i WHERE n.id = i.node_id AND {CHECKING} AND n.lease = %(lease)s
    RETURNING n.id, n.needed_by, n.dirty AS changed
)"""
    + RELEASE
    + SETTLED
)

# Refused to a traversal that is over: what its planner's successor did not see being made must not be made
# any more.
BEGIN = (
    ROWS
    + f"""
, r AS (
    UPDATE resource r
    SET op = i.op, op_started_at = now(), attempt = i.attempt, action = i.action, status = 'IN_PROGRESS',
        physical_id = i.physical_id, lost_at = CASE WHEN r.attempt = i.attempt THEN r.lost_at END,
        status_reason = 'state changed', definition_id = coalesce(i.definition_id, r.definition_id),
        properties = coalesce(i.properties, r.properties),
            sealed = coalesce(convert_to(i.sealed, 'UTF8'), r.sealed),
        requires = i.requires, input_digests = i.input_digests
    FROM i WHERE {HELD}
    RETURNING r.id
)"""
    + EVENTS.replace("(i.status, i.reason)", "(NULL, NULL)").replace("ELSE true", "ELSE false")
    + "\nSELECT id FROM r"
)

# Not ready yet, or to be tried again: the operation stays open, the lease is given back, the node comes due.
WAIT = (
    ROWS
    + f"""
, r AS (
    UPDATE resource r
    SET op_started_at = CASE WHEN i.op IS NULL THEN NULL WHEN r.op = i.op THEN r.op_started_at ELSE now() END,
        op = i.op, attempt = i.attempt, action = i.action, status = 'IN_PROGRESS', status_reason = i.reason,
        physical_id = i.physical_id, properties = i.properties, data = i.data,
            sealed = convert_to(i.sealed, 'UTF8'),
        definition_id = coalesce(i.definition_id, r.definition_id), requires = i.requires,
            input_digests = i.input_digests,
        lost_at = CASE WHEN i.physical_id IS NOT NULL THEN NULL WHEN i.unanswered THEN clock_timestamp()
            ELSE r.lost_at END,
        lease = NULL, leased_until = NULL
    FROM i WHERE {HELD}
    RETURNING r.id
), done AS (
    UPDATE graph_node n
    SET state = 'waiting', lease = NULL, leased_until = NULL, rung_at = NULL, rings = 0,
        waiting_since = coalesce(n.waiting_since, now()),
            last_error = CASE WHEN i.retried THEN i.reason ELSE n.last_error END,
        retry_count = n.retry_count + i.retried::int,
        due_at = CASE WHEN i.wait_seconds IS NULL THEN 'infinity'
            ELSE clock_timestamp() + make_interval(secs => i.wait_seconds) END
    FROM i JOIN r ON r.id = i.resource_id WHERE n.id = i.node_id AND {CHECKING}
        AND n.lease = %(lease)s
)"""
    + EVENTS.replace("(i.status, i.reason)", "(NULL, NULL)").replace("ELSE true", "ELSE false")
    + WAKE
    + "\nSELECT 'held', r.id, NULL, NULL, NULL FROM r"
    + "\nUNION ALL SELECT 'ring', id, traversal, queue, label FROM woken"
)

FAIL = (
    ROWS
    + f"""
, r AS (
    UPDATE resource r
    SET op = NULL, op_started_at = NULL, action = i.action, status = 'FAILED', status_reason = i.reason,
        attempt = i.attempt,
        physical_id = i.physical_id, properties = i.properties, data = i.data,
            sealed = convert_to(i.sealed, 'UTF8'),
        definition_id = coalesce(i.definition_id, r.definition_id), requires = i.requires,
            input_digests = i.input_digests,
        observed = i.observed, observed_at = CASE WHEN i.observed IS NULL THEN NULL ELSE now() END,
        lost_at = CASE WHEN i.unanswered THEN clock_timestamp() ELSE r.lost_at END,
        lease = NULL, leased_until = NULL
    FROM i WHERE {HELD}
    RETURNING r.id
), done AS (
    UPDATE graph_node n
    SET state = 'failed', lease = NULL, leased_until = NULL, due_at = NULL, last_error = i.reason
    FROM i JOIN r ON r.id = i.resource_id  -- queued, waiting: thought lost, but its resource was still ours
    WHERE n.id = i.node_id
        AND (n.state = 'checking' AND n.lease = %(lease)s OR n.state IN ('queued', 'waiting'))
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
    f"""
WITH i AS MATERIALIZED (
    SELECT n.id AS node_id, n.stack_id,
        n.resource_id FROM graph_node n WHERE n.id = ANY(%(ids)s) AND n.lease = %(lease)s
), r AS (
    UPDATE resource r SET lease = NULL, leased_until = NULL
    FROM i WHERE r.id = i.resource_id AND r.lease = %(lease)s RETURNING r.id
), done AS (
    UPDATE graph_node n SET state = 'dropped', lease = NULL, leased_until = NULL
    FROM i WHERE n.id = i.node_id AND {CHECKING}
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
