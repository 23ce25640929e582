"""Sessions of the console that were ended by signing out, and tokens that ended with them.

A session is a sealed cookie, and a Keystone token may be in the cache of each API process: neither shows that
it was ended. All processes therefore look it up in the database. Nothing is cached, so that no process
accepts an ended session.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any, Final

from orchestrator.config import Settings
from orchestrator.security.tokens import token_hash
from orchestrator.store.access import ended_sessions
from orchestrator.store.connections.database import Database

TOKEN_CACHE_SECONDS: Final = 300  # lifetime of a cached token: a revoked token stays valid this long
SESSION_KEY: Final = "orchestrator.session"  # of a WSGI environment: the digest of the session in the cookie
TOKEN: Final = "HTTP_X_AUTH_TOKEN"  # noqa: S105 - a name
CREDENTIALS: Final = frozenset({TOKEN, "HTTP_AUTHORIZATION"})


def end(database: Database, session: bytes, token: str | None, expires_at: float) -> None:
    """Remember that a session has ended, with its token if no other program uses the token.

    `expires_at` is the end of the cookie in seconds since the epoch.
    """
    until = dt.datetime.fromtimestamp(expires_at, dt.UTC)
    cached = dt.timedelta(seconds=TOKEN_CACHE_SECONDS)
    digests = [session] if token is None else [session, token_hash(token)]
    ended_sessions.add(database, digests, max(until, dt.datetime.now(dt.UTC) + cached))


def is_ended(database: Database, settings: Settings, environ: Mapping[str, Any]) -> bool:
    """Whether the session or the Keystone token of a request was ended."""
    session, token = environ.get(SESSION_KEY), environ.get(TOKEN)
    digests = () if session is None else (bytes(session),)
    if settings.auth == "keystone" and token:
        digests = (*digests, token_hash(token))
    return bool(digests) and database.batched(ended_sessions.any_ended, digests)


def without_credentials(environ: Mapping[str, Any]) -> dict[str, Any]:
    """Return the environment of a request without its credentials."""
    return {name: value for name, value in environ.items() if name not in CREDENTIALS}
