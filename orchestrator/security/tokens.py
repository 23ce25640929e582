"""API tokens: random text, shown once and stored as SHA-256, each for a single project.

A token is 256 random bits, so a plain hash suffices, and a lookup by that hash leaks no information.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import secrets
from collections.abc import Sequence

from orchestrator.store.access import api_tokens
from orchestrator.store.access.api_tokens import TokenRow
from orchestrator.store.connections.database import Database

TOKEN_BYTES = 32
PREFIX = "orc_"  # never a hyphen, which command lines take for an option; searchable in leaked texts
MEMBER = "member"  # the default role of a token


def token_hash(token: str) -> bytes:
    """Return the hash that is stored for `token`."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def create_token(
    database: Database,
    project_id: str,
    name: str = "",
    expires_at: dt.datetime | None = None,
    roles: Sequence[str] = (MEMBER,),
) -> str:
    """Create a token for `project_id`; return its text, which is never shown again."""
    token = f"{PREFIX}{secrets.token_urlsafe(TOKEN_BYTES)}"
    api_tokens.create(
        database,
        token_hash=token_hash(token),
        project_id=project_id,
        name=name,
        roles=roles,
        expires_at=expires_at,
    )
    return token


def list_tokens(database: Database, project_id: str | None = None) -> list[TokenRow]:
    """Return the tokens of a project, or of all projects, oldest first."""
    return api_tokens.list_all(database, project_id)


def revoke_token(database: Database, token_id: int) -> bool:
    """Revoke a token; return False if it does not exist or was revoked before."""
    return api_tokens.revoke(database, token_id)


def find_token(database: Database, token: str) -> TokenRow | None:
    """Return the row of a usable token, by the database's clock."""
    digest = token_hash(token)
    row = api_tokens.find_usable(database, digest)
    return row[0] if row is not None and hmac.compare_digest(row[1], digest) else None
