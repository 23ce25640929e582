"""Verify EC2-style request signatures (docs/internals/rest-api.md §14). `resources/ec2_signatures.py` creates
them.

A signature is valid if the secret of the request's access key produces it. Version 2 stores it in the
parameters, and is used for signed URLs. Version 4 uses a header and is valid for minutes.
"""

from __future__ import annotations

import datetime as dt
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from orchestrator.errors import Forbidden, InvalidRequest
from orchestrator.resources.ec2_signatures import METHODS, V4, signature_v2, signature_v4

SKEW_SECONDS: Final = 15 * 60  # tolerated difference between the signer's clock and ours
MAX_EXPIRES_SECONDS: Final = 7 * 24 * 3_600  # longest validity of a signed URL, Amazon's maximum
MAX_LENGTH: Final = 1_000  # characters of a key or a signature


class IncompleteSignature(InvalidRequest):
    """The request has no signature, or an incomplete signature."""

    heat_type = "IncompleteSignature"

    def __init__(self) -> None:
        """Use Amazon's message."""
        super().__init__("The request signature does not conform to AWS standards")


class RequestExpired(InvalidRequest):
    """The request was signed too long ago, or in the future."""

    heat_type = "RequestExpired"

    def __init__(self) -> None:
        """Use Amazon's message."""
        super().__init__("Request expired or the request date is too far in the future")


class Refused(Forbidden):
    """The key is unknown, or the signature does not match its secret."""

    def __init__(self, code: str = "AccessDenied") -> None:
        """`code` is Amazon's error code."""
        self.heat_type = code
        super().__init__(_MESSAGES[code])


_MESSAGES: Final = {
    "AccessDenied": "User is not authorized to perform action",
    "InvalidClientTokenId": "The certificate or AWS Key ID provided does not exist",
    "MissingAuthenticationToken": "Does not contain a valid AWS Access Key or certificate",
    "SignatureDoesNotMatch": "The request signature we calculated does not match the signature you provided",
}


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """A request as signed by its sender."""

    verb: str
    host: str  # from the request
    path: str  # unquoted, with the prefix of a proxy
    below: str  # without the prefix before the version
    params: Mapping[str, str]  # of the query, and of a form in the body
    headers: Mapping[str, str]  # names in lower case
    body_hash: str = ""  # SHA-256 in hex
    query: Mapping[str, str] = field(default_factory=dict)  # of the query only


@dataclass(frozen=True, slots=True)
class Credential:
    """Key and signature of a request; `v4` is the content of the header, empty in version 2."""

    key: str
    signature: str
    v4: Mapping[str, str]


def credential(request: SignedRequest) -> Credential:
    """Return key and signature of a request, "" where missing."""
    scheme, _, rest = request.headers.get("authorization", "").partition(" ")
    v4 = dict(part.strip().partition("=")[::2] for part in rest.split(",")) if scheme == V4 else {}
    key = request.params.get("AWSAccessKeyId") or v4.get("Credential", "").partition("/")[0]
    return Credential(key, request.params.get("Signature") or v4.get("Signature", ""), v4)


def received_signature(request: SignedRequest) -> Credential:
    """Return key and signature of a request.

    Raises:
        IncompleteSignature: the request is not signed.
        Refused: the key is missing, or key or signature are too long.
    """
    received = credential(request)
    if not received.signature:
        raise IncompleteSignature
    if not received.key:
        raise Refused("MissingAuthenticationToken")
    if len(received.key) > MAX_LENGTH or len(received.signature) > MAX_LENGTH:
        raise Refused
    return received


def is_signed(secret: str, request: SignedRequest, received: Credential, endpoint: str) -> bool:
    """Whether a secret produces the signature of a request; `endpoint` is the base address of signed URLs.

    Raises:
        IncompleteSignature: the header of version 4 is malformed.
        RequestExpired: version 4, signed too long ago.
    """
    if received.v4:
        return _is_good_v4(secret, request, received.v4)
    return any(
        _same(received.signature, expected) for expected in _expected_signatures(secret, request, endpoint)
    )


def require_recent(request: SignedRequest, received: Credential) -> None:
    """Check that a request was signed recently or, in version 2, has not yet expired.

    Raises:
        IncompleteSignature: it has no valid time.
        RequestExpired: it was signed too long ago, has expired, or would be valid for more than
            MAX_EXPIRES_SECONDS.
    """
    if received.v4:
        _require_now(_stamped(request))
        return
    expires, made = request.params.get("Expires"), request.params.get("Timestamp")
    try:
        at = dt.datetime.fromisoformat(expires or made or "")
    except ValueError:
        raise IncompleteSignature from None
    if at.tzinfo is None:
        at = at.replace(tzinfo=dt.UTC)
    if not expires:
        _require_now(at)
    elif not 0 <= (at - dt.datetime.now(dt.UTC)).total_seconds() <= MAX_EXPIRES_SECONDS:
        raise RequestExpired


def _require_now(at: dt.datetime) -> None:
    if abs((dt.datetime.now(dt.UTC) - at).total_seconds()) > SKEW_SECONDS:
        raise RequestExpired


def _stamped(request: SignedRequest) -> dt.datetime:
    stamp = request.headers.get("x-amz-date", "")
    try:
        return dt.datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=dt.UTC)
    except ValueError:
        raise IncompleteSignature from None


def _expected_signatures(secret: str, request: SignedRequest, endpoint: str) -> list[str]:
    """Return the valid signatures of version 2: with and without the port, and for the URL as it was issued,
    whatever a proxy changes.
    """
    if request.params.get("SignatureVersion", "2") != "2":
        return []
    if request.params.get("SignatureMethod", "HmacSHA256") not in METHODS:
        return []
    issued = urlsplit(endpoint)
    places = {
        (request.host, request.path),
        (request.host.rpartition(":")[0] or request.host, request.path),
        (issued.netloc, f"{issued.path}{request.below}"),
    }
    return [signature_v2(secret, request.verb, host, path, request.params) for host, path in places]


def _is_good_v4(secret: str, request: SignedRequest, received: Mapping[str, str]) -> bool:
    scope = received.get("Credential", "").partition("/")[2]
    names = received.get("SignedHeaders", "").split(";")
    stamp = request.headers.get("x-amz-date", "")
    if scope.count("/") != 3 or "host" not in names or any(name not in request.headers for name in names):
        raise IncompleteSignature
    _require_now(_stamped(request))
    if scope[:8] != stamp[:8] or not scope.endswith("/aws4_request"):
        return False
    expected = signature_v4(
        secret,
        request.verb,
        request.path,
        request.query,
        {name: request.headers[name] for name in names},
        scope=scope,
        stamp=stamp,
        body_hash=request.body_hash,
    )
    return _same(received.get("Signature", ""), expected)


def _same(received: str, expected: str) -> bool:
    return hmac.compare_digest(received.encode("utf-8", "surrogatepass"), expected.encode())
