"""The session of a browser: the credentials of the API in an encrypted cookie.

The server keeps no sessions, only a record of those that ended by signing out. The cookie is sent by the
browser for paths below `/ui` only, never to pages of other sites, and cannot be read by scripts. It ends
after `LIFETIME_SECONDS` or with its token; the API checks the credentials themselves with each call. Signing
out ends the session, also for copies of the cookie, and revokes a token that the console has requested.
Tokens of users stay valid, since other programs use them.
"""

from __future__ import annotations

import hashlib
import time
from base64 import b64encode, urlsafe_b64decode
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from flask import Request, Response
from werkzeug.exceptions import BadRequest

from api.web_applications import SESSION_KEY
from orchestrator_console.context import host

COOKIE: Final = "orchestrator_console"
PURPOSE: Final = "console session"  # distinguishes the cookie from other encrypted values
LIFETIME_SECONDS: Final = 8 * 3_600
MAX_COOKIE_BYTES: Final = 3_900  # browsers accept about 4,096 with the attributes
REQUIRED: Final = "The request you have made requires authentication."
HEADERS: Final = {"token": "HTTP_X_AUTH_TOKEN", "basic": "HTTP_AUTHORIZATION"}


@dataclass(frozen=True, slots=True)
class Session:
    """The credentials of a signed-in user."""

    kind: str  # a key of HEADERS
    value: str = field(repr=False)
    expires_at: float  # seconds since the epoch
    is_requested: bool = False  # a token that the console has requested for a password
    digest: bytes = field(default=b"", repr=False)  # of the cookie; not part of it

    @property
    def environ(self) -> dict[str, Any]:
        """Return the credentials as part of the environment of a WSGI request."""
        known = {SESSION_KEY: self.digest} if self.digest else {}
        return {HEADERS[self.kind]: self.value, **known}


def of_token(token: str) -> Session:
    """Return the session of a token of the API or of Keystone."""
    return Session("token", token, time.time() + LIFETIME_SECONDS)


def of_requested_token(token: str, expires_at: float) -> Session:
    """Return the session of a token that the console has requested; it ends with the token."""
    return Session("token", token, min(time.time() + LIFETIME_SECONDS, expires_at), is_requested=True)


def of_password(name: str, password: str) -> Session:
    """Return the session of a user of `auth = basic`."""
    value = b64encode(f"{name}:{password}".encode()).decode()
    return Session("basic", f"Basic {value}", time.time() + LIFETIME_SECONDS)


def store(response: Response, session: Session, request: Request) -> None:
    """Set the cookie.

    Raises:
        BadRequest: the credentials are too long for a cookie.
    """
    values = asdict(session)
    del values["digest"]
    text = host().seal({"purpose": PURPOSE, **values})
    if len(text) > MAX_COOKIE_BYTES:
        raise BadRequest("The token is too long for the cookie of a session; use a shorter token.")
    response.set_cookie(
        COOKIE,
        text,
        max_age=max(0, int(session.expires_at - time.time())),
        path=request.script_root or "/",
        secure=request.is_secure,
        httponly=True,
        samesite="Strict",
    )


def load(request: Request) -> Session | None:
    """Return the session of a request, None without a valid cookie, and without authentication."""
    text = request.cookies.get(COOKIE, "")
    if not text or len(text) > MAX_COOKIE_BYTES or host().auth == "none":
        return None
    values = host().open_sealed(text)
    if not isinstance(values, dict) or values.pop("purpose", None) != PURPOSE:
        return None
    # Of the bytes that are signed: further texts decode to the same bytes.
    digest = hashlib.sha256(urlsafe_b64decode(text)).digest()
    session = Session(**values, digest=digest)
    return session if session.expires_at > time.time() else None


def end(session: Session) -> None:
    """End a session for all API processes and all copies of its cookie."""
    token = session.value if session.is_requested else None
    host().end_session(session.digest, token, session.expires_at)


def clear(response: Response, request: Request) -> None:
    """Delete the cookie."""
    response.delete_cookie(
        COOKIE,
        path=request.script_root or "/",
        secure=request.is_secure,
        httponly=True,
        samesite="Strict",
    )
