"""Signed URLs (docs/internals/rest-api.md §14): good as long as the resource that gave one is there."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from orchestrator.config import Settings
from orchestrator.security.encryption import Cipher
from orchestrator.security.signatures import Refused, SignedRequest, is_signed, presented
from orchestrator.store.access import grants
from orchestrator.store.access.grants import AccessRow
from orchestrator.store.connections.database import Database

LONGEST: Final = 2_000  # characters of a URL that is remembered; ours have some 400


def authenticate(database: Database, cipher: Cipher, settings: Settings, request: SignedRequest) -> AccessRow:
    """Return what the key of a signed request opens.

    Raises:
        IncompleteSignature: it is not signed.
        Refused: no resource gave the key, or the signature is not the secret's.
    """
    given = presented(request)
    found = database.batched(grants.by_key, given.key)
    if found is None or found.secret is None:
        raise Refused("InvalidClientTokenId")
    if len(request.path) + sum(map(len, request.params.values())) > LONGEST or given.v4:
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
    """Whether a URL is signed with a sealed secret: one is used again and again, and is good or is not."""
    verb, host, path, below = where
    request = SignedRequest(verb, host, path, below, dict(params), {})
    return is_signed(cipher.open(sealed), request, presented(request), endpoint)
