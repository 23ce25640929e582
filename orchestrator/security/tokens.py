"""API tokens: random text shown once, its SHA-256 kept, each for one project.

A token is 256 random bits, so a plain hash is enough and looking it up by that hash tells a guesser nothing.
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
MEMBER = "member"  # the role of a token that none is named for


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
    """Return the tokens of one project, or of all, the oldest first."""
    return api_tokens.list_all(database, project_id)


def revoke_token(database: Database, token_id: int) -> bool:
    """Make a token useless from now on; False when there is none, or it was revoked before."""
    return api_tokens.revoke(database, token_id)


def find_token(database: Database, token: str) -> TokenRow | None:
    """Return the row of a token that may be used now, by the database's clock."""
    wanted = token_hash(token)
    found = api_tokens.find_usable(database, wanted)
    return found[0] if found is not None and hmac.compare_digest(found[1], wanted) else None
