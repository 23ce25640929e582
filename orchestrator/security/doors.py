"""How an installation learns who calls (`auth`): one door each way, all of them asked the same question.

Access that a resource gave opens its stack through every door that asks for anything at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.config import Settings
from orchestrator.errors import Unauthenticated
from orchestrator.security.bearers import STACK_USER, find_bearer
from orchestrator.security.caller import Caller
from orchestrator.security.keystone import Keystone
from orchestrator.security.tokens import find_token
from orchestrator.store.database import Database

Environ = Mapping[str, Any]  # a request's, as WSGI has it
# Returns whom a request is of, None where nobody is asked. Raises Unauthenticated, or Unavailable.
Door = Callable[[Environ], Caller | None]


def door(settings: Settings, database: Database) -> Door:
    """Return the door that the settings choose.

    Raises:
        Misconfigured: it cannot be made.
    """
    match settings.auth:
        case "none":
            return _open
        case "token":
            return _behind_bearers(database, _Tokens(database))
        case "keystone":
            return _behind_bearers(database, Keystone(settings))


def _open(_environ: Environ) -> None:
    """Ask nobody."""


def _behind_bearers(database: Database, ask: Callable[[Environ], Caller]) -> Door:
    def asked(environ: Environ) -> Caller:
        bearer = find_bearer(database, environ.get("HTTP_X_AUTH_TOKEN", ""))
        if bearer is not None:
            return Caller(bearer.project_id, bearer.resource, (STACK_USER,), bearer=bearer)
        return ask(environ)

    return asked


class _Tokens:
    """`auth = token`: tokens of our own."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __call__(self, environ: Environ) -> Caller:
        token = environ.get("HTTP_X_AUTH_TOKEN")
        row = find_token(self._database, token) if token else None
        if row is None:
            raise Unauthenticated
        return Caller(project_id=row.project_id, user=row.name, roles=("member", "reader"))
