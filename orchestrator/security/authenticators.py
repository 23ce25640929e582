"""How an installation learns who calls (`auth`): one door each way, all of them asked the same question.

Access that a resource gave opens its stack through every door that asks for anything at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from orchestrator.config import Settings
from orchestrator.errors import Unauthenticated
from orchestrator.security.caller import Caller
from orchestrator.security.keystone import Keystone
from orchestrator.security.password_file import Users
from orchestrator.security.policy import IS_ADMIN, allowed, policy_of
from orchestrator.security.resource_credentials import STACK_USER, as_stack_user, find_credential
from orchestrator.security.tokens import find_token
from orchestrator.store.connections.database import Database

Environ = Mapping[str, Any]  # a request's, as WSGI has it
# Returns whom a request is of, None where nobody is asked. Raises Unauthenticated, or Unavailable.
Door = Callable[[Environ], Caller | None]


def door(settings: Settings, database: Database) -> Door:
    """Return the door that the settings choose.

    Raises:
        Misconfigured: it cannot be made.
    """
    policy = policy_of(settings)
    ask: Callable[[Environ], Caller]
    match settings.auth:
        case "none":
            return _open
        case "token":
            ask = _Tokens(database)
        case "basic":
            ask = Users(settings)
        case "keystone":
            ask = Keystone(settings)

    def asked(environ: Environ) -> Caller:
        bearer = find_credential(database, environ.get("HTTP_X_AUTH_TOKEN", ""))
        if bearer is not None:
            return Caller(bearer.project_id, bearer.resource, (STACK_USER,), bearer=bearer)
        caller = as_stack_user(database, settings, ask(environ))
        return replace(caller, is_admin=caller.is_admin_project and allowed(policy, IS_ADMIN, caller))

    return asked


def require_door(settings: Settings) -> None:
    """Return when a door can be made as the settings choose; its database is not asked for it.

    Raises:
        Misconfigured: it cannot.
    """
    door(settings, cast(Database, None))


def _open(_environ: Environ) -> None:
    """Ask nobody."""


class _Tokens:
    """`auth = token`: tokens of our own."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __call__(self, environ: Environ) -> Caller:
        token = environ.get("HTTP_X_AUTH_TOKEN")
        row = find_token(self._database, token) if token else None
        if row is None:
            raise Unauthenticated
        return Caller(project_id=row.project_id, user=row.name, roles=row.roles)
