"""Writing down what was asked for: one durable transaction, after which the answer may be given (PROTOCOL.md
6).
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, errors
from psycopg.rows import TupleRow
from psycopg.types.json import Json, Jsonb

from orchestrator.errors import LimitExceeded, StackExists
from orchestrator.store.traversals import STACK_EVENT, Opened, first_nodes

INSERT_CONTENT = "INSERT INTO content (hash, body) VALUES (%s, %s) ON CONFLICT DO NOTHING"

COUNT_STACKS = """
SELECT count(*) FROM (
    SELECT 1 FROM stack WHERE project_id = %s AND deleted_at IS NULL AND owner_id IS NULL LIMIT %s) AS live
"""

INSERT_STACK = (
    """
WITH id AS (SELECT nextval(pg_get_serial_sequence('stack', 'id')) AS id), s AS (
    INSERT INTO stack (id, root_id, uuid, project_id, name, action, status, status_reason, traversal,
        disable_rollback,
        timeout_mins, tags, username)
    SELECT id.id, id.id, %(uuid)s, %(project_id)s, %(name)s, 'CREATE', 'IN_PROGRESS', 'Stack CREATE started',
        1,
        %(disable_rollback)s, %(timeout_mins)s, %(tags)s, %(username)s
    FROM id RETURNING *
), told AS ("""
    + STACK_EVENT
    + """)
SELECT id FROM s
"""
)

INSERT_REVISION = """
WITH r AS (
    INSERT INTO revision (stack_id, number, action, template_hash, environment, files, parameters, sealed,
        outline, created_by)
    VALUES (%(stack_id)s, %(number)s, %(action)s, %(template_hash)s, %(environment)s, %(files)s,
        %(parameters)s, %(sealed)s,
        %(outline)s, %(created_by)s)
    RETURNING id
)
UPDATE stack SET revision_id = r.id FROM r WHERE stack.id = %(stack_id)s
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A stack as asked for, checked and ready to be written down."""

    uuid: uuid.UUID
    name: str
    project_id: str
    username: str
    template: bytes  # JSON text
    files: Mapping[str, str]
    environment: Mapping[str, Any]
    parameters: Mapping[str, Any]  # hidden ones are None
    sealed: bytes | None  # the hidden ones
    outline: Mapping[str, Any]
    disable_rollback: bool
    timeout_mins: int | None
    tags: tuple[str, ...]


def accept_create(
    db: Connection[TupleRow], wanted: Wanted, *, quota: int, lease: int | None = None, seconds: float = 30.0
) -> Opened:
    """Write a new stack with its first revision, plan node and finish node.

    Raises:
        StackExists: a live stack of the project has the name.
        LimitExceeded: the project has `quota` stacks already.
    """
    with db.transaction():
        count = db.execute(COUNT_STACKS, (wanted.project_id, quota)).fetchone()
        if count is not None and count[0] >= quota:
            raise LimitExceeded(
                f"You have reached the maximum stacks per tenant, {quota}. Please delete some stacks."
            )
        template_hash = _put(db, wanted.template)
        files = {name: _put(db, text.encode()).hex() for name, text in wanted.files.items()}
        try:
            row = db.execute(
                INSERT_STACK,
                {
                    "uuid": wanted.uuid,
                    "project_id": wanted.project_id,
                    "name": wanted.name,
                    "disable_rollback": wanted.disable_rollback,
                    "timeout_mins": wanted.timeout_mins,
                    "tags": list(wanted.tags),
                    "username": wanted.username,
                },
            ).fetchone()
        except errors.UniqueViolation as error:
            raise StackExists(wanted.name) from error
        assert row is not None
        stack_id: int = row[0]
        db.execute(
            INSERT_REVISION,
            {
                "stack_id": stack_id,
                "number": 1,
                "action": "CREATE",
                "template_hash": template_hash,
                "environment": Json(wanted.environment),
                "files": Jsonb(files),
                "parameters": Json(wanted.parameters),
                "sealed": wanted.sealed,
                "outline": Json(wanted.outline),
                "created_by": wanted.username,
            },
        )
        return first_nodes(
            db,
            stack_id=stack_id,
            root_id=stack_id,
            root=str(wanted.uuid),
            traversal=1,
            lease=lease,
            seconds=seconds,
        )


def _put(db: Connection[TupleRow], body: bytes) -> bytes:
    digest = hashlib.sha256(body).digest()
    db.execute(INSERT_CONTENT, (digest, body))
    return digest
