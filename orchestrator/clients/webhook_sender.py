"""Deliver a request to a webhook: signed, once, with a timeout, and never to a private network.

Requests are signed according to https://www.standardwebhooks.com, for which libraries exist in most
languages: HMAC-SHA256 over id, time and body, in the header `webhook-signature`. The signature covers the
time, so that a receiver can refuse old requests: replays of a recorded request.

Redirects are not followed: a signed request is sent to no other address.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

import httpcore
import httpx

from orchestrator.clients.deadline import Deadline, open_response, read_body
from orchestrator.clients.public_addresses import is_public
from orchestrator.clients.url_fetcher import parts_of

TIMEOUT_SECONDS: Final = 10.0  # of a delivery
PREFIX: Final = "whsec_"
SECRET_BYTES: Final = 32
MIN_SECRET_BYTES: Final = 24  # bytes of a secret chosen by a caller, as the specification requires
MAX_SECRET_BYTES: Final = 64
MAX_URL_CHARACTERS: Final = 2_000
MAX_QUOTED: Final = 200  # characters of a response that an error message quotes


class NotDelivered(Exception):
    """The delivery failed; the text gives the reason."""


def new_secret() -> str:
    """Return a fresh secret."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def secret_fault(secret: str) -> str | None:
    """Return why a secret chosen by a caller is not valid."""
    try:
        size = len(_key(secret))
    except (ValueError, binascii.Error):
        size = 0
    if not secret.startswith(PREFIX) or not MIN_SECRET_BYTES <= size <= MAX_SECRET_BYTES:
        return (
            f"A secret is {PREFIX} and {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES} bytes in base64; "
            "leave it out to have it generated"
        )
    return None


def url_fault(url: str, *, private: bool) -> str | None:
    """Return why an address is not valid. Its host name is resolved and checked at each delivery."""
    if urlsplit(url).scheme not in {"http", "https"} or len(url) > MAX_URL_CHARACTERS:
        return f"A url begins with http:// or https:// and has at most {MAX_URL_CHARACTERS} characters"
    if any(not character.isprintable() or character.isspace() for character in url):
        return "A url has no spaces in it"
    try:
        host = parts_of(url).host.decode()
    except (ValueError, httpx.InvalidURL) as error:
        return f"That is no url: {error}"
    try:
        ip_address(host)
    except ValueError:
        return None
    return None if private or is_public(host) else "The url's address is not a public one"


def shown_url(url: str) -> str:
    """Return an address without its query, which may be a secret."""
    head, mark, _ = url.partition("?")
    return head + (f"{mark}******" if mark else "")


def signature(secret: str, id_: str, timestamp: int, body: bytes) -> str:
    """Return the header `webhook-signature`."""
    signed = b".".join((id_.encode(), str(timestamp).encode(), body))
    digest = hmac.new(_key(secret), signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def deliver(url: str, secret: str, id_: str, body: bytes, *, seconds: float, private: bool) -> int:
    """Send a body to an address; return the response's status.

    Raises:
        NotDelivered: no response within `seconds`, or a status other than 2xx.
    """
    timestamp = int(time.time())
    headers = [
        (b"Host", httpx.URL(url).netloc),
        (b"Content-Type", b"application/json"),
        (b"Content-Length", str(len(body)).encode()),
        (b"User-Agent", b"stack-orchestrator"),
        (b"Connection", b"close"),
        (b"webhook-id", id_.encode()),
        (b"webhook-timestamp", str(timestamp).encode()),
        (b"webhook-signature", signature(secret, id_, timestamp, body).encode()),
    ]
    accept = None if private else is_public
    try:
        with open_response(
            "POST", parts_of(url), headers, Deadline(seconds), body=body, accept=accept
        ) as answer:
            if 200 <= answer.status < 300:
                return answer.status
            said = _start_of(answer)
    except (TimeoutError, httpcore.TimeoutException) as error:
        raise NotDelivered(f"it did not answer within {seconds:g} seconds") from error
    except (OSError, ValueError, httpx.InvalidURL, httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise NotDelivered(str(error) or type(error).__name__) from error
    quoted = " ".join(said.decode(errors="replace").split())[:MAX_QUOTED]
    raise NotDelivered(f"it answered {answer.status}" + (f": {quoted}" if quoted else ""))


def _start_of(answer: httpcore.Response) -> bytes:
    """Return the start of a body, "" if none of it arrives in time."""
    try:
        return read_body(answer, MAX_QUOTED)
    except httpcore.TimeoutException:
        return b""


def _key(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
