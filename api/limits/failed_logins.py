"""Limits on requests that fail authentication or carry no credentials, by client address.

Valid credentials that were verified before are never affected, nor are tokens and signatures of this
installation: their secrets cannot be guessed, so they are verified in any case, and only the response to an
invalid secret changes. Passwords, and secrets that Keystone has to verify, are verified only within limits:

- After MAX_FAILURES failures of an address with the same claimed identity, each further failure doubles a
  delay. Other identities behind the same address are not delayed.
- The failures of an address, and of a user name from all addresses, have a rate.
- A process verifies few passwords at the same time, and one per address: a hash requires 32 MiB of memory.

Each API process counts separately, as in `rate_limits.py`.
"""

from __future__ import annotations

import hashlib
import math
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any, Final

from api.limits import rate_limits
from api.limits.rate_limits import TokenBuckets
from orchestrator import logs, metrics
from orchestrator.config import Settings
from orchestrator.errors import Unauthenticated
from orchestrator.fair_share import NoFreeSlot, fair_slots
from orchestrator.rate_errors import TooManyFailedLogins
from orchestrator.resources.ec2_signatures import TOKEN_PREFIX
from orchestrator.security.password_file import basic_credentials
from orchestrator.security.signatures import Refused

MAX_FAILURES: Final = 5  # without a delay
MAX_DELAY_SECONDS: Final = 60.0
FORGET_SECONDS: Final = 900.0  # after the last failure
NAME_RATE, NAME_BURST_SECONDS = 1.0, 50.0  # failures of a user name per second, from all addresses
VERIFICATIONS: Final = 2  # of passwords, at the same time
MAX_WAITING: Final = 16  # requests of an address that wait for a verification; twice as many of all addresses
WAIT_SECONDS: Final = 20.0
MAX_ENTRIES: Final = 10_000  # of each table
IPV6_PREFIX: Final = 64  # bits; a client usually has all addresses of such a network
INVALID: Final = (Unauthenticated, Refused)

log = logs.logger()


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials of a request."""

    digest: str
    identity: str  # claimed by the request
    guarded: bool  # they can be guessed, or another service verifies them
    user: str = ""  # name, of a password


@dataclass(slots=True)
class Delays:
    """Growing delays after repeated failures, by party."""

    _failures: OrderedDict[object, tuple[int, float]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def remaining(self, party: object) -> float:
        """Return the seconds until the next attempt."""
        count, at = self._failures.get(party, (0, 0.0))
        if count < MAX_FAILURES:
            return 0.0
        delay = min(MAX_DELAY_SECONDS, 2.0 ** min(count - MAX_FAILURES, 30))
        return max(0.0, at + delay - time.monotonic())

    def add(self, party: object) -> int:
        """Count a failure; return the number of failures."""
        now = time.monotonic()
        with self._lock:
            count, at = self._failures.pop(party, (0, now))
            count = 1 if now - at > FORGET_SECONDS else count + 1
            self._failures[party] = (count, now)
            if len(self._failures) > MAX_ENTRIES:
                self._failures.popitem(last=False)
        return count

    def reset(self, party: object) -> None:
        """Forget the failures."""
        with self._lock:
            self._failures.pop(party, None)


class FailedLogins:
    """The limits on failed authentication of an API process."""

    def __init__(self, settings: Settings) -> None:
        """Start without failures."""
        self._auth = settings.auth
        self._rate = settings.unauthenticated_rate_per_address
        self._key = secrets.token_bytes(32)
        self._delays = Delays()
        self._addresses = TokenBuckets(rate_limits.BURST_SECONDS)
        self._names = TokenBuckets(NAME_BURST_SECONDS)
        self._verified: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()
        self._slots = fair_slots(VERIFICATIONS, 1, MAX_WAITING)
        self._waiting = 0

    def credentials(self, environ: Mapping[str, Any]) -> Credentials | None:
        """Return the credentials in the headers of a request, None without any."""
        if self._auth == "basic":
            found = basic_credentials(environ.get("HTTP_AUTHORIZATION", ""))
            if found is not None:
                return Credentials(self._digest(*found), self._digest(found[0]), True, found[0])
        token = environ.get("HTTP_X_AUTH_TOKEN")
        if not token:
            return None
        digest = self._digest(token)
        return Credentials(digest, digest, self._auth == "keystone" and not token.startswith(TOKEN_PREFIX))

    def password(self, name: str, password: str) -> Credentials:
        """Return the credentials of a user who signs in with a name and a password."""
        return Credentials(self._digest(name, password), self._digest(name), guarded=True, user=name)

    def signature(self, key: str, signature: str, *, known: bool) -> Credentials:
        """Return the credentials of a signed request; `known` if its key belongs to this installation."""
        if known or self._auth != "keystone":
            digest = self._digest(key, signature)
            return Credentials(digest, digest, guarded=False)
        digest = self._digest(key)
        return Credentials(digest, digest, guarded=True)

    def is_guarded(self, environ: Mapping[str, Any]) -> bool:
        """Whether credentials may be verified only within limits."""
        found = self.credentials(environ)
        return found is not None and found.guarded and found.digest not in self._verified

    @contextmanager
    def verifying(self, environ: Mapping[str, Any], given: Credentials | None) -> Iterator[None]:
        """Count the result of a block that verifies the credentials of a request.

        Raises:
            TooManyFailedLogins: too many failures.
        """
        address = network_of(environ.get("REMOTE_ADDR") or "")
        guarded = given is not None and given.guarded and given.digest not in self._verified
        if guarded and self._rate > 0:
            assert given is not None
            _require_none(self._remaining(address, given))
        try:
            with self._slot(address) if guarded and given and given.user else nullcontext():
                yield
        except INVALID:
            if self._rate > 0:
                seconds = self._fail(address, given)
                if not guarded:
                    _require_none(seconds)
            raise
        if given is not None:
            self._succeed(address, given)

    @contextmanager
    def _slot(self, address: str) -> Iterator[None]:
        """Wait for the end of other verifications.

        Raises:
            TooManyFailedLogins: too many requests wait.
        """
        with self._lock:
            _require_none(float(self._waiting >= 2 * MAX_WAITING))
            self._waiting += 1
        try:
            self._slots.acquire(address, WAIT_SECONDS)
        except NoFreeSlot:
            _require_none(1.0)
        finally:
            with self._lock:
                self._waiting -= 1
        try:
            yield
        finally:
            self._slots.release(address)

    def _remaining(self, address: str, given: Credentials) -> float:
        """Return the seconds until these credentials may be verified."""
        seconds = self._delays.remaining((address, given.identity))
        if not seconds:
            seconds = self._addresses.take((address, True), self._rate, 0)
        if not seconds and given.user:
            seconds = self._names.take(given.identity, NAME_RATE, 0)
        return seconds

    def _fail(self, address: str, given: Credentials | None) -> float:
        """Count a failure; return the seconds until the next attempt if there were too many before."""
        if given is not None:
            with self._lock:
                self._verified.pop(given.digest, None)
        seconds = self._addresses.take((address, given is not None), self._rate)
        if given is None or seconds:
            return seconds
        party = (address, given.identity)
        seconds = self._delays.remaining(party)
        if not seconds and self._delays.add(party) == MAX_FAILURES:
            log.warning("failed_logins", address=address, failures=MAX_FAILURES)
        if given.user:
            self._names.take(given.identity, NAME_RATE)
        return seconds

    def _succeed(self, address: str, given: Credentials) -> None:
        self._delays.reset((address, given.identity))
        if given.guarded:
            with self._lock:
                self._verified[given.digest] = None
                self._verified.move_to_end(given.digest)
                if len(self._verified) > MAX_ENTRIES:
                    self._verified.popitem(last=False)

    def _digest(self, *texts: str) -> str:
        data = "\0".join(texts).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(data, key=self._key, digest_size=16).hexdigest()


@lru_cache(maxsize=4_096)
def network_of(address: str) -> str:
    """Return the address or, for IPv6, the network of a client."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return address
    return str(parsed.ipv4_mapped or ip_network((parsed, IPV6_PREFIX), strict=False))


def _require_none(seconds: float) -> None:
    if seconds:
        metrics.count_rate_limited()
        raise TooManyFailedLogins(math.ceil(seconds))
