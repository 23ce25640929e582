"""API tokens in SQL: found by the SHA-256 of their text, which is not stored."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import func, insert, select, update

from orchestrator.store.connections.database import Database
from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.tables.access import ApiToken

FIND_USABLE: Final = """
SELECT t.id, t.project_id, t.name, t.roles, t.created_at, t.expires_at, t.revoked_at, t.token_hash
FROM api_token t
WHERE t.token_hash = %(token_hash)s AND t.revoked_at IS NULL
    AND (t.expires_at IS NULL OR t.expires_at > now())
"""


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A stored token."""

    id: int
    project_id: str
    name: str
    roles: tuple[str, ...]
    created_at: dt.datetime
    expires_at: dt.datetime | None  # None: never
    revoked_at: dt.datetime | None


_LISTED: Final = tuple(getattr(ApiToken, name) for name in TokenRow.__slots__)


def create(
    database: Database,
    *,
    token_hash: bytes,
    project_id: str,
    name: str,
    roles: Sequence[str],
    expires_at: dt.datetime | None,
) -> None:
    """Store a token."""
    statement = insert(ApiToken).values(
        token_hash=token_hash, project_id=project_id, name=name, roles=list(roles), expires_at=expires_at
    )
    with database.engine.begin() as connection:
        connection.execute(statement)


def list_all(database: Database, project_id: str | None) -> list[TokenRow]:
    """Return the tokens of a project, or of all projects, the oldest first."""
    query = select(*_LISTED).order_by(ApiToken.id)
    if project_id is not None:
        query = query.where(ApiToken.project_id == project_id)
    with database.engine.connect() as connection:
        return [_row(row) for row in connection.execute(query)]


def revoke(database: Database, token_id: int) -> bool:
    """Revoke a token; return False if it does not exist or is revoked already."""
    statement = (
        update(ApiToken)
        .where(ApiToken.id == token_id, ApiToken.revoked_at.is_(None))
        .values(revoked_at=func.now())
    )
    with database.engine.begin() as connection:
        return connection.execute(statement).rowcount == 1


def find_usable(database: Database, token_hash: bytes) -> tuple[TokenRow, bytes] | None:
    """Return a token that is valid now, by the database's clock, and its stored hash."""
    with database.borrow() as db:
        rows = fetch_prepared(db, FIND_USABLE, {"token_hash": token_hash})
    if not rows:
        return None
    *columns, stored_hash = rows[0]
    return _row(columns), bytes(stored_hash)


def _row(row: Any) -> TokenRow:
    id_, project_id, name, roles, *times = row
    return TokenRow(id_, project_id, name, tuple(roles), *times)
