"""Who acts by what a stack's resource gave: a key, a token, or a user at Keystone. They see one stack, and
of it little.

They may read the metadata of the resource that made the key, and signal it; with a key of a user, whatever
all policies of that user allow (docs/internals/resource-types.md §A10).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from orchestrator.config import Settings
from orchestrator.errors import Forbidden
from orchestrator.resources.ec2_signatures import TOKEN_PREFIX
from orchestrator.security.caller import Caller
from orchestrator.security.tokens import token_hash
from orchestrator.store.access import grants
from orchestrator.store.access.grants import AccessRow
from orchestrator.store.connections.database import Database

STACK_USER: Final = "heat_stack_user"  # the role, as Heat calls it
DENIED: Final = "You are not authorized to complete this action."


def find_credential(database: Database, token: str) -> AccessRow | None:
    """Return what a token of a resource's opens, None when it is none or opens nothing any more."""
    if not token.startswith(TOKEN_PREFIX):
        return None
    return database.batched(grants.by_token, token_hash(token))


def as_stack_user(database: Database, settings: Settings, caller: Caller) -> Caller:
    """Return a caller of Keystone's who has the role of stacks' users as what they are: one resource's user,
    or, whatever other roles they have, nobody. Others stay as they are, and so do all where stacks have no
    users there.
    """
    has_role = caller.login is not None and settings.heat_stack_user_role in caller.login.role_names
    if not has_role or not (settings.stack_user_domain_id or settings.stack_user_domain_name):
        return caller
    with database.borrow() as db:
        bearer = grants.by_user(db, caller.user_id)
    roles = () if bearer is None else (STACK_USER,)
    return replace(caller, roles=roles, bearer=bearer, login=None)


def require(database: Database, bearer: AccessRow, stack_id: int, name: str) -> None:
    """Return when somebody may read and signal a resource of that name.

    Raises:
        Forbidden: they may not, or it is another stack's.
    """
    if bearer.stack_id == stack_id:
        if bearer.user is None:
            if name == bearer.resource:
                return
        elif not bearer.policies:
            return
        else:
            with database.borrow() as db:
                allowed = grants.allowed(db, stack_id, bearer.policies)
            if all(name in (allowed.get(policy) or ()) for policy in bearer.policies):
                return
    raise Forbidden(DENIED)
