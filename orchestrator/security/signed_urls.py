"""Signed URLs (docs/internals/rest-api.md §14): valid as long as the resource that issued them exists."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from orchestrator.config import Settings
from orchestrator.security.encryption import Cipher
from orchestrator.security.signatures import Refused, SignedRequest, is_signed, received_signature
from orchestrator.store.access import grants
from orchestrator.store.access.grants import AccessRow
from orchestrator.store.connections.database import Database

MAX_CACHED_LENGTH: Final = 2_000  # characters of a cached URL; ours have about 400


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
