"""Outcomes of visits: the statements that write a resource, change its node and release the dependents.

Values for `outcome_builder.render`; outcomes of actions are in `action_sql.py`. A late writer matches no row:
a resource is fenced by its lease, a node by its state. `repository.write_outcome` runs them.
"""

from __future__ import annotations

from typing import Final

from orchestrator.engine.check.refusals import OUTAGE_TRIES
from orchestrator.store.nodes.outcome_builder import (
    RELEASED_ROWS,
    STARTED_EVENT,
    WAKE_BLOCKED,
    WAKE_WAITING_NODE,
    WOKEN_ROWS,
    EventRule,
    Next,
    NodeEffect,
    OutcomeStatement,
    release,
    render,
    state_events,
)
from orchestrator.store.nodes.outcome_fences import LEASED_NODE
from orchestrator.store.nodes.visit_sql import CHECKING, QUEUED
from orchestrator.store.tables.base import IS_CHANGED_INPUT

SETTLE: Final = OutcomeStatement(
    "settle",
    resource="""action = i.action, status = i.status, status_reason = i.reason, physical_id = i.physical_id,
        reference_id = i.reference_id, properties = i.properties, attributes = i.attributes,
        metadata = i.metadata, data = i.data,
        sealed = convert_to(i.sealed, 'UTF8'), definition_id = i.definition_id,
        built_digest = decode(i.digest, 'hex'), type = i.type, runs_as = i.runs_as,
        requires = i.requires, input_digests = i.input_digests, value_digest = i.value_digest,
        attempt = greatest(r.attempt, 1),
        updated_at = CASE WHEN i.action = 'CREATE' THEN r.updated_at ELSE now() END,
        observed = i.observed, observed_at = now(), observed_reason = NULL, repair = NULL,
        unreachable_since = NULL, unreachable_reason = NULL,
        op = NULL, op_started_at = NULL, lost_at = NULL, lease = NULL, leased_until = NULL""",
)

# The resource matches its definition: only the definition and the requirements of the row are updated.
SETTLE_UNCHANGED: Final = OutcomeStatement(
    "settle_unchanged",
    resource="""definition_id = i.definition_id, built_digest = decode(i.digest, 'hex'),
        requires = i.requires, input_digests = i.input_digests, type = i.type, runs_as = i.runs_as,
        lease = NULL, leased_until = NULL""",
    events=None,
)

# An operation for an older definition has ended: the resource is settled as built from that definition, and
# its node is visited again.
SETTLE_PREVIOUS_OPERATION: Final = OutcomeStatement(
    "settle_previous_operation",
    resource="""action = i.action, status = i.status, status_reason = i.reason, physical_id = i.physical_id,
        reference_id = i.reference_id, properties = i.properties, attributes = i.attributes,
        metadata = i.metadata, data = i.data, sealed = convert_to(i.sealed, 'UTF8'),
        built_digest = (SELECT d.digest FROM resource_definition d WHERE d.id = ANY (ARRAY[r.definition_id])),
        suspended = CASE i.action WHEN 'SUSPEND' THEN true WHEN 'RESUME' THEN false ELSE r.suspended END,
        value_digest = i.value_digest, attempt = greatest(r.attempt, 1), updated_at = now(),
        requires = i.requires, input_digests = i.input_digests,
        observed = i.observed, observed_at = now(), observed_reason = NULL, repair = NULL,
        unreachable_since = NULL, unreachable_reason = NULL,
        op = NULL, op_started_at = NULL, lost_at = NULL, lease = NULL, leased_until = NULL""",
    node=NodeEffect(
        set="""state = 'queued', lease = NULL, leased_until = NULL, enqueued_at = now(), re_enqueues = 0,
        last_error = NULL, absent = false, refusal = NULL, refused_since = NULL""",
        returning="n.id, n.traversal, n.queue, n.label",
    ),
    next=Next.NODE,
)

DEPOSE: Final = """deposed = true, lease = NULL, leased_until = NULL,
        replaced_by = (SELECT new_ids.id FROM new_ids WHERE new_ids.resource_id = r.id)"""

# Replace: this node creates the replacement; the deposed resource is deleted once no other resource requires
# it. Like in Heat, its events show a completed update, unless it was unhealthy before (`started`).
REPLACE: Final = OutcomeStatement(
    "replace",
    resource=DEPOSE,
    returning="r.id, r.replaced_by",
    replacement="""
    INSERT INTO resource (id, uuid, stack_id, name, type, runs_as, replaces)
    OVERRIDING SYSTEM VALUE
    SELECT r.replaced_by, gen_random_uuid(), i.stack_id, i.name, d.body ->> 'type', d.body ->> 'runs_as', r.id
    FROM i JOIN r ON r.id = i.resource_id JOIN resource_definition d ON d.id = ANY (ARRAY[i.definition_id])
    RETURNING id, replaces
""",
    node=NodeEffect(
        set="""state = 'queued', resource_id = m.id, lease = NULL, leased_until = NULL, enqueued_at = now(),
        re_enqueues = 0, retry_count = 0, last_error = NULL, absent = false, refusal = NULL,
        refused_since = NULL""",
        source="JOIN replacement m ON m.replaces = i.resource_id",
        returning="n.id, n.traversal, n.queue, n.label",
    ),
    events=EventRule(
        """
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason,
        automatic)
    SELECT i.stack_id, i.name, i.type, i.physical_id, 'UPDATE', x.status, x.reason,
        coalesce(i.automatic, false)
    FROM i JOIN r ON r.id = i.resource_id
    CROSS JOIN (VALUES (1, 'IN_PROGRESS', 'state changed'), (2, 'COMPLETE', 'replaced by a new resource'))
        AS x(nth, status, reason)
    WHERE i.started""",
        "x.nth",
    ),
    next=Next.NODE,
)

# A cleanup node whose resource stays: the row is unchanged.
SETTLE_CLEANUP_KEPT: Final = OutcomeStatement(
    "settle_cleanup_kept", resource="lease = NULL, leased_until = NULL", events=None
)

# The provider confirmed that the object is absent: the row is deleted. NULL `action`: without an event.
SETTLE_DELETED: Final = OutcomeStatement(
    "settle_deleted", resource=None, events=state_events(unless_silent=" AND i.action IS NOT NULL")
)

# When the request of the visit may have been sent last, NULL if it was answered.
_LOST_AT: Final = "clock_timestamp() - make_interval(secs => i.lost_seconds)"
_UNREACHABLE: Final = """
        unreachable_since = CASE WHEN i.unreachable THEN coalesce(r.unreachable_since, now()) END,
        unreachable_reason = CASE WHEN i.unreachable THEN i.reason END"""
# The end of an outage ends the count of its attempts; a long one lets the other refusals start anew.
_WAITING: Final = NodeEffect(
    set=f"""state = 'waiting', lease = NULL, leased_until = NULL, enqueued_at = NULL, re_enqueues = 0,
        lost_leases = 0, waiting_since = CASE WHEN n.unreachable_tries > 0 AND NOT i.outage THEN now()
            ELSE coalesce(n.waiting_since, now()) END,
        last_error = CASE WHEN i.retried OR i.refusal IS NOT NULL THEN i.reason
            WHEN n.unreachable_tries = 0 AND n.refusal IS NULL THEN n.last_error END,
        retry_count = n.retry_count + i.retried::int,
        unreachable_tries = CASE WHEN i.outage THEN least(n.unreachable_tries + 1, 1000) ELSE 0 END,
        refusal = i.refusal,
        refused_since = CASE WHEN i.outage THEN
                CASE WHEN n.unreachable_tries + 1 < {OUTAGE_TRIES} THEN n.refused_since END
            WHEN i.refusal IS NULL THEN n.refused_since
            ELSE jsonb_build_object(i.refusal, extract(epoch FROM now())) || coalesce(n.refused_since, '{{}}')
            END,
        absent = i.absent AND i.refusal IS NULL,
        due_at = CASE WHEN i.wait_seconds IS NULL THEN 'infinity'
            ELSE clock_timestamp() + make_interval(secs => i.wait_seconds) END"""
)

# The attributes of a resource whose operation has not ended: they are encrypted with its other values.
_KEPT_ATTRIBUTES: Final = """CASE WHEN i.sealed IS NOT NULL THEN NULL WHEN r.sealed IS NULL THEN r.attributes
            ELSE i.attributes END"""

# Not ready yet, or a retry is due later: the operation stays open, the lease is released, the node waits.
# An outage ends with the next attempt, at the earliest. With a `status`, the stack has failed before the end
# of the operation, which is followed; `aborted` if this is new.
_WAITING_COLUMNS: Final = f"""op_started_at = CASE WHEN i.op IS NULL THEN NULL
            WHEN r.op = i.op THEN r.op_started_at ELSE now() END,
        reachable_since = CASE WHEN i.refusal IS NOT NULL
            THEN clock_timestamp() + make_interval(secs => i.wait_seconds) ELSE r.reachable_since END,
        op = i.op, attempt = i.attempt, action = i.action, status = coalesce(i.status, 'IN_PROGRESS'),
        status_reason = i.reason,
        physical_id = i.physical_id, properties = i.properties, data = i.data, metadata = i.metadata,
        sealed = convert_to(i.sealed, 'UTF8'),
        definition_id = coalesce(i.definition_id, r.definition_id), requires = i.requires,
        input_digests = i.input_digests,
        lost_at = coalesce({_LOST_AT}, CASE WHEN i.physical_id IS NULL THEN r.lost_at END),
        step = CASE WHEN r.op = i.op THEN r.step END,
        requested_at = CASE WHEN i.requested THEN clock_timestamp() WHEN r.op = i.op THEN r.requested_at END,
        {_UNREACHABLE},
        lease = NULL, leased_until = NULL"""
WAIT: Final = OutcomeStatement(
    "wait",
    resource=f"""{_WAITING_COLUMNS},
        attributes = {_KEPT_ATTRIBUTES}""",
    node=_WAITING,
    events=state_events(when="i.aborted"),
    next=Next.BLOCKED,
)

# The object exists and is not ready: its dependents that need no more are released, each once (adr/0015).
# They see its ids and, if it has all of them, its early attributes. `early_needed_by` stays: what is missing
# in `needed_by` was released.
WAIT_EARLY: Final = OutcomeStatement(
    "wait_early",
    resource=f"""{_WAITING_COLUMNS},
        reference_id = i.reference_id, attributes = i.attributes, value_digest = i.value_digest""",
    node=NodeEffect(
        before=""", early AS MATERIALIZED (
    SELECT n.id, ARRAY(
        SELECT m.id FROM unnest(n.early_needed_by) AS x(id) JOIN graph_node m ON m.id = ANY (ARRAY[x.id])
            LEFT JOIN resource_definition d ON d.id = ANY (ARRAY[m.definition_id])
        WHERE m.id = ANY (n.needed_by)
            AND (i.has_early_attributes OR NOT coalesce(d.dep_attrs ? i.name, true))
    ) AS needed_by
    FROM i JOIN graph_node n ON n.id = ANY (ARRAY[i.node_id])
)""",
        set=f"""{_WAITING.set},
        needed_by = ARRAY(SELECT d FROM unnest(n.needed_by) AS d WHERE d <> ALL (early.needed_by))""",
        source="JOIN r ON r.id = i.resource_id JOIN early ON early.id = i.node_id",
        returning="n.id, early.needed_by, true AS changed",
    ),
    events=WAIT.events,
    next=Next.EARLY,
)

# No operation is open and nothing was changed: the row keeps its status.
POSTPONE: Final = OutcomeStatement(
    "postpone",
    resource=f"{_UNREACHABLE}, lease = NULL, leased_until = NULL",
    node=_WAITING,
    events=None,
    next=Next.BLOCKED,
)

# An update that failed leaves a resource that matches neither definition: it has no `built_digest`.
FAIL: Final = OutcomeStatement(
    "fail",
    resource=f"""op = NULL, op_started_at = NULL, action = i.action, status = 'FAILED',
        status_reason = i.reason, attempt = i.attempt,
        physical_id = i.physical_id, properties = i.properties, data = i.data,
        attributes = {_KEPT_ATTRIBUTES},
        sealed = convert_to(i.sealed, 'UTF8'),
        definition_id = coalesce(i.definition_id, r.definition_id), requires = i.requires,
        input_digests = i.input_digests,
        built_digest = CASE WHEN i.action = 'UPDATE' THEN NULL ELSE r.built_digest END,
        observed = coalesce(i.observed, r.observed),
        observed_at = CASE WHEN i.observed IS NULL THEN r.observed_at ELSE now() END,
        repair = CASE WHEN i.observed IS NULL THEN r.repair END,
        lost_at = coalesce({_LOST_AT}, r.lost_at),
        lease = NULL, leased_until = NULL""",
    node=NodeEffect(
        set="state = 'failed', lease = NULL, leased_until = NULL, due_at = NULL, last_error = i.reason",
        returning="""n.id, n.stack_id, n.traversal, i.name, i.reason, i.type, i.physical_id, i.action,
        n.retry_count""",
        expired_lease_too=True,
    ),
    failure="""
    INSERT INTO failure (stack_id, traversal, resource_name, reason, resource_type, physical_id, action,
        attempts)
    SELECT stack_id, traversal, name, reason, type, physical_id, action, retry_count + 1 FROM done ORDER BY id
""",
    halts=True,
    next=Next.BLOCKED,
)

STATEMENTS: Final = (
    SETTLE,
    SETTLE_UNCHANGED,
    SETTLE_PREVIOUS_OPERATION,
    SETTLE_CLEANUP_KEPT,
    SETTLE_DELETED,
    REPLACE,
    WAIT,
    WAIT_EARLY,
    POSTPONE,
    FAIL,
)

# Opens an operation. A row with a traversal that is no longer the stack's is refused: the planner of the
# newer traversal did not see the operation, so it must not begin. A resource that becomes secret is encrypted
# as a whole.
_OPEN_OPERATION: Final = OutcomeStatement(
    "begin",
    resource="""op = i.op, op_started_at = now(), attempt = i.attempt, action = i.action,
        status = 'IN_PROGRESS',
        physical_id = i.physical_id, lost_at = CASE WHEN r.attempt = i.attempt THEN r.lost_at END,
        status_reason = 'state changed', definition_id = coalesce(i.definition_id, r.definition_id),
        properties = CASE WHEN i.sealed IS NULL THEN coalesce(i.properties, r.properties) END,
        attributes = CASE WHEN i.sealed IS NULL THEN r.attributes END,
        data = CASE WHEN i.sealed IS NULL THEN r.data END,
        metadata = CASE WHEN i.sealed IS NULL THEN coalesce(i.metadata, r.metadata) END,
        sealed = coalesce(convert_to(i.sealed, 'UTF8'), r.sealed),
        requires = i.requires, input_digests = i.input_digests, step = NULL, requested_at = NULL""",
    node=None,
    events=STARTED_EVENT,
    next=Next.NOTHING,
)
BEGIN: Final = render(_OPEN_OPERATION, leased=True, rows="one")

# Records the next step of an operation, with the results of the step before it, under the same condition.
_OPEN_STEP: Final = OutcomeStatement(
    "begin_step",
    resource="""step = i.step, physical_id = i.physical_id, properties = i.properties, data = i.data,
        attributes = CASE WHEN i.sealed IS NULL THEN r.attributes END,
        metadata = i.metadata, sealed = convert_to(i.sealed, 'UTF8')""",
    node=None,
    events=None,
    next=Next.NOTHING,
)
BEGIN_STEP: Final = render(_OPEN_STEP, leased=True, rows="one")

WAKE_NEWER_TRAVERSALS: Final = f"""
WITH i AS (SELECT n.id AS node_id, n.stack_id, n.resource_id FROM graph_node n WHERE n.id = ANY(%(ids)s)),
    woken AS ({WAKE_WAITING_NODE})
SELECT 'send', id, traversal, queue, label FROM woken
"""

# Nodes that visit no resource: joins and plans.
SETTLE_NODES: Final = f"""
WITH i AS (SELECT id AS node_id FROM unnest(%(ids)s) AS id), r AS (SELECT NULL::bigint AS id WHERE false),
done AS (
    UPDATE graph_node n
    SET state = 'ready', observed_ready = true, observed_ready_at = now(), lease = NULL, leased_until = NULL,
        last_error = NULL
    FROM i WHERE n.id = ANY (ARRAY[i.node_id]) AND {LEASED_NODE}
    RETURNING n.id, n.needed_by, n.dirty AS changed
){release(many=True)}{RELEASED_ROWS}"""

# Nodes whose requirements have unchanged outputs need no visit (docs/internals/protocol.md rule 8). The
# planner compared the inputs before; an operation of an older traversal may have changed an output since.
SETTLE_CLEAN_NODES: Final = f"""
WITH i AS (SELECT NULL::bigint AS node_id WHERE false), r AS (SELECT NULL::bigint AS id WHERE false),
clean AS MATERIALIZED (
    SELECT n.id, n.resource_id, x.nth
    FROM unnest(%(ids)s::bigint[]) WITH ORDINALITY AS x(id, nth)
    JOIN graph_node n ON n.id = ANY (ARRAY[x.id])
    JOIN stack s ON s.id = ANY (ARRAY[n.stack_id])
    WHERE x.id > 0 AND n.state = 'queued' AND NOT n.dirty AND s.traversal = n.traversal
        AND s.halted_traversal IS DISTINCT FROM s.traversal
    ORDER BY x.id FOR UPDATE OF n SKIP LOCKED
), stale AS (
    UPDATE graph_node n SET dirty = true, enqueued_at = CASE WHEN clean.nth <= %(max_messages)s THEN now() END
    FROM clean WHERE n.id = ANY (ARRAY[clean.id]) AND EXISTS (
        SELECT 1 FROM resource o CROSS JOIN LATERAL unnest(o.requires, o.input_digests) AS x(id, digest)
        LEFT JOIN resource q ON q.id = ANY (ARRAY[x.id])
        WHERE o.id = ANY (ARRAY[clean.resource_id]) AND {IS_CHANGED_INPUT})
    RETURNING n.id, n.traversal, n.queue, n.label, n.enqueued_at
), done AS (
    UPDATE graph_node n
    SET state = 'ready', observed_ready = true, observed_ready_at = now(), enqueued_at = NULL
    FROM clean WHERE n.id = ANY (ARRAY[clean.id]) AND clean.id NOT IN (SELECT id FROM stale)
    RETURNING n.id, n.needed_by, false AS changed
){release(many=True)}{RELEASED_ROWS}UNION ALL
SELECT CASE WHEN enqueued_at IS NULL THEN 'queued' ELSE 'send' END, id, traversal, queue, label FROM stale
"""

# The traversal of these nodes is over: release the claims and wake the nodes that waited for their resources.
DROP: Final = f"""
WITH i AS MATERIALIZED (
    SELECT n.id AS node_id, n.stack_id,
        n.resource_id FROM graph_node n WHERE n.id = ANY(%(ids)s) AND n.lease = %(lease)s
), r AS (
    UPDATE resource r SET lease = NULL, leased_until = NULL
    FROM i WHERE r.id = ANY (ARRAY[i.resource_id]) AND r.lease = %(lease)s RETURNING r.id
), done AS (
    UPDATE graph_node n SET state = 'dropped', lease = NULL, leased_until = NULL
    FROM i WHERE n.id = ANY (ARRAY[i.node_id]) AND {CHECKING}
){WAKE_BLOCKED}{WOKEN_ROWS}"""

# Another visit may have started the operation meanwhile: a failing traversal follows it to its end.
DROP_UNCLAIMED: Final = f"""
UPDATE graph_node n SET state = 'dropped', enqueued_at = NULL
FROM unnest(%(ids)s) AS x(id), stack s
WHERE x.id > 0 AND n.id = ANY (ARRAY[x.id]) AND {QUEUED} AND s.id = ANY (ARRAY[n.stack_id])
    AND (s.traversal <> n.traversal OR s.halted_traversal = n.traversal AND NOT EXISTS (
        SELECT 1 FROM resource r WHERE r.id = ANY (ARRAY[n.resource_id]) AND r.op IS NOT NULL))
"""
