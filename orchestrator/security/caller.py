"""Who is calling: the project a request may see, decided before anything is read for it."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.config import Settings
from orchestrator.errors import Forbidden, Unauthenticated
from orchestrator.security.bearers import STACK_USER, find_bearer
from orchestrator.security.tokens import find_token
from orchestrator.store.access import AccessRow
from orchestrator.store.database import Database

UNAUTHENTICATED = "The request you have made requires authentication."
ACCESS_DENIED = "Access was denied to this resource."


@dataclass(frozen=True, slots=True)
class Caller:
    """The one a request acts for. Every query is scoped by `project_id`."""

    project_id: str
    user: str = ""
    roles: tuple[str, ...] = ()
    is_admin: bool = False
    bearer: AccessRow | None = None  # of a key or token that a resource gave: nothing else may be seen


def identify(settings: Settings, database: Database, token: str | None) -> Caller | None:
    """Return whom a request's token stands for; None where nobody is asked who they are (`auth = none`).

    Raises:
        Unauthenticated: a token is needed, and this is none we know, or it expired or was revoked.
    """
    if settings.auth == "none":
        return None
    bearer = find_bearer(database, token) if token else None
    if bearer is not None:
        return Caller(bearer.project_id, bearer.resource, (STACK_USER,), bearer=bearer)
    row = find_token(database, token) if token else None
    if row is None:
        raise Unauthenticated(UNAUTHENTICATED)
    return Caller(project_id=row.project_id, user=row.name, roles=("member", "reader"))


def for_project(caller: Caller | None, project_id: str) -> Caller:
    """Return the caller as one of the project named in the path; without authentication anyone is.

    Raises:
        Forbidden: the caller's token is another project's.
    """
    if caller is None:
        return Caller(project_id=project_id, roles=("member", "reader"))
    if caller.project_id != project_id:
        raise Forbidden(ACCESS_DENIED)
    return caller
