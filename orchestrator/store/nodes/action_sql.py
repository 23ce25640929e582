"""How a visit ends that brings its resource to no other template: checked, suspended, resumed, copied; seen
to be as wanted; or found faulty. In the forms of `outcome_sql.py`.
"""

from __future__ import annotations

from orchestrator.store.nodes.outcome_builder import (
    EVENTS,
    HALTS,
    LEASE_IS_OURS,
    MARK_READY,
    RELEASE,
    RESOURCE_LEASE_IS_OURS,
    ROWS,
    SETTLED,
    WAKE,
    variants,
)

# What an action did: the resource is built as it was.
SETTLE_ACT = (
    ROWS
    + f"""
, r AS (
    UPDATE resource r
    SET action = i.action, status = 'COMPLETE', status_reason = i.reason, reference_id = i.reference_id,
        properties = i.properties, attributes = i.attributes, metadata = i.metadata, data = i.data,
        sealed = convert_to(i.sealed, 'UTF8'), value_digest = i.value_digest, updated_at = now(),
        suspended = CASE i.action WHEN 'SUSPEND' THEN true WHEN 'RESUME' THEN false ELSE r.suspended END,
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

# As SETTLE_SAME, when it had not been COMPLETE, or was looked at and hands on something else by now.
SETTLE_REFRESHED = (
    ROWS
    + f"""
, r AS (
    UPDATE resource r
    SET action = i.action, status = 'COMPLETE', status_reason = i.reason, reference_id = i.reference_id,
        properties = i.properties, attributes = i.attributes, metadata = i.metadata, data = i.data,
        sealed = convert_to(i.sealed, 'UTF8'), value_digest = i.value_digest, updated_at = now(),
        definition_id = i.definition_id, built_digest = decode(i.digest, 'hex'), requires = i.requires,
        input_digests = i.input_digests, observed = i.observed, observed_at = now(),
        lease = NULL, leased_until = NULL
    FROM i WHERE {RESOURCE_LEASE_IS_OURS}
    RETURNING r.id
)"""
    + MARK_READY
    + EVENTS
    + RELEASE
    + SETTLED
)

# `status` is null for a resource in no state for what the stack does: it stays as it is.
_TEXT = "CASE i.action WHEN 'CHECK' THEN i.name || ': ' || i.reason ELSE i.reason END"
_FAULTY = (
    ROWS
    + f"""
, r AS (
    UPDATE resource r
    SET action = CASE WHEN i.status IS NULL THEN r.action ELSE i.action END,
        status = coalesce(i.status, r.status),
        status_reason = CASE WHEN i.status IS NULL THEN r.status_reason ELSE i.reason END,
        observed = i.observed, observed_at = CASE WHEN i.observed IS NULL THEN NULL ELSE now() END,
        op = NULL, op_started_at = NULL,  -- of a stack's CHECK: others open none
        lease = NULL, leased_until = NULL
    FROM i WHERE {RESOURCE_LEASE_IS_OURS}
    RETURNING r.id
), done AS (
    UPDATE graph_node n
    SET state = 'failed', lease = NULL, leased_until = NULL, due_at = NULL, last_error = {_TEXT}
    FROM i JOIN r ON r.id = i.resource_id
    WHERE n.id = ANY (ARRAY[i.node_id]) AND {LEASE_IS_OURS}
    RETURNING n.id, n.stack_id, n.traversal, n.needed_by, true AS changed, i.name, n.last_error AS reason,
        i.type, i.physical_id, i.action, n.retry_count
), cause AS (
    INSERT INTO failure (stack_id, traversal, resource_name, reason, resource_type, physical_id, action,
        attempts)
    SELECT stack_id, traversal, name, reason, type, physical_id, action, retry_count + 1 FROM done
)"""
    + EVENTS.replace("ELSE true", "ELSE i.status IS NOT NULL")
)

# A CHECK found a fault, and goes on to what requires it: the stack fails in the end.
CHECK_FAILED = _FAULTY + RELEASE + SETTLED

# Any other action stops here.
FAIL_INVALID_STATE = (
    _FAULTY
    + HALTS
    + WAKE
    + "\nSELECT 'held', r.id, NULL, NULL, NULL FROM r"
    + "\nUNION ALL SELECT 'ring', id, traversal, queue, label FROM woken"
)

# What the environment forbids is refused with the same end, and told.
RESTRICT = (
    FAIL_INVALID_STATE.replace(_TEXT, "'ResourceActionRestricted: resources.' || i.name || ': ' || i.reason")
    .replace("(i.status, i.reason)", "('FAILED', i.reason)")
    .replace("ELSE i.status IS NOT NULL", "ELSE true")
)

UNCLAIMED, OF_ONE = variants((SETTLE_ACT, SETTLE_REFRESHED, CHECK_FAILED, FAIL_INVALID_STATE, RESTRICT))

# A copy that a snapshot asked for: written before the request, with what came back, and with what it is a
# copy of. Nothing when the snapshot is gone.
UPSERT_RESOURCE_SNAPSHOT = """
INSERT INTO resource_snapshot AS known (snapshot_id, name, type, runs_as, token, physical_id, action, status,
    metadata, data, sealed, kept)
SELECT s.id, %(name)s, %(type)s, %(runs_as)s, %(token)s, %(physical_id)s, 'SNAPSHOT', 'COMPLETE',
    %(metadata)s::json, %(data)s::json, %(sealed)s::bytea, %(kept)s::bytea
FROM snapshot s WHERE s.stack_id = %(stack_id)s AND s.traversal = %(traversal)s
ON CONFLICT (snapshot_id, name) DO UPDATE
SET metadata = excluded.metadata, data = excluded.data, sealed = excluded.sealed,
    kept = coalesce(excluded.kept, known.kept)
RETURNING token, kept
"""

# The copy that an older traversal asked for and did not see the end of.
COPY_BEGUN = """
SELECT c.token, c.kept FROM snapshot s JOIN resource_snapshot c ON c.snapshot_id = s.id AND c.name = %(name)s
WHERE s.stack_id = %(stack_id)s AND c.physical_id = %(physical_id)s ORDER BY c.id DESC LIMIT 1
"""
