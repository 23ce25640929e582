"""The caller of a request, and the project that bounds all of its queries."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from orchestrator.errors import AccessDenied
from orchestrator.json_types import JsonMapping
from orchestrator.store.access.grants import AccessRow

ADMIN_ROLES: Final = ("admin", "member", "reader")
USER_ROLES: Final = ("member", "reader")


@dataclass(frozen=True, slots=True)
class Login:
    """The caller's Keystone token, with which a stack is delegated the right to act for them later."""

    token: str = field(repr=False)
    project_id: str  # of the token; the path may name another project
    role_ids: tuple[str, ...] = ()
    role_names: tuple[str, ...] = ()
    endpoints: frozenset[tuple[str, str]] = frozenset()  # service type and region of public endpoints
    contents: JsonMapping | None = field(default=None, repr=False, compare=False)  # of the token, validated


@dataclass(frozen=True, slots=True)
class Caller:
    """The identity that a request acts as. Every query is scoped by `project_id`."""

    project_id: str
    user: str = ""
    roles: tuple[str, ...] = ()
    is_admin: bool = False  # without a project: reaches the stacks of every project
    bearer: AccessRow | None = None  # the resource credential that was used; it limits access to its stack
    user_id: str = ""  # Keystone's id; without Keystone, users only have names
    login: Login | None = None  # set if a Keystone token was used
    is_admin_project: bool = True  # False: Keystone defines admins by their roles in another project

    @property
    def scope(self) -> str | None:
        """Return the project whose stacks the caller reaches, None for all projects."""
        return None if self.is_admin else self.project_id


def for_project(caller: Caller | None, project_id: str, *, admin: bool = False) -> Caller:
    """Return the caller, authorized for the project in the path.

    Without authentication every caller belongs to the project, with `admin` as an administrator. An
    authenticated admin may name any project in the path and keeps their own. A resource credential belongs to
    its stack's project; a stack user of Keystone, who has their own project, may name either project.

    Raises:
        AccessDenied: the caller's token belongs to another project.
    """
    if caller is None:
        return Caller(project_id=project_id, roles=ADMIN_ROLES if admin else USER_ROLES, is_admin=admin)
    if caller.bearer is not None and project_id in (caller.project_id, caller.bearer.project_id):
        return replace(caller, project_id=caller.bearer.project_id)
    if caller.project_id != project_id and not (caller.is_admin and caller.project_id):
        raise AccessDenied
    return caller
