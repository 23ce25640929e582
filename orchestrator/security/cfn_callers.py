"""Who asks in CloudFormation's way: by the key that a request is signed with
(docs/internals/rest-api.md §14).

A key is a resource's, which opens one stack and of it little; or a caller's own, which opens a project; or,
where callers are known by Keystone, one of its users'. Where nobody is asked who they are, a key that nobody
knows is the name of a project, and no key the default one.
"""

from __future__ import annotations

from typing import Any, Final

from orchestrator.clients.keystone.ec2_tokens import Ec2Tokens, InvalidSignature
from orchestrator.config import Settings
from orchestrator.security.caller import Caller, for_project
from orchestrator.security.encryption import Cipher
from orchestrator.security.key_pairs import find_signer
from orchestrator.security.keystone import caller_of, service_user
from orchestrator.security.resource_credentials import STACK_USER, as_stack_user
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
from orchestrator.store.access import grants
from orchestrator.store.access.grants import AccessRow
from orchestrator.store.access.key_pairs import Signer
from orchestrator.store.connections.database import Database

DEFAULT_PROJECT: Final = "demo"  # as the command line has it
# What Keystone says of a signature -> Amazon's code; what it says besides is no reason to tell.
REASONS: Final = {
    "EC2 access key not found.": "InvalidClientTokenId",
    "EC2 signature not supplied.": "SignatureDoesNotMatch",
    "Invalid EC2 signature.": "SignatureDoesNotMatch",
}


class QueryCallers:
    """Says whom a request's key stands for."""

    def __init__(self, settings: Settings, database: Database, cipher: Cipher) -> None:
        """Take what keys are looked up in.

        Raises:
            Misconfigured: Keystone cannot be asked.
        """
        self._settings, self._database, self._cipher = settings, database, cipher
        self._keystone = Ec2Tokens(service_user(settings)) if settings.auth == "keystone" else None

    def identify(self, request: SignedRequest) -> Caller:
        """Return whom a request's key stands for.

        Raises:
            IncompleteSignature: it is not signed, or not as it must be.
            RequestExpired: it was signed too long ago.
            Refused: nobody has the key, or the signature is not the secret's.
            Unavailable: Keystone would know, and cannot be asked.
        """
        given = credential(request)
        known = self._known(given.key) if 0 < len(given.key) <= LONGEST else None
        if known is not None:
            return self._signed(request, known)
        if self._settings.auth == "none" and len(given.key) <= LONGEST:
            return for_project(None, given.key or DEFAULT_PROJECT, admin=self._settings.anonymous_admin)
        given = presented(request)
        if self._keystone is None:
            raise Refused("InvalidClientTokenId")
        require_recent(request, given)
        told = self._keystone.ask(_as_keystone_has_it(request, given))
        if isinstance(told, InvalidSignature):
            raise Refused(REASONS.get(told.message, "AccessDenied"))
        return as_stack_user(self._database, self._settings, caller_of(told.contents, told.token))

    def _known(self, key: str) -> AccessRow | Signer | None:
        found = self._database.batched(grants.by_key, key)
        return found or find_signer(self._database, key)

    def _signed(self, request: SignedRequest, known: AccessRow | Signer) -> Caller:
        given = presented(request)
        assert known.secret is not None  # it was found by its key
        if not is_signed(self._cipher.open(known.secret), request, given, self._settings.endpoint):
            raise Refused("SignatureDoesNotMatch")
        if isinstance(known, AccessRow):  # a machine's clock may be wrong: in version 2 it says no time
            return Caller(known.project_id, known.resource, (STACK_USER,), bearer=known)
        require_recent(request, given)
        return Caller(known.project_id, known.name, known.roles)


def _as_keystone_has_it(request: SignedRequest, given: Credential) -> dict[str, Any]:
    """Return what Keystone checks a signature with: no more of the request than was signed."""
    params = request.query if given.v4 else request.params
    names = [*given.v4.get("SignedHeaders", "").split(";"), "authorization", "x-amz-date"]
    return {
        "access": given.key,
        "signature": given.signature,
        "host": request.host,
        "verb": request.verb,
        "path": request.path,
        "params": {name: value for name, value in params.items() if name != "Signature"},
        "headers": {name.title(): request.headers[name] for name in names if name in request.headers},
        "body_hash": request.body_hash,
    }
