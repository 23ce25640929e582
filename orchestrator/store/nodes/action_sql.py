"""Outcomes of visits that bring a resource to no other definition: an action completed, a refreshed row, an
unhealthy resource, a refused action.
"""

from __future__ import annotations

from typing import Final

from orchestrator.store.nodes.outcome_builder import Next, NodeEffect, OutcomeStatement, state_events

# CHECK, SUSPEND, RESUME or SNAPSHOT is complete: the definition the resource was built from stays.
SETTLE_ACTION: Final = OutcomeStatement(
    "settle_action",
    resource="""action = i.action, status = 'COMPLETE', status_reason = i.reason,
        reference_id = i.reference_id, properties = i.properties, attributes = i.attributes,
        metadata = i.metadata, data = i.data, sealed = convert_to(i.sealed, 'UTF8'),
        value_digest = i.value_digest, updated_at = now(),
        suspended = CASE i.action WHEN 'SUSPEND' THEN true WHEN 'RESUME' THEN false ELSE r.suspended END,
        observed = i.observed, observed_at = now(), observed_reason = NULL, repair = NULL,
        unreachable_since = NULL, unreachable_reason = NULL,
        op = NULL, op_started_at = NULL, lost_at = NULL, lease = NULL, leased_until = NULL""",
)

# As SETTLE_UNCHANGED, with a stale row: the resource was not COMPLETE, or its outputs differ by now.
SETTLE_REFRESHED: Final = OutcomeStatement(
    "settle_refreshed",
    resource="""action = i.action, status = 'COMPLETE', status_reason = i.reason,
        physical_id = i.physical_id, reference_id = i.reference_id, properties = i.properties,
        attributes = i.attributes, metadata = i.metadata, data = i.data,
        sealed = convert_to(i.sealed, 'UTF8'), lost_at = NULL,
        value_digest = i.value_digest, updated_at = now(), marked_unhealthy = false,
        definition_id = i.definition_id, built_digest = decode(i.digest, 'hex'), requires = i.requires,
        input_digests = i.input_digests, observed = i.observed, observed_at = now(), observed_reason = NULL,
        repair = NULL, unreachable_since = NULL, unreachable_reason = NULL,
        lease = NULL, leased_until = NULL""",
)

# NULL `status`: the state of the resource does not permit this action, or it could not be observed; leave the
# resource unchanged. Only a CHECK that the provider did not answer is IN_PROGRESS: the last observation stays
# valid.
_UNHEALTHY: Final = """action = CASE WHEN i.status IS NULL THEN r.action ELSE i.action END,
        status = coalesce(i.status, CASE WHEN r.op IS NULL THEN r.status
            WHEN r.observed = 'failed' THEN 'FAILED' ELSE 'COMPLETE' END),
        status_reason = CASE WHEN i.status IS NULL AND r.op IS NULL THEN r.status_reason ELSE i.reason END,
        observed = coalesce(i.observed, r.observed),
        observed_at = CASE WHEN i.observed IS NULL THEN r.observed_at ELSE now() END,
        repair = CASE WHEN i.observed IS NULL THEN r.repair END,
        observed_reason = CASE WHEN i.observed IS NULL THEN r.observed_reason ELSE i.reason END,
        unreachable_since = CASE WHEN i.unreachable THEN coalesce(r.unreachable_since, now())
            WHEN i.observed IS NULL THEN r.unreachable_since END,
        unreachable_reason = CASE WHEN i.unreachable THEN i.reason
            WHEN i.observed IS NULL THEN r.unreachable_reason END,
        op = NULL, op_started_at = NULL,  -- only the CHECK of a stack has one open
        lease = NULL, leased_until = NULL"""
_FAILURE: Final = """
    INSERT INTO failure (stack_id, traversal, resource_name, reason, resource_type, physical_id, action,
        attempts)
    SELECT stack_id, traversal, name, reason, type, physical_id, action, retry_count + 1 FROM done
"""
_UNHEALTHY_EVENTS: Final = state_events(when="i.status IS NOT NULL")


def _failed(reason: str) -> NodeEffect:
    """Return the effect on a node that fails for this reason, an SQL expression."""
    return NodeEffect(
        set=f"state = 'failed', lease = NULL, leased_until = NULL, due_at = NULL, last_error = {reason}",
        returning="""n.id, n.stack_id, n.traversal, n.needed_by, true AS changed, i.name,
        n.last_error AS reason, i.type, i.physical_id, i.action, n.retry_count""",
    )


_REASON: Final = "CASE i.action WHEN 'CHECK' THEN i.name || ': ' || i.reason ELSE i.reason END"

# The CHECK of a stack found an unhealthy resource. Its dependents are checked all the same; the stack fails
# in the end.
CHECK_FAILED: Final = OutcomeStatement(
    "check_failed",
    resource=_UNHEALTHY,
    node=_failed(_REASON),
    failure=_FAILURE,
    events=_UNHEALTHY_EVENTS,
)

# Any other action stops at an unhealthy resource.
FAIL_INVALID_STATE: Final = OutcomeStatement(
    "fail_invalid_state",
    resource=_UNHEALTHY,
    node=_failed(_REASON),
    failure=_FAILURE,
    halts=True,
    events=_UNHEALTHY_EVENTS,
    next=Next.BLOCKED,
)

# The environment forbids the action.
RESTRICT: Final = OutcomeStatement(
    "restrict",
    resource=_UNHEALTHY,
    node=_failed("'ResourceActionRestricted: resources.' || i.name || ': ' || i.reason"),
    failure=_FAILURE,
    halts=True,
    events=state_events(status="('FAILED', i.reason)"),
    next=Next.BLOCKED,
)

STATEMENTS: Final = (SETTLE_ACTION, SETTLE_REFRESHED, CHECK_FAILED, FAIL_INVALID_STATE, RESTRICT)

# The snapshot of a resource, requested by a stack's SNAPSHOT: written before the provider is asked, and again
# with its answer. Writes nothing when the stack's snapshot is gone.
UPSERT_RESOURCE_SNAPSHOT = """
INSERT INTO resource_snapshot AS stored (snapshot_id, name, type, runs_as, token, physical_id, action, status,
    metadata, data, sealed, kept)
SELECT s.id, %(name)s, %(type)s, %(runs_as)s, %(token)s, %(physical_id)s, 'SNAPSHOT', 'COMPLETE',
    %(metadata)s::json, %(data)s::json, %(sealed)s::bytea, %(kept)s::bytea
FROM snapshot s WHERE s.stack_id = %(stack_id)s AND s.traversal = %(traversal)s
ON CONFLICT (snapshot_id, name) DO UPDATE
SET metadata = excluded.metadata, data = excluded.data, sealed = excluded.sealed,
    kept = coalesce(excluded.kept, stored.kept)
RETURNING token, kept
"""

# The snapshot that an older traversal requested and did not see completed.
UNFINISHED_RESOURCE_SNAPSHOT = """
SELECT c.token, c.kept FROM snapshot s JOIN resource_snapshot c ON c.snapshot_id = s.id AND c.name = %(name)s
WHERE s.stack_id = %(stack_id)s AND c.physical_id = %(physical_id)s ORDER BY c.id DESC LIMIT 1
"""
