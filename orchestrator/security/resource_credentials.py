"""Resource credentials: keys, tokens and Keystone users created by a resource, with limited access to its
stack; and the signed URLs (docs/internals/rest-api.md §14), valid as long as the resource exists.

They allow reading the metadata of the resource and signalling it; keys of a user resource allow everything
that all policies of that user allow (docs/internals/resource-types.md §A10).
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Final

from orchestrator.config import Settings
from orchestrator.errors import Forbidden
from orchestrator.resources.ec2_signatures import TOKEN_PREFIX
from orchestrator.security.caller import Caller
from orchestrator.security.encryption import Cipher
from orchestrator.security.signatures import Refused, SignedRequest, is_signed, received_signature
from orchestrator.security.tokens import token_hash
from orchestrator.store.access import grants
from orchestrator.store.access.grants import AccessRow
from orchestrator.store.connections.database import Database

STACK_USER: Final = "heat_stack_user"  # Heat's name of the role
DENIED: Final = "You are not authorized to complete this action."
MAX_CACHED_LENGTH: Final = 2_000  # characters of a cached URL; ours have about 400


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
    has_role = caller.login is not None and STACK_USER in caller.login.role_names
    if not has_role or not settings.stack_user_domain_name:
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


def authenticate(database: Database, cipher: Cipher, settings: Settings, request: SignedRequest) -> AccessRow:
    """Return the resource credential that signs a request.

    Raises:
        IncompleteSignature: the request is not signed.
        Refused: the key is unknown, or the signature does not match its secret.
    """
    given = received_signature(request)
    found = database.batched(grants.by_key, given.key)
    if found is None or found.secret is None:
        raise Refused("InvalidClientTokenId")
    if len(request.path) + sum(map(len, request.params.values())) > MAX_CACHED_LENGTH or given.v4:
        good = is_signed(cipher.open(found.secret), request, given, settings.endpoint)
    else:
        where = (request.verb, request.host, request.path, request.below)
        params = tuple(request.params.items())
        good = _is_good(cipher, found.secret, where, params, settings.endpoint)
    if not good:
        raise Refused
    return found


@lru_cache(maxsize=4096)
def _is_good(
    cipher: Cipher,
    sealed: bytes,
    where: tuple[str, str, str, str],
    params: tuple[tuple[str, str], ...],
    endpoint: str,
) -> bool:
    """Whether a URL is signed with a sealed secret. Cached: a URL is used repeatedly, and its validity never
    changes.
    """
    verb, host, path, below = where
    request = SignedRequest(verb, host, path, below, dict(params), {})
    return is_signed(cipher.open(sealed), request, received_signature(request), endpoint)
