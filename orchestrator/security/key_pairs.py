"""Key pairs: an access key that names its caller, and the secret that signs the caller's requests.

The secret is shown once. It is stored encrypted, not hashed like a token: verifying a signature requires it.
"""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Sequence

from orchestrator.security.encryption import Cipher
from orchestrator.store.access import key_pairs
from orchestrator.store.access.key_pairs import KeyPairRow, Signer
from orchestrator.store.connections.database import Database


def create_key_pair(
    database: Database,
    cipher: Cipher,
    project_id: str,
    *,
    roles: Sequence[str],
    name: str = "",
    expires_at: dt.datetime | None = None,
) -> tuple[str, str]:
    """Create a key pair for `project_id`; return its access key and its secret, shown only now."""
    key, secret = secrets.token_hex(16), secrets.token_urlsafe(32)
    key_pairs.create(
        database,
        key=key,
        secret=cipher.seal(secret),
        project_id=project_id,
        name=name,
        roles=roles,
        expires_at=expires_at,
    )
    return key, secret


def list_key_pairs(database: Database, project_id: str | None = None) -> list[KeyPairRow]:
    """Return the key pairs of a project, or of all projects, oldest first."""
    return key_pairs.list_all(database, project_id)


def revoke_key_pair(database: Database, key: str) -> bool:
    """Revoke a key pair; return False if it does not exist or was revoked before."""
    return key_pairs.revoke(database, key)


def find_signer(database: Database, key: str) -> Signer | None:
    """Return the usable key pair with that key, by the database's clock."""
    return key_pairs.find_usable(database, key)
