"""Requests that are signed like the messages of webhooks (docs/webhooks.md), with the secret of a webhook.

The id of the message begins with the id of the webhook: `{webhook}.{anything}`. A message is accepted once,
and within minutes of its time. An unknown webhook, one of another project and a wrong signature get the same
answer.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import time
import uuid
from typing import Final, NamedTuple

from orchestrator.clients.webhook_sender import signature
from orchestrator.errors import Conflict, InvalidRequest
from orchestrator.security.encryption import Cipher
from orchestrator.security.signatures import Refused, RequestExpired
from orchestrator.store.access import idempotency
from orchestrator.store.connections.database import Database
from orchestrator.store.events import webhooks

TOLERANCE_SECONDS: Final = 300  # between the sender's clock and ours
_ID: Final = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.[!-~]{1,100}")
_TIME: Final = re.compile(r"[0-9]{1,12}")
MAX_SIGNATURES: Final = 1_000  # characters


class Replayed(Conflict):
    """A message with this id was accepted before."""

    def __init__(self) -> None:
        """Name the header."""
        super().__init__("The message was received before: each message needs another webhook-id.")


class SignedMessage(NamedTuple):
    """The headers of a signed message."""

    id: str
    webhook: uuid.UUID
    timestamp: int
    signatures: str  # separated by spaces


def signed_message(id_: str, timestamp: str, signatures: str) -> SignedMessage:
    """Return the headers of a signed message, from their texts.

    Raises:
        InvalidRequest: a header is missing or malformed.
        RequestExpired: the message is too old, or of the future.
    """
    found = _ID.fullmatch(id_)
    if found is None:
        raise InvalidRequest("webhook-id must be the id of a webhook of the project, a dot, and a text.")
    if not _TIME.fullmatch(timestamp):
        raise InvalidRequest("webhook-timestamp must be the time in seconds since 1970.")
    if not 1 <= len(signatures) <= MAX_SIGNATURES:
        raise InvalidRequest("webhook-signature must be a signature: v1,…")
    if abs(int(timestamp) - time.time()) > TOLERANCE_SECONDS:
        raise RequestExpired
    return SignedMessage(id_, uuid.UUID(found[1]), int(timestamp), signatures)


def require_signed(
    database: Database, cipher: Cipher, project_id: str, message: SignedMessage, body: bytes
) -> None:
    """Return if a webhook of the project has signed the message.

    Raises:
        Refused: the project has no such webhook, or the signature is wrong.
    """
    with database.borrow(hot=False) as db:
        webhook = webhooks.get(db, project_id, message.webhook)
    secret = cipher.open(webhook.sealed)["secret"] if webhook is not None else _NOBODYS
    expected = signature(secret, message.id, message.timestamp, body).encode()
    given = message.signatures.encode("utf-8", "replace").split()
    # All are compared, also for an unknown webhook: the time of the answer tells nothing.
    if not (sum(hmac.compare_digest(one, expected) for one in given) and webhook is not None):
        raise Refused("SignatureDoesNotMatch")


def accept_once(database: Database, project_id: str, message: SignedMessage) -> None:
    """Record a verified message.

    Raises:
        Replayed: it was accepted before.
    """
    token = idempotency.ClientToken(f"message {message.id}", hashlib.sha256(message.id.encode()).digest())
    with database.borrow(hot=False) as db, db.transaction():
        try:
            idempotency.record(db, project_id, token, message.webhook, "")
        except idempotency.TokenTaken:
            raise Replayed from None


_NOBODYS: Final = "whsec_" + "A" * 32
