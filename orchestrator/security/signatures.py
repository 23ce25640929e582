"""Check EC2-style signatures of requests (docs/internals/rest-api.md §14). `resources/ec2_signatures.py`
makes them.

A request is good when the secret of the access key it names gives its signature. Version 2 has everything
among the parameters, and is what signed URLs have. Version 4 has it in a header and is good for minutes.
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

SKEW_SECONDS: Final = 15 * 60  # that the clocks of who signs and ours may be apart
LONGEST: Final = 1_000  # characters of a key or a signature


class IncompleteSignature(InvalidRequest):
    """A request without a signature, or with half of one."""

    heat_type = "IncompleteSignature"

    def __init__(self) -> None:
        """Say so as Amazon does."""
        super().__init__("The request signature does not conform to AWS standards")


class RequestExpired(InvalidRequest):
    """A request signed too long ago, or in the future."""

    heat_type = "RequestExpired"

    def __init__(self) -> None:
        """Say so as Amazon does."""
        super().__init__("Request expired or the request date is too far in the future")


class Refused(Forbidden):
    """The signature, or the key, is not one that opens this."""

    def __init__(self, code: str = "AccessDenied") -> None:
        """Take Amazon's code of why."""
        self.heat_type = code
        super().__init__(_WORDS[code])


_WORDS: Final = {
    "AccessDenied": "User is not authorized to perform action",
    "InvalidClientTokenId": "The certificate or AWS Key ID provided does not exist",
    "MissingAuthenticationToken": "Does not contain a valid AWS Access Key or certificate",
    "SignatureDoesNotMatch": "The request signature we calculated does not match the signature you provided",
}


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """A request as its sender signed it."""

    verb: str
    host: str  # as asked for
    path: str  # unquoted, with everything in front of it
    below: str  # the same without what may be in front of the version
    params: Mapping[str, str]  # those of the query and those of a form in the body
    headers: Mapping[str, str]  # names in lower case
    body_hash: str = ""  # SHA-256 in hex
    query: Mapping[str, str] = field(default_factory=dict)  # those of the query alone


@dataclass(frozen=True, slots=True)
class Credential:
    """What a request says of who signed it; `v4` is what the header has, empty in version 2."""

    key: str
    signature: str
    v4: Mapping[str, str]


def credential(request: SignedRequest) -> Credential:
    """Return what a request says of who signed it; key and signature are empty where it says nothing."""
    scheme, _, rest = request.headers.get("authorization", "").partition(" ")
    v4 = dict(part.strip().partition("=")[::2] for part in rest.split(",")) if scheme == V4 else {}
    key = request.params.get("AWSAccessKeyId") or v4.get("Credential", "").partition("/")[0]
    return Credential(key, request.params.get("Signature") or v4.get("Signature", ""), v4)


def presented(request: SignedRequest) -> Credential:
    """Return what a request says of who signed it.

    Raises:
        IncompleteSignature: it is not signed.
        Refused: it says nothing of by whom, or more than there can be.
    """
    given = credential(request)
    if not given.signature:
        raise IncompleteSignature
    if not given.key:
        raise Refused("MissingAuthenticationToken")
    if len(given.key) > LONGEST or len(given.signature) > LONGEST:
        raise Refused
    return given


def is_signed(secret: str, request: SignedRequest, given: Credential, endpoint: str) -> bool:
    """Whether a request is signed with a secret; `endpoint` is the address that URLs are given out under.

    Raises:
        IncompleteSignature: what the header of a version 4 says cannot be a signature's.
        RequestExpired: version 4, and too long ago.
    """
    if given.v4:
        return _is_good_v4(secret, request, given.v4)
    return any(_same(given.signature, wanted) for wanted in _wanted(secret, request, endpoint))


def require_recent(request: SignedRequest, given: Credential) -> None:
    """Return when a request says that it was made just now, or in version 2 that it is good until later.

    Raises:
        IncompleteSignature: it says neither, or no time.
        RequestExpired: it is not.
    """
    if given.v4:
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
    elif at < dt.datetime.now(dt.UTC):
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


def _wanted(secret: str, request: SignedRequest, endpoint: str) -> list[str]:
    """Return the signatures of version 2 that are good: with and without the port, and as the URL was given
    out, whatever a proxy makes of it.
    """
    if request.params.get("SignatureVersion", "2") != "2":
        return []
    if request.params.get("SignatureMethod", "HmacSHA256") not in METHODS:
        return []
    told = urlsplit(endpoint)
    places = {
        (request.host, request.path),
        (request.host.rpartition(":")[0] or request.host, request.path),
        (told.netloc, f"{told.path}{request.below}"),
    }
    return [signature_v2(secret, request.verb, host, path, request.params) for host, path in places]


def _is_good_v4(secret: str, request: SignedRequest, given: Mapping[str, str]) -> bool:
    scope = given.get("Credential", "").partition("/")[2]
    names = given.get("SignedHeaders", "").split(";")
    stamp = request.headers.get("x-amz-date", "")
    if scope.count("/") != 3 or "host" not in names or any(name not in request.headers for name in names):
        raise IncompleteSignature
    _require_now(_stamped(request))
    if scope[:8] != stamp[:8] or not scope.endswith("/aws4_request"):
        return False
    wanted = signature_v4(
        secret,
        request.verb,
        request.path,
        request.query,
        {name: request.headers[name] for name in names},
        scope=scope,
        stamp=stamp,
        body_hash=request.body_hash,
    )
    return _same(given.get("Signature", ""), wanted)


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode())
