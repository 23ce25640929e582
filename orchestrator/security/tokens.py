"""API tokens: random text shown once, its SHA-256 kept, each for one project.

A token is 256 random bits, so a plain hash is enough and looking it up by that hash tells a guesser nothing.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, insert, select, update

from orchestrator.store.connections.database import Database
from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.tables.access import ApiToken

TOKEN_BYTES = 32
MEMBER = "member"  # the role of a token that none is named for

USABLE = """
SELECT t.id, t.project_id, t.name, t.roles, t.created_at, t.expires_at, t.revoked_at, t.token_hash
FROM api_token t
WHERE t.token_hash = %(token_hash)s AND t.revoked_at IS NULL
    AND (t.expires_at IS NULL OR t.expires_at > now())
"""


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One token as the database knows it; its text is nowhere."""

    id: int
    project_id: str
    name: str
    roles: tuple[str, ...]
    created_at: dt.datetime
    expires_at: dt.datetime | None  # None: never
    revoked_at: dt.datetime | None


_COLUMNS = (
    ApiToken.id,
    ApiToken.project_id,
    ApiToken.name,
    ApiToken.roles,
    ApiToken.created_at,
    ApiToken.expires_at,
    ApiToken.revoked_at,
)


def token_hash(token: str) -> bytes:
    """Return what is stored of `token`."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def create_token(
    database: Database,
    project_id: str,
    name: str = "",
    expires_at: dt.datetime | None = None,
    roles: Sequence[str] = (MEMBER,),
) -> str:
    """Make a token for `project_id` and return its text, which nothing can show again."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    with database.engine.begin() as connection:
        connection.execute(
            insert(ApiToken).values(
                project_id=project_id,
                name=name,
                token_hash=token_hash(token),
                expires_at=expires_at,
                roles=list(roles),
            )
        )
    return token


def list_tokens(database: Database, project_id: str | None = None) -> list[TokenRow]:
    """Return the tokens of one project, or of all, the oldest first."""
    query = select(*_COLUMNS).order_by(ApiToken.id)
    if project_id is not None:
        query = query.where(ApiToken.project_id == project_id)
    with database.engine.connect() as connection:
        return [_row(row) for row in connection.execute(query)]


def revoke_token(database: Database, token_id: int) -> bool:
    """Make a token useless from now on; False when there is none, or it was revoked before."""
    with database.engine.begin() as connection:
        done = connection.execute(
            update(ApiToken)
            .where(ApiToken.id == token_id, ApiToken.revoked_at.is_(None))
            .values(revoked_at=func.now())
        )
    return done.rowcount == 1


def find_token(database: Database, token: str) -> TokenRow | None:
    """Return the row of a token that may be used now, by the database's clock."""
    wanted = token_hash(token)
    with database.borrow() as db:
        rows = fetch_prepared(db, USABLE, {"token_hash": wanted})
    if not rows or not hmac.compare_digest(bytes(rows[0][-1]), wanted):
        return None
    id_, project_id, name, roles, *times, _ = rows[0]
    return TokenRow(id_, project_id, name, tuple(roles), *times)


def _row(row: Any) -> TokenRow:
    return TokenRow(
        id=row.id,
        project_id=row.project_id,
        name=row.name,
        roles=tuple(row.roles),
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
    )
