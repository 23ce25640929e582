"""Key pairs in SQL: an access key and its encrypted secret, for a project."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import func, insert, select, update

from orchestrator.store.connections.database import Database
from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.tables.access import KeyPair

FIND_USABLE: Final = """
SELECT k.key, k.secret, k.project_id, k.name, k.roles FROM key_pair k
WHERE k.key = %(key)s AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())
"""


@dataclass(frozen=True, slots=True)
class Signer:
    """The caller that a valid key pair identifies."""

    key: str
    secret: bytes  # encrypted
    project_id: str
    name: str
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeyPairRow:
    """A key pair as listed, without its secret."""

    id: int
    key: str
    project_id: str
    name: str
    roles: tuple[str, ...]
    created_at: dt.datetime
    expires_at: dt.datetime | None  # None: never
    revoked_at: dt.datetime | None


_LISTED: Final = tuple(getattr(KeyPair, name) for name in KeyPairRow.__slots__)


def create(
    database: Database,
    *,
    key: str,
    secret: bytes,
    project_id: str,
    name: str,
    roles: Sequence[str],
    expires_at: dt.datetime | None,
) -> None:
    """Store a key pair; `secret` is encrypted."""
    statement = insert(KeyPair).values(
        key=key, secret=secret, project_id=project_id, name=name, roles=list(roles), expires_at=expires_at
    )
    with database.engine.begin() as connection:
        connection.execute(statement)


def list_all(database: Database, project_id: str | None) -> list[KeyPairRow]:
    """Return the key pairs of a project, or of all projects, the oldest first."""
    query = select(*_LISTED).order_by(KeyPair.id)
    if project_id is not None:
        query = query.where(KeyPair.project_id == project_id)
    with database.engine.connect() as connection:
        rows = connection.execute(query).all()
    return [KeyPairRow(**{**row._mapping, "roles": tuple(row.roles)}) for row in rows]


def revoke(database: Database, key: str) -> bool:
    """Revoke a key pair; return False if it does not exist or is revoked already."""
    statement = (
        update(KeyPair).where(KeyPair.key == key, KeyPair.revoked_at.is_(None)).values(revoked_at=func.now())
    )
    with database.engine.begin() as connection:
        return connection.execute(statement).rowcount == 1


def find_usable(database: Database, key: str) -> Signer | None:
    """Return the caller of a key pair that is valid now, by the database's clock."""
    with database.borrow() as db:
        rows = fetch_prepared(db, FIND_USABLE, {"key": key})
    if not rows:
        return None
    token_id, secret, project_id, name, roles = rows[0]
    return Signer(token_id, bytes(secret), project_id, name, tuple(roles))
