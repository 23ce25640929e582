"""Who is calling: the project a request may see, decided before anything is read for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orchestrator.errors import Forbidden
from orchestrator.store.access import AccessRow

ACCESS_DENIED: Final = "Access was denied to this resource."


@dataclass(frozen=True, slots=True)
class Caller:
    """The one a request acts for. Every query is scoped by `project_id`."""

    project_id: str
    user: str = ""
    roles: tuple[str, ...] = ()
    is_admin: bool = False
    bearer: AccessRow | None = None  # of a key or token that a resource gave: nothing else may be seen
    user_id: str = ""  # Keystone's; elsewhere users have names only


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
