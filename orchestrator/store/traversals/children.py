"""Child stacks as rows: insert, update, lock, halt and detach (docs/internals/engine-semantics.md §13).

A child belongs to a single resource row of its parent, by a unique key. It is inserted in the transaction in
which the node of that resource begins to wait for it, so that neither exists without the other
(docs/internals/protocol.md rule 12).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from psycopg import Connection, errors
from psycopg.rows import TupleRow
from psycopg.types.json import Json, Jsonb

from orchestrator.engine.messages import CheckMessage
from orchestrator.engine.states import NODE_ENDS
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.store.access.quotas import Limit
from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.nodes import repository
from orchestrator.store.nodes.outcome_builder import render
from orchestrator.store.nodes.outcome_sql import WAIT
from orchestrator.store.nodes.repository import Settled
from orchestrator.store.stacks.stored_bytes import REVISION_BYTES
from orchestrator.store.tables.base import check_not_in
from orchestrator.store.traversals.accept import INSERT_CONTENT, LOCK_CONTENT
from orchestrator.store.traversals.traversals import STACK_EVENT, start_traversal

Db = Connection[TupleRow]

LOCK = """
SELECT c.traversal, c.status FROM stack c WHERE c.id = %(id)s::bigint AND c.deleted_at IS NULL FOR UPDATE
"""

# A child that was deleted directly makes room for its successor.
DETACH_DELETED_CHILD = """
UPDATE stack SET parent_resource_id = NULL
WHERE parent_resource_id = %(resource_id)s::bigint AND deleted_at IS NOT NULL
"""

# The child stack, its first revision, its plan and finish nodes, and its event. Whatever is not given is
# inherited from the parent. Nothing is inserted unless the resource's row `r` was written.
_INSERT_CHILD: Final = f""", p AS MATERIALIZED (
    SELECT stack.* FROM r CROSS JOIN i JOIN stack ON stack.id = ANY (ARRAY[i.stack_id])
), new_ids AS MATERIALIZED (
    SELECT nextval('stack_id_seq') AS id,
        nextval('revision_id_seq') AS revision_id,
        nextval('graph_node_id_seq') AS finish_id,
        nextval('graph_node_id_seq') AS plan_id
    FROM r
), s AS (
    INSERT INTO stack (id, root_id, owner_id, parent_resource_id, parent_resource, depth, uuid, project_id,
        name, action, status, status_reason, traversal, revision_id, disable_rollback, keep_going,
        timeout_mins, username, credentials, credential_id, user_project_id, converge, request_id)
    SELECT new_ids.id, p.root_id, p.id, i.resource_id, i.name, p.depth + 1, i.physical_id::uuid,
        p.project_id, %(child_name)s, %(child_action)s, 'IN_PROGRESS',
        'Stack ' || %(child_action)s || ' started', 1, new_ids.revision_id, true, p.keep_going,
        coalesce(%(timeout_mins)s::int, p.timeout_mins), p.username, p.credentials,
        %(credential_id)s::bigint, p.user_project_id, p.converge, p.request_id
    FROM i CROSS JOIN new_ids CROSS JOIN p
    RETURNING *
), first_event AS ({STACK_EVENT} RETURNING id
), v AS (
    INSERT INTO revision (id, stack_id, number, action, template_hash, environment, files, parameters, sealed,
        outline, resource_count, created_by, traversal, first_event, adopted, denied_types, stored_bytes,
        author, credential_id)
    SELECT new_ids.revision_id, new_ids.id, 1, %(child_action)s, %(template_hash)s::bytea,
        %(environment)s::json, %(files)s::jsonb, %(parameters)s::json, %(child_sealed)s::bytea,
        %(outline)s::json, %(resource_count)s::int, p.username, 1,
        first_event.id, %(child_adopted)s::bytea, %(denied_types)s::text[],
        {REVISION_BYTES.format(sealed="child_sealed")}, w.author, %(credential_id)s::bigint
    FROM new_ids CROSS JOIN p CROSS JOIN first_event
    LEFT JOIN revision w ON w.id = ANY (ARRAY[p.revision_id])
), counted AS (
    INSERT INTO project_content (project_id, hash, size)
    SELECT p.project_id, %(template_hash)s::bytea, %(template_bytes)s::bigint FROM new_ids CROSS JOIN p
    ON CONFLICT DO NOTHING
), nodes AS (
    INSERT INTO graph_node (id, stack_id, root_id, traversal, kind, queue, label, needed_by, blocked_by,
        state, enqueued_at)
    SELECT new_ids.finish_id, new_ids.id, p.root_id, 1, 'finish', 'bulk', 'finish', '{{}}'::bigint[], 1,
        'blocked', NULL::timestamptz
    FROM new_ids CROSS JOIN p
    UNION ALL
    SELECT new_ids.plan_id, new_ids.id, p.root_id, 1, 'plan', 'bulk', 'plan', ARRAY[new_ids.finish_id], 0,
        'queued', now()
    FROM new_ids CROSS JOIN p
)
"""

# The node of a resource waits, and the child stack that it waits for is inserted, in one statement.
WAIT_FOR_NEW_CHILD: Final = replace(
    WAIT,
    name="wait_for_new_child",
    child=_INSERT_CHILD,
    child_rows="UNION ALL SELECT 'send', plan_id, 1, 'bulk', 'plan' FROM new_ids\n",
)

INSERT_REVISION = f"""
WITH counted AS (
    INSERT INTO project_content (project_id, hash, size)
    SELECT s.project_id, %(template_hash)s::bytea, %(template_bytes)s::bigint
    FROM stack s WHERE s.id = %(stack_id)s::bigint
    ON CONFLICT DO NOTHING
)
INSERT INTO revision (stack_id, number, action, template_hash, environment, files, parameters, sealed,
    outline, resource_count, created_by, restores, denied_types, stored_bytes, author, credential_id)
SELECT s.id, coalesce((SELECT max(number) FROM revision WHERE stack_id = s.id), 0) + 1,
    %(action)s, %(template_hash)s::bytea, %(environment)s::json, %(files)s::jsonb, %(parameters)s::json,
    %(sealed)s::bytea, %(outline)s::json, %(resource_count)s::int, s.username,
    %(restores)s::bigint, %(denied_types)s::text[], {REVISION_BYTES.format(sealed="sealed")},
    w.author, %(credential_id)s::bigint
FROM stack s JOIN stack p ON p.id = ANY (ARRAY[s.owner_id])
LEFT JOIN revision w ON w.id = ANY (ARRAY[p.revision_id])
WHERE s.id = %(stack_id)s::bigint
RETURNING id
"""

# Whether a child has reached a revision, and none was requested since.
IS_REACHED = """
SELECT 1 FROM stack
WHERE id = %(stack_id)s AND revision_id = %(revision_id)s AND good_revision_id = revision_id
"""

# A child inherits these settings whenever its parent changes it. A child never rolls back by itself: its
# parent would repeat the request, and it would fail again, forever.
START_CHILD_TRAVERSAL = """
UPDATE stack c SET disable_rollback = true, keep_going = p.keep_going, username = p.username,
    credentials = p.credentials, user_project_id = p.user_project_id,
    credential_id = CASE WHEN %(updates)s::boolean THEN %(credential_id)s::bigint ELSE c.credential_id END,
    timeout_mins = coalesce(%(timeout_mins)s::int, p.timeout_mins), request_id = p.request_id
FROM stack p WHERE c.id = %(stack_id)s::bigint AND c.deleted_at IS NULL AND p.id = c.owner_id
RETURNING c.id
"""

# Start no more steps in the stacks below a stack; running operations finish, and the sweep ends the
# traversals. A stack that has started another traversal since then is left alone, and so are all if the
# topmost has.
BELOW = """
WITH RECURSIVE below AS (
    SELECT c.id, c.traversal FROM stack c WHERE c.owner_id = %(stack_id)s AND c.deleted_at IS NULL
    UNION ALL
    SELECT c.id, c.traversal FROM below JOIN stack c ON c.owner_id = below.id WHERE c.deleted_at IS NULL
)
"""
HALT_BELOW = (
    BELOW
    + """
, chosen AS MATERIALIZED (
    SELECT s.id FROM below JOIN stack s ON s.id = below.id AND s.traversal = below.traversal
    WHERE s.status = 'IN_PROGRESS' AND s.action <> 'DELETE'
        AND s.halted_traversal IS DISTINCT FROM s.traversal
        AND EXISTS (SELECT 1 FROM stack p WHERE p.id = %(stack_id)s AND p.traversal = %(traversal)s)
    ORDER BY s.id FOR UPDATE OF s  -- always in this order: no deadlocks
)
UPDATE stack s SET halted_traversal = s.traversal,
    status_reason = 'Stack ' || s.action || ' is winding down: the stack around it was stopped'
FROM chosen WHERE s.id = chosen.id
"""
)

# A stack and its ancestors, except for the root. The next traversal of each clears the mark.
MARK_STALE = """
WITH RECURSIVE up AS (
    SELECT s.id, s.owner_id FROM stack s WHERE s.id = ANY (%(stack_ids)s)
    UNION
    SELECT s.id, s.owner_id FROM up JOIN stack s ON s.id = up.owner_id
)
INSERT INTO stale_child (stack_id) SELECT id FROM up WHERE owner_id IS NOT NULL ORDER BY id
ON CONFLICT (stack_id) DO UPDATE SET stack_id = excluded.stack_id  -- locks it: not cleared unseen
"""
CLEAR_STALE = "DELETE FROM stale_child WHERE stack_id = %(stack_id)s"

# A child that the deletion policy of its resource retains becomes a root stack.
DETACH = (
    BELOW
    + f"""
, own AS (
    UPDATE stack SET owner_id = NULL, parent_resource_id = NULL, root_id = stack.id, depth = 0
    FROM (SELECT x.id, x.depth FROM stack x WHERE x.id = %(stack_id)s) AS was
    WHERE stack.id = was.id AND deleted_at IS NULL RETURNING was.id, was.depth
), moving AS (  -- the sweep finds queued nodes by their root
    UPDATE graph_node n SET root_id = own.id FROM own
    WHERE n.stack_id IN (SELECT own.id UNION ALL SELECT below.id FROM below)
        AND {check_not_in("n.state", NODE_ENDS)}
), verdicts AS (
    UPDATE resource_verdict v SET root_id = own.id FROM own
    WHERE v.stack_id IN (SELECT own.id UNION ALL SELECT below.id FROM below)
), ended AS (
    UPDATE verdict_history h SET root_id = own.id FROM own
    WHERE h.stack_id IN (SELECT own.id UNION ALL SELECT below.id FROM below)
)
UPDATE stack s SET root_id = own.id, depth = s.depth - own.depth FROM below, own WHERE s.id = below.id
"""
)

PROPAGATE_FAILURES = """
WITH one AS (
    DELETE FROM failure
    WHERE stack_id = %(stack_id)s AND traversal = %(traversal)s AND resource_name = %(name)s
    RETURNING resource_type, physical_id, action, attempts
)
INSERT INTO failure (stack_id, traversal, resource_name, reason, resource_type, physical_id, action, attempts)
SELECT %(stack_id)s, %(traversal)s, %(name)s, x.reason, o.*
FROM unnest(%(causes)s::text[]) WITH ORDINALITY AS x(reason, nth) CROSS JOIN (SELECT * FROM one LIMIT 1) AS o
ORDER BY x.nth
"""


@dataclass(frozen=True, slots=True)
class DesiredChild:
    """The desired state of a child, ready to be inserted."""

    uuid: str  # of a new child
    name: str
    template: bytes  # JSON text
    files: Mapping[str, str]  # name -> the hash of its text, in hexadecimal
    environment: JsonMapping
    parameters: JsonMapping  # NULL for hidden parameters
    sealed: bytes | None
    outline: JsonMapping
    resource_count: int
    timeout_mins: int | None = None
    adopted: bytes | None = None  # existing objects, encrypted: a new child adopts these
    denied_types: Sequence[str] | None = None  # to the author of the parent's revision; None: not known
    restores: int | None = None  # the snapshot to be restored
    revision_id: int | None = None  # the reached revision with the same content
    limits: Sequence[Limit] = ()  # of the project, which it is close to: enforced at the end


@dataclass(frozen=True, slots=True)
class StartedChild:
    """A traversal of a child that was started."""

    traversal: int
    message: CheckMessage


def child_bytes(desired: DesiredChild) -> int:
    """Return about the size of a child's revision."""
    return len(desired.template) + 2 * len(desired.sealed or b"") + CHILD_BYTES


# Hashes of templates that this process stored recently: a thousand identical children store their template
# once. A template that was purged since then is detected by its foreign key.
_stored: set[bytes] = set()
MAX_STORED = 1_000
CHILD_BYTES = 4_096  # of environment, parameters and outline, usually


class ContentMissing(Exception):
    """The child's template is not stored: it was purged, or never stored."""


def insert_child(
    db: Db,
    desired: DesiredChild,
    row: JsonMapping,
    lease: int | None,
    root: str,
    *,
    again: bool,
    credential_id: int | None,
) -> Settled:
    """Insert the child stack of a resource and let its node wait for it; with `again` in place of a deleted
    child.

    `credential_id` belongs to the visit, `row` to the resource, as in `repository.write_outcome`. A
    single statement unless `again`: then run it in a transaction.

    Raises:
        ContentMissing: the template must be stored before.
    """
    if again:
        db.execute(DETACH_DELETED_CHILD, {"resource_id": str(row["resource_id"])})
    if hashlib.sha256(desired.template).digest() not in _stored:
        store(db, desired)
    statement = render(WAIT_FOR_NEW_CHILD, leased=lease is not None, rows="one")
    values = {
        **repository.single_row_parameters(row, statement),
        **_revision_columns(desired),
        "child_name": desired.name,
        "child_action": "CREATE" if desired.adopted is None else "ADOPT",
        "child_adopted": desired.adopted,
        "timeout_mins": None if desired.timeout_mins is None else str(desired.timeout_mins),
        "credential_id": None if credential_id is None else str(credential_id),
        "lease": lease,
        "max_messages": 0,
    }
    values["child_sealed"] = values.pop("revision_sealed")
    try:
        rows = repository.retried(db, statement, values)
    except errors.ForeignKeyViolation as error:
        raise ContentMissing from error
    return repository.settled(rows, root)


def store(db: Db, desired: DesiredChild) -> None:
    """Store the template of a child."""
    hash_ = hashlib.sha256(desired.template).digest()
    db.execute(INSERT_CONTENT, {"hash": hash_, "body": desired.template})
    if len(_stored) >= MAX_STORED:
        _stored.clear()
    _stored.add(hash_)


def update(
    db: Db,
    child_id: int,
    desired: DesiredChild,
    *,
    converge: bool,
    credential_id: int | None,
    automatic: bool = False,
) -> StartedChild | None:
    """Insert a child's next revision and start the traversal to it; return None if the child is gone. A child
    that has reached a revision with the same content is repaired: it keeps the revision
    (operations/adr/0019). `credential_id` belongs to the visit. Run in a transaction.
    """
    inherited = {"updates": "true", "credential_id": None if credential_id is None else str(credential_id)}
    if not _lock_and_inherit(db, child_id, desired.timeout_mins, inherited):
        return None
    db.execute(CLEAR_STALE, {"stack_id": child_id})
    if desired.revision_id is not None:
        reached = {"stack_id": child_id, "revision_id": desired.revision_id}
        if db.execute(IS_REACHED, reached).fetchone() is not None:
            return _started(db, child_id, "UPDATE", converge=converge, automatic=automatic)
    while db.execute(LOCK_CONTENT, {"hash": hashlib.sha256(desired.template).digest()}).fetchone() is None:
        store(db, desired)
    action = "UPDATE" if desired.restores is None else "RESTORE"
    restores = None if desired.restores is None else str(desired.restores)
    values = {
        **_revision_columns(desired),
        "stack_id": str(child_id),
        "action": action,
        "restores": restores,
        "credential_id": inherited["credential_id"],
    }
    values["sealed"] = values.pop("revision_sealed")
    [(revision_id,)] = fetch_prepared(db, INSERT_REVISION, values)
    return _started(db, child_id, action, revision_id=revision_id, converge=converge, automatic=automatic)


def begin(
    db: Db, child_id: int, action: str, *, credential_id: int | None, retain: bool = False
) -> StartedChild | None:
    """Start an action without a template; return None if the child is gone. `credential_id` is that of the
    visit: a DELETE or CHECK runs with it. Run in a transaction.
    """
    if not _lock_and_inherit(db, child_id):
        return None
    used = credential_id if action in {"DELETE", "CHECK"} else None
    return _started(db, child_id, action, retain=retain, credential_id=used)


def _lock_and_inherit(
    db: Db,
    child_id: int,
    timeout_mins: int | None = None,
    inherited: Mapping[str, str | None] = MappingProxyType({"updates": "false", "credential_id": None}),
) -> bool:
    """Lock a live child and update the settings that it inherits; return False if it is gone."""
    values = {
        "stack_id": str(child_id),
        "timeout_mins": None if timeout_mins is None else str(timeout_mins),
        **inherited,
    }
    return bool(fetch_prepared(db, START_CHILD_TRAVERSAL, values))


def _started(db: Db, child_id: int, action: str, **columns: Any) -> StartedChild | None:
    opened = start_traversal(db, child_id, action, **columns)
    return None if opened is None else StartedChild(opened.traversal, opened.message)


def lock_child(db: Db, child_id: int) -> tuple[int, str] | None:
    """Lock a live child until the transaction ends; return its traversal and status."""
    for traversal, status in fetch_prepared(db, LOCK, {"id": str(child_id)}):
        return traversal, status
    return None


def halt_below(db: Db, stack_id: int, traversal: int) -> None:
    """Start no more steps in the stacks below a stack, as long as this is in the given traversal."""
    db.execute(HALT_BELOW, {"stack_id": stack_id, "traversal": traversal})


def mark_stale(db: Db, *stack_ids: int) -> None:
    """Mark children and their ancestors as stale: the children were changed directly, and the next update of
    their ancestors checks them.
    """
    db.execute(MARK_STALE, {"stack_ids": list(stack_ids)})


def detach(db: Db, child_id: int) -> None:
    """Turn a child into a root stack, with all stacks below it."""
    db.execute(DETACH, {"stack_id": child_id})


def propagate_failures(db: Db, stack_id: int, traversal: int, name: str, reasons: Sequence[str]) -> None:
    """Replace the failure of a resource by the causes in its child."""
    values = {"stack_id": stack_id, "traversal": traversal, "name": name, "causes": list(reasons)}
    db.execute(PROPAGATE_FAILURES, values)


def _revision_columns(desired: DesiredChild) -> JsonObject:
    """Return a revision's columns as parameters."""
    return {
        "template_hash": hashlib.sha256(desired.template).digest(),
        "environment": Json(desired.environment),
        "files": Jsonb(desired.files),
        "parameters": Json(desired.parameters),
        "revision_sealed": desired.sealed,
        "outline": Json(desired.outline),
        "resource_count": str(desired.resource_count),
        "denied_types": None if desired.denied_types is None else list(desired.denied_types),
        "template_bytes": str(len(desired.template)),
    }
