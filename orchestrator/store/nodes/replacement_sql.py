"""The outcome of a visit that creates the replacement of its resource at once, which only local types can
(operations/adr/0004): the statements REPLACE and SETTLE in one. Only the forms without a lease are used.
"""

from __future__ import annotations

from typing import Final

from orchestrator.store.nodes.outcome_builder import SHOWN, EventRule, NodeEffect, OutcomeStatement
from orchestrator.store.nodes.outcome_sql import DEPOSE

# The row describes the replacement, except for the id of the resource, which is that of the deposed
# resource. The deposed resource gets the events of a completed update (`was_healthy`), then the replacement
# those of its creation.
SETTLE_INLINE_REPLACEMENT: Final = OutcomeStatement(
    "settle_inline_replacement",
    resource=DEPOSE,
    returning="r.id, r.replaced_by, r.type, r.physical_id",
    replacement="""
    INSERT INTO resource (id, uuid, stack_id, name, type, runs_as, replaces, action, status, status_reason,
        physical_id, reference_id, properties, attributes, metadata, data, sealed, definition_id,
        built_digest, requires, input_digests, value_digest, attempt, updated_at, observed, observed_at)
    OVERRIDING SYSTEM VALUE
    SELECT r.replaced_by, i.replacement_uuid, i.stack_id, i.name, i.type, i.runs_as, r.id,
        i.action, i.status, i.reason,
        i.physical_id, i.reference_id, i.properties, i.attributes, i.metadata, i.data,
        convert_to(i.sealed, 'UTF8'), i.definition_id,
        decode(i.digest, 'hex'), i.requires, i.input_digests, i.value_digest, greatest(i.attempt, 1),
        CASE WHEN i.action = 'CREATE' THEN NULL ELSE now() END, i.observed, now()
    FROM i JOIN r ON r.id = i.resource_id
    RETURNING id, replaces
""",
    node=NodeEffect(
        set="""state = 'ready', observed_ready = true, observed_ready_at = now(), resource_id = m.id,
        lease = NULL, leased_until = NULL, retry_count = 0, last_error = NULL""",
        source="JOIN replacement m ON m.replaces = i.resource_id",
        returning="n.id, n.needed_by, i.changed",
        merged_set="""
        resource_id = CASE WHEN l.nth = 0 THEN l.written_id ELSE n.resource_id END, retry_count = 0,""",
        merged_source="replacement",
    ),
    events=EventRule(
        f"""
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason,
        properties, automatic)
    SELECT i.stack_id, i.name, x.type, x.physical_id, x.action, x.status, x.reason,
        CASE WHEN x.nth = 4 THEN {SHOWN} END, coalesce(i.automatic, false)
    FROM i JOIN r ON r.id = i.resource_id
    CROSS JOIN LATERAL (VALUES
        (1, i.was_healthy, r.type, r.physical_id, 'UPDATE', 'IN_PROGRESS', 'state changed'),
        (2, i.was_healthy, r.type, r.physical_id, 'UPDATE', 'COMPLETE', 'replaced by a new resource'),
        (3, i.started, i.type, i.physical_id, i.action, 'IN_PROGRESS', 'state changed'),
        (4, true, i.type, i.physical_id, i.action, i.status, i.reason)
    ) AS x(nth, applies, type, physical_id, action, status, reason)
    WHERE x.applies""",
        "x.nth",
    ),
)
