"""Rows that only failures, approvals, long actions and other features leave."""

from __future__ import annotations

OF_VERDICT = "resource_id, stack_id, root_id, project_id, name, type, verdict, differences, physical_id"
MORE_ROWS = (
    f"""INSERT INTO repair (fault_id, {OF_VERDICT}, group_id, fault_reason, action, status, reason, due_at)
    SELECT id, {OF_VERDICT}, group_id, reason, 'recreate', 'waiting', 'r', now() FROM resource_verdict
    WHERE verdict = 'MISSING'""",
    f"""INSERT INTO verdict_history (fault_id, {OF_VERDICT}, service, reason, first_seen_at, last_seen_at)
    SELECT id, {OF_VERDICT}, service, reason, since, observed_at FROM resource_verdict""",
    """INSERT INTO failure (stack_id, traversal, resource_name, reason)
    SELECT id, traversal, 'box', 'r' FROM stack""",
    """INSERT INTO progress (stack_id, traversal, counts, rollouts, counted_at, seconds, final)
    SELECT id, traversal, '{}', '[]', now(), 0.1, true FROM stack""",
    """INSERT INTO credential (stack_uuid, stack_id, project_id, user_id, sealed, state)
    SELECT uuid, id, project_id, 'u', '\\x00', 'held' FROM stack""",
    """INSERT INTO credential (stack_uuid, project_id, user_id, sealed, state, due_at)
    SELECT gen_random_uuid(), project_id, 'u', '\\x00', 'going', now() FROM stack""",
    """INSERT INTO stack_user (root_id, name, keystone_id, sealed, state, due_at)
    SELECT id, 'user of ' || uuid, 'k', '\\x00', 'going', now() FROM stack WHERE owner_id IS NULL""",
    """INSERT INTO key_pair (key, secret, project_id, name, roles)
    SELECT 'key of ' || project_id, '\\x00', project_id, 'k', '{member}' FROM stack WHERE owner_id IS NULL""",
    """INSERT INTO api_token (project_id, name, token_hash)
    SELECT project_id, 't', sha256(uuid::text::bytea) FROM stack WHERE owner_id IS NULL""",
    """INSERT INTO audit_record (action, project_id, user_name, origin, target, request_id, result)
    SELECT 'a', project_id, 'u', 'o', 't', 'r', 's' FROM stack WHERE owner_id IS NULL""",
    """INSERT INTO circuit_breaker (project_id, service, last_error, answered_at, stacks)
    SELECT project_id, 'other', 'e', now(), ARRAY[id] FROM stack WHERE owner_id IS NULL""",
    """INSERT INTO client_request (project_id, token, digest, stack_uuid, stack_name)
    SELECT project_id, 't', '\\x00', uuid, name FROM stack WHERE owner_id IS NULL""",
    """INSERT INTO late_request (resource_id, until, due_at)
    SELECT id, now() - interval '1 s', now() FROM resource WHERE name = 'box'""",
    """INSERT INTO observation_notice (project_id, physical_id)
    SELECT s.project_id, r.physical_id FROM resource r JOIN stack s ON s.id = r.stack_id
    WHERE r.name = 'box'""",
    """INSERT INTO orphan (stack_id, resource_id, token, type, physical_id, physical_name)
    SELECT stack_id, id, 't', type, 'gone', 'n' FROM resource WHERE name = 'box'""",
)
