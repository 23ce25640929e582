"""Callers of the CloudFormation API, identified by the access key that signs a request
(docs/internals/rest-api.md §14).

A key belongs to a resource, with limited access to its stack; to a key pair of this installation, with access
to a project; or, with `auth = keystone`, to a Keystone user. With `auth = none`, an unknown key is the name
of a project, and a request without a key uses the default project.
"""

from __future__ import annotations

from typing import Final

from orchestrator.clients.keystone.ec2_tokens import Ec2Tokens, InvalidSignature
from orchestrator.config import Settings
from orchestrator.json_types import JsonObject
from orchestrator.security.caller import Caller, for_project
from orchestrator.security.encryption import Cipher
from orchestrator.security.key_pairs import find_signer
from orchestrator.security.keystone import caller_of, service_user
from orchestrator.security.resource_credentials import STACK_USER, as_stack_user
from orchestrator.security.signatures import (
    MAX_LENGTH,
    Credential,
    Refused,
    SignedRequest,
    credential,
    is_signed,
    received_signature,
    require_recent,
)
from orchestrator.store.access import grants
from orchestrator.store.access.grants import AccessRow
from orchestrator.store.access.key_pairs import Signer
from orchestrator.store.connections.database import Database

DEFAULT_PROJECT: Final = "demo"  # the default of the command line, too
# Keystone's message about a signature -> Amazon's error code. Other messages are not passed on.
REASONS: Final = {
    "EC2 access key not found.": "InvalidClientTokenId",
    "EC2 signature not supplied.": "SignatureDoesNotMatch",
    "Invalid EC2 signature.": "SignatureDoesNotMatch",
}


class CfnCallers:
    """Identifies the callers of signed requests."""

    def __init__(self, settings: Settings, database: Database, cipher: Cipher) -> None:
        """Look up keys in the database and, with `auth = keystone`, at Keystone.

        Raises:
            Misconfigured: the settings for Keystone are incomplete.
        """
        self._settings, self._database, self._cipher = settings, database, cipher
        self._keystone = Ec2Tokens(service_user(settings)) if settings.auth == "keystone" else None

    def identify(self, request: SignedRequest) -> Caller:
        """Return the caller whose key signs a request.

        Raises:
            IncompleteSignature: the request is not signed, or its signature is malformed.
            RequestExpired: it was signed too long ago.
            Refused: the key is unknown, or the signature does not match its secret.
            Unavailable: Keystone would have to verify it, and does not respond.
        """
        received = credential(request)
        signer = self._find_key(received.key) if 0 < len(received.key) <= MAX_LENGTH else None
        if signer is not None:
            return self._signed(request, signer)
        if self._settings.auth == "none" and len(received.key) <= MAX_LENGTH:
            return for_project(None, received.key or DEFAULT_PROJECT, admin=self._settings.anonymous_admin)
        received = received_signature(request)
        if self._keystone is None:
            raise Refused("InvalidClientTokenId")
        require_recent(request, received)
        verdict = self._keystone.ask(_as_keystone_has_it(request, received))
        if isinstance(verdict, InvalidSignature):
            raise Refused(REASONS.get(verdict.message, "AccessDenied"))
        return as_stack_user(self._database, self._settings, caller_of(verdict.contents, verdict.token))

    def require_plausible(self, request: SignedRequest) -> bool:
        """Check what a request without its body shows; return whether it names a known key.

        Without authentication every key is known. A key in the form of a body is not known yet, nor is a key
        that only Keystone knows.

        Raises:
            IncompleteSignature: the request has no valid time.
            RequestExpired: it was signed too long ago.
            Refused: the key is unknown.
        """
        received = credential(request)
        if self._settings.auth == "none":
            return True
        if not 0 < len(received.key) <= MAX_LENGTH:
            return False
        if received.v4:
            require_recent(request, received)
        is_known = self._find_key(received.key) is not None
        if not is_known and self._keystone is None:
            raise Refused("InvalidClientTokenId")
        return is_known

    def _find_key(self, key: str) -> AccessRow | Signer | None:
        row = self._database.batched(grants.by_key, key)
        return row or find_signer(self._database, key)

    def _signed(self, request: SignedRequest, signer: AccessRow | Signer) -> Caller:
        received = received_signature(request)
        assert signer.secret is not None  # otherwise it could not have been found by its key
        if not is_signed(self._cipher.open(signer.secret), request, received, self._settings.endpoint):
            raise Refused("SignatureDoesNotMatch")
        # no time check: the machine's clock may be wrong, and version 2 has no time
        if isinstance(signer, AccessRow):
            return Caller(signer.project_id, signer.resource, (STACK_USER,), bearer=signer)
        require_recent(request, received)
        return Caller(signer.project_id, signer.name, signer.roles)


def _as_keystone_has_it(request: SignedRequest, received: Credential) -> JsonObject:
    """Return the parts of a request that Keystone verifies a signature with: only signed parts."""
    params = request.query if received.v4 else request.params
    names = [*received.v4.get("SignedHeaders", "").split(";"), "authorization", "x-amz-date"]
    return {
        "access": received.key,
        "signature": received.signature,
        "host": request.host,
        "verb": request.verb,
        "path": request.path,
        "params": {name: value for name, value in params.items() if name != "Signature"},
        "headers": {name.title(): request.headers[name] for name in names if name in request.headers},
        "body_hash": request.body_hash,
    }
