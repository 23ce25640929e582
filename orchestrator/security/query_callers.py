"""Who asks in CloudFormation's way: by the key that a request is signed with (spec/rest-api.md §14).

A key is a resource's, which opens one stack and of it little, or a caller's own, which opens a project. Where
nobody is asked who they are, a key that nobody knows is the name of a project, and no key the default one.
"""

from __future__ import annotations

from typing import Final

from orchestrator.config import Settings
from orchestrator.security.bearers import STACK_USER
from orchestrator.security.caller import Caller, for_project
from orchestrator.security.encryption import Cipher
from orchestrator.security.key_pairs import Signer, find_signer
from orchestrator.security.signatures import (
    LONGEST,
    Credential,
    Refused,
    SignedRequest,
    credential,
    is_signed,
    presented,
    require_recent,
)
from orchestrator.store import access
from orchestrator.store.access import AccessRow
from orchestrator.store.database import Database

DEFAULT_PROJECT: Final = "demo"  # as the command line has it


def identify_signer(database: Database, cipher: Cipher, settings: Settings, request: SignedRequest) -> Caller:
    """Return whom a request's key stands for.

    Raises:
        IncompleteSignature: it is not signed, or not as it must be.
        RequestExpired: it was signed too long ago.
        Refused: nobody has the key, or the signature is not the secret's.
    """
    given = credential(request)
    known = _known(database, given.key) if 0 < len(given.key) <= LONGEST else None
    if known is None:
        if settings.auth == "none" and len(given.key) <= LONGEST:
            return for_project(None, given.key or DEFAULT_PROJECT)
        presented(request)
        raise Refused("InvalidClientTokenId")
    _require_signed(cipher, settings, request, known)
    if isinstance(known, AccessRow):
        return Caller(known.project_id, known.resource, (STACK_USER,), bearer=known)
    return Caller(known.project_id, known.name, known.roles)


def _known(database: Database, key: str) -> AccessRow | Signer | None:
    with database.lent() as db:
        found = access.by_key(db, key)
    return found or find_signer(database, key)


def _require_signed(
    cipher: Cipher, settings: Settings, request: SignedRequest, known: AccessRow | Signer
) -> None:
    given: Credential = presented(request)
    assert known.secret is not None  # it was found by its key
    if not is_signed(cipher.open(known.secret), request, given, settings.endpoint):
        raise Refused("SignatureDoesNotMatch")
    if isinstance(known, Signer) and not given.v4:
        require_recent(request.params)
