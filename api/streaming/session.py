"""The credentials of an open event stream, checked again while it is open."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from flask import request

from api.dependencies import app_state
from orchestrator.errors import Unauthenticated, Unavailable
from orchestrator.security.caller import Caller

CHECK_SECONDS: Final = 15.0  # a stream ends so long after the revocation of its token, at most


class Session:
    """The credentials of a request."""

    def __init__(self, authenticate: Callable[[dict[str, object]], Caller | None]) -> None:
        """Take the authenticator of the application and the credentials of the current request."""
        self._authenticate = authenticate
        self._environ = request.environ.copy()
        self._identity = _identity(authenticate(self._environ.copy()))
        self._checked_at = time.monotonic()

    def is_over(self) -> bool:
        """Return whether the credentials are no longer valid, or are valid for another caller or other
        roles. The result of a check is used for CHECK_SECONDS.
        """
        if time.monotonic() - self._checked_at < CHECK_SECONDS:
            return False
        self._checked_at = time.monotonic()
        try:
            return _identity(self._authenticate(self._environ.copy())) != self._identity
        except Unauthenticated:
            return True
        except Unavailable:  # the database or Keystone does not respond: the next check decides
            return False


def _identity(caller: Caller | None) -> tuple[object, ...]:
    return () if caller is None else (caller.project_id, caller.user, caller.roles, caller.is_admin)


def current_session() -> Session:
    """Return the session of the current request."""
    return Session(app_state().authenticate)
