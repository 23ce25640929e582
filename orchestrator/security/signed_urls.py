"""Check EC2-style signatures of requests (spec/rest-api.md §14). `resources/signing.py` makes them.

A request is good when the secret of the access key it names gives its signature. Version 2 is what signed
URLs have: such a URL is good as long as the resource that gave it is there. Version 4 is for requests as they
are made, within minutes.
"""

from __future__ import annotations

import datetime as dt
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from orchestrator.config import Settings
from orchestrator.errors import Forbidden, InvalidRequest
from orchestrator.resources.signing import METHODS, V4, signal_url, signature_v2, signature_v4
from orchestrator.security.encryption import Cipher
from orchestrator.store import access
from orchestrator.store.access import AccessRow
from orchestrator.store.database import Database

__all__ = ["IncompleteSignature", "Refused", "SignedRequest", "authenticate", "signal_url"]

SKEW_SECONDS: Final = 15 * 60  # that the clocks of a version 4 request and of ours may be apart
LONGEST: Final = 1_000  # characters of a key or a signature


class IncompleteSignature(InvalidRequest):
    """A request without a signature, or with half of one."""

    heat_type = "IncompleteSignature"

    def __init__(self) -> None:
        """Say so as Amazon does."""
        super().__init__("The request signature does not conform to AWS standards")


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
}


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """A request as its sender signed it."""

    verb: str
    host: str  # as asked for
    path: str  # unquoted, with everything in front of it
    below: str  # the same without what may be in front of the version
    params: Mapping[str, str]
    headers: Mapping[str, str]  # names in lower case
    body_hash: str = ""  # SHA-256 in hex


def authenticate(database: Database, cipher: Cipher, settings: Settings, request: SignedRequest) -> AccessRow:
    """Return what the key of a signed request opens.

    Raises:
        IncompleteSignature: it is not signed.
        Refused: nobody has the key, or the signature is not the secret's.
    """
    scheme, _, rest = request.headers.get("authorization", "").partition(" ")
    given = dict(part.strip().partition("=")[::2] for part in rest.split(",")) if scheme == V4 else {}
    signature = request.params.get("Signature") or given.get("Signature", "")
    if not signature:
        raise IncompleteSignature
    key = request.params.get("AWSAccessKeyId") or given.get("Credential", "").partition("/")[0]
    if not key:
        raise Refused("MissingAuthenticationToken")
    if len(key) > LONGEST or len(signature) > LONGEST:
        raise Refused
    with database.lent() as db:
        found = access.by_key(db, key)
    if found is None or found.secret is None:
        raise Refused("InvalidClientTokenId")
    secret = cipher.open(found.secret)
    if given:
        good = _is_good_v4(secret, request, given)
    else:
        good = any(_same(signature, wanted) for wanted in _wanted(secret, request, settings))
    if not good:
        raise Refused
    return found


def _wanted(secret: str, request: SignedRequest, settings: Settings) -> list[str]:
    """Return the signatures that are good: with and without the port, and as the URL was given out, whatever
    a proxy makes of it.
    """
    if request.params.get("SignatureVersion", "2") != "2":
        return []
    if request.params.get("SignatureMethod", "HmacSHA256") not in METHODS:
        return []
    told = urlsplit(settings.endpoint)
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
        return False
    try:
        at = dt.datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=dt.UTC)
    except ValueError:
        return False
    if abs((dt.datetime.now(dt.UTC) - at).total_seconds()) > SKEW_SECONDS or scope[:8] != stamp[:8]:
        return False
    wanted = signature_v4(
        secret,
        request.verb,
        request.path,
        request.params,
        {name: request.headers[name] for name in names},
        scope=scope,
        stamp=stamp,
        body_hash=request.body_hash,
    )
    return _same(given.get("Signature", ""), wanted)


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode())
