"""How a visit ends, in SQL: one statement that writes the outcome, marks the node and frees its dependents.

Each comes in four forms: for a node that was claimed and for one that was not (operations/adr/0001), for
several rows and for just one (`outcome_builder.py`). `nodes.write` picks. A late writer matches no row: a
resource is fenced by its lease, a node by its state. What is returned is rows of (what, id, traversal, queue,
label): `ring` for messages to send, `queued` for nodes freed without one, `held` for the resources that were
ours to write.
"""

from __future__ import annotations

from orchestrator.store.nodes.outcome_builder import (
    EVENTS,
    HALTS,
    LEASE_IS_OURS,
    MARK_READY,
    OURS_OR_THOUGHT_LOST,
    RELEASE,
    RESOURCE_LEASE_IS_OURS,
    ROWS,
    SETTLED,
    WAKE,
    WOKEN,
    variants,
)
from orchestrator.store.nodes.visit_sql import CHECKING, QUEUED

WAKE_NEWER_TRAVERSALS = f"""
WITH i AS (SELECT n.id AS node_id, n.stack_id, n.resource_id FROM graph_node n WHERE n.id = ANY(%(ids)s)),
    woken AS ({WOKEN})
SELECT 'ring', id, traversal, queue, label FROM woken
"""

SETTLE = (
    ROWS
    + f"""
, r AS (
    UPDATE resource r
    SET action = i.action, status = i.status, status_reason = i.reason, physical_id = i.physical_id,
        reference_id = i.reference_id, properties = i.properties, attributes = i.attributes,
            metadata = i.metadata, data = i.data,
        sealed = convert_to(i.sealed, 'UTF8'), definition_id = i.definition_id,
            built_digest = decode(i.digest, 'hex'), type = i.type, runs_as = i.runs_as,
        requires = i.requires, input_digests = i.input_digests, value_digest = i.value_digest,
        attempt = greatest(r.attempt, 1),
        updated_at = CASE WHEN i.action = 'CREATE' THEN r.updated_at ELSE now() END,
        observed = i.observed, observed_at = now(),
        op = NULL, op_started_at = NULL, lost_at = NULL, lease = NULL, leased_until = NULL
    FROM i WHERE {RESOURCE_LEASE_IS_OURS}
    RETURNING r.id
)"""
    + MARK_READY
    + EVENTS
    + RELEASE
    + SETTLED
)

# As SETTLE, when what is there is what is wanted: what it stands on is brought up to date.
SETTLE_UNCHANGED = (
    ROWS
    + f"""
, r AS (
    UPDATE resource r
    SET definition_id = i.definition_id, built_digest = decode(i.digest, 'hex'), requires = i.requires,
        input_digests = i.input_digests, type = i.type, runs_as = i.runs_as, lease = NULL, leased_until = NULL
    FROM i WHERE {RESOURCE_LEASE_IS_OURS} RETURNING r.id
)"""
    + MARK_READY
    + RELEASE
    + SETTLED
)

# An operation for an older definition has ended: the resource is settled as that one built it, and its node
# goes round again.
SETTLE_PREVIOUS_OPERATION = (
    ROWS
    + f"""
, r AS (
    UPDATE resource r
    SET action = i.action, status = i.status, status_reason = i.reason, physical_id = i.physical_id,
        reference_id = i.reference_id, properties = i.properties, attributes = i.attributes,
        metadata = i.metadata, data = i.data, sealed = convert_to(i.sealed, 'UTF8'),
        built_digest = (SELECT d.digest FROM resource_definition d WHERE d.id = ANY (ARRAY[r.definition_id])),
        suspended = CASE i.action WHEN 'SUSPEND' THEN true WHEN 'RESUME' THEN false ELSE r.suspended END,
        value_digest = i.value_digest, attempt = greatest(r.attempt, 1), updated_at = now(),
        requires = i.requires, input_digests = i.input_digests,
        observed = i.observed, observed_at = now(),
        op = NULL, op_started_at = NULL, lost_at = NULL, lease = NULL, leased_until = NULL
    FROM i WHERE {RESOURCE_LEASE_IS_OURS}
    RETURNING r.id
), done AS (
    UPDATE graph_node n
    SET state = 'queued', lease = NULL, leased_until = NULL, rung_at = now(), rings = 0, last_error = NULL
    FROM i JOIN r ON r.id = i.resource_id
    WHERE n.id = ANY (ARRAY[i.node_id]) AND {LEASE_IS_OURS}
    RETURNING n.id, n.traversal, n.queue, n.label
)"""
    + EVENTS
    + """
SELECT 'held', r.id, NULL, NULL, NULL FROM r
UNION ALL SELECT 'ring', id, traversal, queue, label FROM done
"""
)

# Another takes its place: it is made by the same node, and the old one goes when nobody stands on it. Users
# read of the old one that its update is over (`started`), as Heat tells it.
REPLACE = (
    ROWS
    + f"""
, fresh AS MATERIALIZED (
    SELECT i.resource_id, nextval('resource_id_seq') AS id FROM i
)
, r AS (
    UPDATE resource r
    SET leftover = true, lease = NULL, leased_until = NULL,
        replaced_by = (SELECT fresh.id FROM fresh WHERE fresh.resource_id = r.id)
    FROM i WHERE {RESOURCE_LEASE_IS_OURS}
    RETURNING r.id, r.replaced_by
), made AS (
    INSERT INTO resource (id, uuid, stack_id, name, type, runs_as, replaces)
    OVERRIDING SYSTEM VALUE
    SELECT r.replaced_by, gen_random_uuid(), i.stack_id, i.name, d.body ->> 'type', d.body ->> 'runs_as', r.id
    FROM i JOIN r ON r.id = i.resource_id JOIN resource_definition d ON d.id = ANY (ARRAY[i.definition_id])
    RETURNING id, replaces
), done AS (
    UPDATE graph_node n
    SET state = 'queued', resource_id = m.id, lease = NULL, leased_until = NULL, rung_at = now(), rings = 0,
        retry_count = 0, last_error = NULL
    FROM i JOIN made m ON m.replaces = i.resource_id
    WHERE n.id = ANY (ARRAY[i.node_id]) AND {LEASE_IS_OURS}
    RETURNING n.id, n.traversal, n.queue, n.label
), told AS (
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason)
    SELECT i.stack_id, i.name, i.type, i.physical_id, 'UPDATE', x.status, 'state changed'
    FROM i JOIN r ON r.id = i.resource_id
    CROSS JOIN (VALUES (1, 'IN_PROGRESS'), (2, 'COMPLETE')) AS x(nth, status)
    WHERE i.started ORDER BY i.node_id, x.nth
)
SELECT 'held', r.id, NULL, NULL, NULL FROM r
UNION ALL SELECT 'ring', id, traversal, queue, label FROM done
"""
)

# As SETTLE, when nothing changed: the resource keeps its row as it is.
SETTLE_CLEANUP_KEPT = (
    ROWS
    + f"""
, r AS (
    UPDATE resource r SET lease = NULL, leased_until = NULL
    FROM i WHERE {RESOURCE_LEASE_IS_OURS} RETURNING r.id
)"""
    + MARK_READY
    + RELEASE
    + SETTLED
)

# As SETTLE, when the provider confirmed absence: the resource's row goes.
SETTLE_DELETED = (
    ROWS
    + f"""
, r AS (
    DELETE FROM resource r USING i WHERE {RESOURCE_LEASE_IS_OURS} RETURNING r.id
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
    FROM i WHERE n.id = ANY (ARRAY[i.node_id]) AND {LEASE_IS_OURS}
    RETURNING n.id, n.needed_by, n.dirty AS changed
)"""
    + RELEASE
    + SETTLED
)

# What none of its requirements handed anything new: as it is wanted, without a visit
# (docs/internals/protocol.md rule 8).
SETTLE_CLEAN_NODES = (
    """
WITH i AS (SELECT NULL::bigint AS node_id WHERE false), r AS (SELECT NULL::bigint AS id WHERE false),
clean AS MATERIALIZED (
    SELECT n.id FROM unnest(%(ids)s::bigint[]) AS x(id) JOIN graph_node n ON n.id = ANY (ARRAY[x.id])
    JOIN stack s ON s.id = ANY (ARRAY[n.stack_id])
    WHERE x.id > 0 AND n.state = 'queued' AND NOT n.dirty AND s.traversal = n.traversal
        AND s.halted_traversal IS DISTINCT FROM s.traversal
    ORDER BY x.id FOR UPDATE OF n SKIP LOCKED
), done AS (
    UPDATE graph_node n SET state = 'ready', observed_ready = true, observed_ready_at = now(), rung_at = NULL
    FROM clean WHERE n.id = ANY (ARRAY[clean.id])
    RETURNING n.id, n.needed_by, false AS changed
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
        properties = coalesce(i.properties, r.properties), metadata = coalesce(i.metadata, r.metadata),
            sealed = coalesce(convert_to(i.sealed, 'UTF8'), r.sealed),
        requires = i.requires, input_digests = i.input_digests
    FROM i WHERE {RESOURCE_LEASE_IS_OURS}
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
        physical_id = i.physical_id, properties = i.properties, data = i.data, metadata = i.metadata,
            sealed = convert_to(i.sealed, 'UTF8'),
        definition_id = coalesce(i.definition_id, r.definition_id), requires = i.requires,
            input_digests = i.input_digests,
        lost_at = CASE WHEN i.unanswered THEN clock_timestamp() WHEN i.physical_id IS NULL THEN r.lost_at END,
        lease = NULL, leased_until = NULL
    FROM i WHERE {RESOURCE_LEASE_IS_OURS}
    RETURNING r.id
), done AS (
    UPDATE graph_node n
    SET state = 'waiting', lease = NULL, leased_until = NULL, rung_at = NULL, rings = 0, lost_leases = 0,
        waiting_since = coalesce(n.waiting_since, now()),
            last_error = CASE WHEN i.retried THEN i.reason ELSE n.last_error END,
        retry_count = n.retry_count + i.retried::int,
        due_at = CASE WHEN i.wait_seconds IS NULL THEN 'infinity'
            ELSE clock_timestamp() + make_interval(secs => i.wait_seconds) END
    FROM i JOIN r ON r.id = i.resource_id WHERE n.id = ANY (ARRAY[i.node_id]) AND {LEASE_IS_OURS}
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
        built_digest = CASE WHEN i.action = 'UPDATE' THEN NULL ELSE r.built_digest END,  -- half of each
        observed = i.observed, observed_at = CASE WHEN i.observed IS NULL THEN NULL ELSE now() END,
        lost_at = CASE WHEN i.unanswered THEN clock_timestamp() ELSE r.lost_at END,
        lease = NULL, leased_until = NULL
    FROM i WHERE {RESOURCE_LEASE_IS_OURS}
    RETURNING r.id
), done AS (
    UPDATE graph_node n
    SET state = 'failed', lease = NULL, leased_until = NULL, due_at = NULL, last_error = i.reason
    FROM i JOIN r ON r.id = i.resource_id  -- queued, waiting: thought lost, but its resource was still ours
    WHERE n.id = ANY (ARRAY[i.node_id]) AND {OURS_OR_THOUGHT_LOST}
    RETURNING n.id, n.stack_id, n.traversal, i.name, i.reason, i.type, i.physical_id, i.action, n.retry_count
), cause AS (
    INSERT INTO failure (stack_id, traversal, resource_name, reason, resource_type, physical_id, action,
        attempts)
    SELECT stack_id, traversal, name, reason, type, physical_id, action, retry_count + 1 FROM done ORDER BY id
)"""
    + HALTS
    + EVENTS
    + WAKE
    + "\nSELECT 'held', r.id, NULL, NULL, NULL FROM r"
    + "\nUNION ALL SELECT 'ring', id, traversal, queue, label FROM woken"
)

UNCLAIMED, OF_ONE = variants(
    (
        SETTLE,
        SETTLE_UNCHANGED,
        SETTLE_PREVIOUS_OPERATION,
        SETTLE_CLEANUP_KEPT,
        SETTLE_DELETED,
        REPLACE,
        WAIT,
        FAIL,
    )
)

# The traversal is over for these nodes: give everything back and wake who was held up.
DROP = (
    f"""
WITH i AS MATERIALIZED (
    SELECT n.id AS node_id, n.stack_id,
        n.resource_id FROM graph_node n WHERE n.id = ANY(%(ids)s) AND n.lease = %(lease)s
), r AS (
    UPDATE resource r SET lease = NULL, leased_until = NULL
    FROM i WHERE r.id = ANY (ARRAY[i.resource_id]) AND r.lease = %(lease)s RETURNING r.id
), done AS (
    UPDATE graph_node n SET state = 'dropped', lease = NULL, leased_until = NULL
    FROM i WHERE n.id = ANY (ARRAY[i.node_id]) AND {CHECKING}
)"""
    + WAKE
    + """
SELECT 'held', r.id, NULL, NULL, NULL FROM r UNION ALL SELECT 'ring', id, traversal, queue, label FROM woken
"""
)

DROP_UNCLAIMED = f"""
UPDATE graph_node n SET state = 'dropped', rung_at = NULL
FROM unnest(%(ids)s) AS x(id), stack s
WHERE x.id > 0 AND n.id = ANY (ARRAY[x.id]) AND {QUEUED} AND s.id = ANY (ARRAY[n.stack_id])
    AND (s.traversal <> n.traversal OR s.halted_traversal = n.traversal)
"""
