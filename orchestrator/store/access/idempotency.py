"""Idempotency in SQL: a request with a client token is accepted once."""

from __future__ import annotations

import uuid as uuid_
from dataclasses import dataclass
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow, class_row

from orchestrator.errors import Conflict

Db = Connection[TupleRow]

KEEP_SECONDS: Final = 86_400.0  # clients retry within minutes
MAX_EXPIRED: Final = 100  # expired tokens deleted per new token


@dataclass(frozen=True, slots=True)
class ClientToken:
    """The token that a client gave to a request, and the digest of the whole request."""

    token: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class AcceptedRequest:
    """An accepted request with a token."""

    digest: bytes
    stack_uuid: uuid_.UUID
    stack_name: str


class TokenTaken(Conflict):
    """A request with this token was accepted before."""

    heat_type = "TokenAlreadyExistsException"

    def __init__(self, token: str) -> None:
        """Build the message from the token."""
        super().__init__(f"A client request token already exists: {token}")


INSERT: Final = """
INSERT INTO client_request (project_id, token, digest, stack_uuid, stack_name)
VALUES (%(project_id)s, %(token)s, %(digest)s, %(stack_uuid)s, %(stack_name)s)
ON CONFLICT DO NOTHING RETURNING 1
"""
DELETE_EXPIRED: Final = """
DELETE FROM client_request WHERE (project_id, token) IN (
    SELECT project_id, token FROM client_request
    WHERE created_at < now() - make_interval(secs => %(seconds)s::float8)
    LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
"""
FIND: Final = """
SELECT digest, stack_uuid, stack_name FROM client_request
WHERE project_id = %(project_id)s AND token = %(token)s
"""


def record(db: Db, project_id: str, client_token: ClientToken | None, uuid: uuid_.UUID, name: str) -> None:
    """Record a request with a token as accepted, in the transaction that accepts it.

    Raises:
        TokenTaken: a request with this token was accepted before.
    """
    if client_token is None:
        return
    values = {
        "project_id": project_id,
        "token": client_token.token,
        "digest": client_token.digest,
        "stack_uuid": uuid,
        "stack_name": name,
    }
    db.execute(DELETE_EXPIRED, {"seconds": KEEP_SECONDS, "limit": MAX_EXPIRED})
    if db.execute(INSERT, values).fetchone() is None:
        raise TokenTaken(client_token.token)


def find(db: Db, project_id: str, token: str) -> AcceptedRequest | None:
    """Return the accepted request with a token."""
    with db.cursor(row_factory=class_row(AcceptedRequest)) as cursor:
        return cursor.execute(FIND, {"project_id": project_id, "token": token}).fetchone()
