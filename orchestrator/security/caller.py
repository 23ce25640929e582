"""Who is calling: the project a request may see, decided before anything is read for it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from orchestrator.errors import AccessDenied
from orchestrator.store.access.grants import AccessRow

ADMIN_ROLES: Final = ("admin", "member", "reader")
USER_ROLES: Final = ("member", "reader")


@dataclass(frozen=True, slots=True)
class Login:
    """What a caller of Keystone's showed: by it a stack is given the right to act for them later."""

    token: str = field(repr=False)
    project_id: str  # that the token is for, whatever the path says
    role_ids: tuple[str, ...] = ()
    role_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Caller:
    """The one a request acts for. Every query is scoped by `project_id`."""

    project_id: str
    user: str = ""
    roles: tuple[str, ...] = ()
    is_admin: bool = False  # of no project: reaches every project's stacks
    bearer: AccessRow | None = None  # of a key, token or user that a resource has: nothing else may be seen
    user_id: str = ""  # Keystone's; elsewhere users have names only
    login: Login | None = None  # of who showed a token of Keystone's
    is_admin_project: bool = True  # False: Keystone says that admins are made in another project

    @property
    def scope(self) -> str | None:
        """Return the project whose stacks the caller reaches, None for every project's."""
        return None if self.is_admin else self.project_id


def for_project(caller: Caller | None, project_id: str, *, admin: bool = False) -> Caller:
    """Return the caller as one of the project named in the path.

    Without authentication anyone is, and with `admin` an admin there. An admin may name any project in the
    path and stays in their own. Who acts by what a resource gave is of its stack's project; a user of a
    stack's at Keystone, whose own project is another, may name either.

    Raises:
        AccessDenied: the caller's token is another project's.
    """
    if caller is None:
        return Caller(project_id=project_id, roles=ADMIN_ROLES if admin else USER_ROLES, is_admin=admin)
    if caller.bearer is not None and project_id in (caller.project_id, caller.bearer.project_id):
        return replace(caller, project_id=caller.bearer.project_id)
    if caller.project_id != project_id and not (caller.is_admin and caller.project_id):
        raise AccessDenied
    return caller
