"""EC2-style signatures, and the signed URLs that servers signal at (docs/internals/rest-api.md §14). Pure.

Version 2 is HMAC over verb, host, unquoted path and sorted query; version 4 is over a digest of the request,
with a key derived for the day. `security/signatures.py` checks them.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Final, Literal
from urllib.parse import quote, unquote, urlencode, urlsplit

from orchestrator.resources.stack_context import StackLocation

Signalling = Literal["waitcondition", "signal"]

VERBS: Final[Mapping[str, str]] = {"waitcondition": "PUT", "signal": "POST"}  # by kind of URL
METHODS: Final[Mapping[str, str]] = {"HmacSHA256": "sha256", "HmacSHA1": "sha1"}
TOKEN_PREFIX: Final = "signal."  # noqa: S105 - prefix of every token
V4: Final = "AWS4-HMAC-SHA256"


def access_key(token: str) -> str:
    """Return the access key of the object created under a request token; equal for every attempt."""
    return hashlib.sha256(f"access {token}".encode()).hexdigest()[:32]


def new_secret() -> str:
    """Return a fresh secret to sign with."""
    return secrets.token_hex(16)


def new_token() -> str:
    """Return a new token for signals to a resource; no other token contains a dot."""
    return f"{TOKEN_PREFIX}{secrets.token_urlsafe(32)}"


def signal_url(
    place: StackLocation,
    key: str,
    secret: str,
    style: Signalling = "signal",
    *,
    at: dt.datetime | None = None,
) -> str:
    """Return the signed URL for signals to a resource, usable without a token.

    `at` is the creation time; a URL without it never expires formally. In both cases the URL is valid as long
    as the resource exists.
    """
    base = f"{place.endpoint}/v1/{style}"
    parts = urlsplit(base)
    params = {"AWSAccessKeyId": key, "SignatureMethod": "HmacSHA256", "SignatureVersion": "2"}
    if at is not None:
        params["Timestamp"] = at.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    path = f"{unquote(parts.path)}/{place.arn}"
    params["Signature"] = signature_v2(secret, VERBS[style], parts.netloc, path, params)
    return f"{base}/{quote(place.arn)}?{urlencode(params)}"


def signature_v2(secret: str, verb: str, host: str, path: str, params: Mapping[str, str]) -> str:
    """Return the signature of a request with these parameters, except `Signature`.

    Raises:
        KeyError: unknown `SignatureMethod`.
    """
    digest = METHODS[params.get("SignatureMethod", "HmacSHA256")]
    pairs = sorted((name, value) for name, value in params.items() if name != "Signature")
    query = "&".join(f"{quote(name, safe='-_~')}={quote(value, safe='-_~')}" for name, value in pairs)
    text = "\n".join((verb, host.lower(), path, query))
    return base64.b64encode(hmac.digest(secret.encode(), text.encode(), digest)).decode()


def signature_v4(
    secret: str,
    verb: str,
    path: str,
    params: Mapping[str, str],
    headers: Mapping[str, str],
    *,
    scope: str,
    stamp: str,
    body_hash: str,
) -> str:
    """Return the signature over these headers, their names in lower case, for a scope
    `day/region/service/aws4_request` and a time like 20260101T120000Z.
    """
    pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in params.items())
    query = "&".join(f"{name}={value}" for name, value in pairs)
    lines = "".join(f"{name}:{' '.join(headers[name].split())}\n" for name in sorted(headers))
    request = "\n".join((verb, path, query, lines, ";".join(sorted(headers)), body_hash))
    text = "\n".join((V4, stamp, scope, hashlib.sha256(request.encode()).hexdigest()))
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()
