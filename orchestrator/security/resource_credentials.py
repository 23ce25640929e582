"""Resource credentials: keys, tokens and Keystone users created by a resource, with limited access to its
stack.

They allow reading the metadata of the resource and signalling it; keys of a user resource allow everything
that all policies of that user allow (docs/internals/resource-types.md §A10).
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

STACK_USER: Final = "heat_stack_user"  # Heat's name of the role
DENIED: Final = "You are not authorized to complete this action."


def find_credential(database: Database, token: str) -> AccessRow | None:
    """Return the credential with that token, None if it does not exist or its resource is deleted."""
    if not token.startswith(TOKEN_PREFIX):
        return None
    return database.batched(grants.by_token, token_hash(token))


def as_stack_user(database: Database, settings: Settings, caller: Caller) -> Caller:
    """Resolve a Keystone caller with the role of stack users to the resource credential of that user.

    A caller with that role who is no stack user loses all roles. Other callers are returned unchanged, as are
    all callers if no stack domain is configured.
    """
    has_role = caller.login is not None and settings.heat_stack_user_role in caller.login.role_names
    if not has_role or not (settings.stack_user_domain_id or settings.stack_user_domain_name):
        return caller
    with database.borrow() as db:
        bearer = grants.by_user(db, caller.user_id)
    roles = () if bearer is None else (STACK_USER,)
    return replace(caller, roles=roles, bearer=bearer, login=None)


def require(database: Database, bearer: AccessRow, stack_id: int, name: str) -> None:
    """Check that a credential may read and signal a resource of that name.

    Raises:
        Forbidden: it may not, or belongs to another stack.
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
