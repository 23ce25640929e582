"""Signed URLs (spec/rest-api.md §14): good as long as the resource that gave one is there."""

from __future__ import annotations

from orchestrator.config import Settings
from orchestrator.security.encryption import Cipher
from orchestrator.security.signatures import Refused, SignedRequest, is_signed, presented
from orchestrator.store import access
from orchestrator.store.access import AccessRow
from orchestrator.store.database import Database


def authenticate(database: Database, cipher: Cipher, settings: Settings, request: SignedRequest) -> AccessRow:
    """Return what the key of a signed request opens.

    Raises:
        IncompleteSignature: it is not signed.
        Refused: no resource gave the key, or the signature is not the secret's.
    """
    given = presented(request)
    found = database.together(access.by_key, given.key)
    if found is None or found.secret is None:
        raise Refused("InvalidClientTokenId")
    if not is_signed(cipher.open(found.secret), request, given, settings.endpoint):
        raise Refused
    return found
