"""Key pairs: an access key that names its caller, and the secret that the caller signs requests with.

The secret is shown once. It is kept encrypted, not hashed as a token is: a signature is checked with it.
"""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, insert, select, update

from orchestrator.security.encryption import Cipher
from orchestrator.store.connections.database import Database
from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.tables.access import KeyPair

USABLE = """
SELECT k.key, k.secret, k.project_id, k.name, k.roles FROM key_pair k
WHERE k.key = %(key)s AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())
"""


@dataclass(frozen=True, slots=True)
class Signer:
    """Whom a key pair that may be used now stands for."""

    key: str
    secret: bytes  # encrypted
    project_id: str
    name: str
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeyPairRow:
    """One key pair as it is listed, without its secret."""

    id: int
    key: str
    project_id: str
    name: str
    roles: tuple[str, ...]
    created_at: dt.datetime
    expires_at: dt.datetime | None  # None: never
    revoked_at: dt.datetime | None


_LISTED = tuple(getattr(KeyPair, name) for name in KeyPairRow.__slots__)


def create_key_pair(
    database: Database,
    cipher: Cipher,
    project_id: str,
    *,
    roles: Sequence[str],
    name: str = "",
    expires_at: dt.datetime | None = None,
) -> tuple[str, str]:
    """Make a key pair for `project_id`; return the access key and the secret, which nothing shows again."""
    key, secret = secrets.token_hex(16), secrets.token_urlsafe(32)
    with database.engine.begin() as connection:
        connection.execute(
            insert(KeyPair).values(
                key=key,
                secret=cipher.seal(secret),
                project_id=project_id,
                name=name,
                roles=list(roles),
                expires_at=expires_at,
            )
        )
    return key, secret


def list_key_pairs(database: Database, project_id: str | None = None) -> list[KeyPairRow]:
    """Return the key pairs of one project, or of all, the oldest first."""
    query = select(*_LISTED).order_by(KeyPair.id)
    if project_id is not None:
        query = query.where(KeyPair.project_id == project_id)
    with database.engine.connect() as connection:
        rows = connection.execute(query).all()
    return [KeyPairRow(**{**row._mapping, "roles": tuple(row.roles)}) for row in rows]


def revoke_key_pair(database: Database, key: str) -> bool:
    """Make a key pair useless from now on; False when there is none, or it was revoked before."""
    with database.engine.begin() as connection:
        done = connection.execute(
            update(KeyPair)
            .where(KeyPair.key == key, KeyPair.revoked_at.is_(None))
            .values(revoked_at=func.now())
        )
    return done.rowcount == 1


def find_signer(database: Database, key: str) -> Signer | None:
    """Return whom a key that may be used now stands for, by the database's clock."""
    with database.borrow() as db:
        rows = fetch_prepared(db, USABLE, {"key": key})
    if not rows:
        return None
    found, secret, project_id, name, roles = rows[0]
    return Signer(found, bytes(secret), project_id, name, tuple(roles))
