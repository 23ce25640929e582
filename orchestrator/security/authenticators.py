"""Authenticators: one for each value of the setting `auth`. All have the same signature.

Every authenticator except with `auth = none` also accepts resource credentials.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from orchestrator.config import Settings
from orchestrator.errors import Misconfigured, Unauthenticated
from orchestrator.security.caller import Caller
from orchestrator.security.ended_sessions import is_ended, without_credentials
from orchestrator.security.keystone import Keystone
from orchestrator.security.password_file import Users
from orchestrator.security.policy import IS_ADMIN, allowed, policy_of
from orchestrator.security.resource_credentials import STACK_USER, as_stack_user, find_credential
from orchestrator.security.tokens import find_token
from orchestrator.store.connections.database import Database

Environ = Mapping[str, Any]  # of a request, as in WSGI
# Returns the caller of a request, None without authentication. Raises Unauthenticated, or Unavailable.
Authenticator = Callable[[Environ], Caller | None]


def authenticator(settings: Settings, database: Database) -> Authenticator:
    """Return the configured authenticator.

    Raises:
        Misconfigured: it cannot be created.
    """
    policy = policy_of(settings)
    ask: Callable[[Environ], Caller]
    match settings.auth:
        case None:
            raise Misconfigured("set ORCHESTRATOR_AUTH to token, basic or keystone, or to none")
        case "none":
            return _anonymous
        case "token":
            ask = _TokenAuthenticator(database)
        case "basic":
            ask = Users(settings)
        case "keystone":
            ask = Keystone(settings)

    def authenticate_all(environ: Environ) -> Caller:
        bearer = find_credential(database, environ.get("HTTP_X_AUTH_TOKEN", ""))
        if bearer is not None:
            return Caller(bearer.project_id, bearer.resource, (STACK_USER,), bearer=bearer)
        if is_ended(database, settings, environ):
            environ = without_credentials(environ)
        caller = as_stack_user(database, settings, ask(environ))
        return replace(caller, is_admin=caller.is_admin_project and allowed(policy, IS_ADMIN, caller))

    return authenticate_all


def require_authenticator(settings: Settings) -> None:
    """Check that the configured authenticator can be created; the database is not used.

    Raises:
        Misconfigured: it cannot be created.
    """
    authenticator(settings, cast(Database, None))


def _anonymous(_environ: Environ) -> None:
    """Authenticate no request (`auth = none`)."""


class _TokenAuthenticator:
    """`auth = token`: API tokens of this installation."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __call__(self, environ: Environ) -> Caller:
        token = environ.get("HTTP_X_AUTH_TOKEN")
        row = find_token(self._database, token) if token else None
        if row is None:
            raise Unauthenticated
        return Caller(project_id=row.project_id, user=row.name, roles=row.roles)
