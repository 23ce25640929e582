"""Limits on concurrent requests, so that no caller can occupy all threads of an API process.

An authenticated request counts for its caller and its project until its response is sent. A body that the
server has not received completely before assigning a thread needs one of the threads for slow bodies. It
counts for its client address, or for caller and project if they are known. Before authentication a request
waits for nothing but its body, so addresses have no other limit: proxies and NAT share them.

Signals are fast and come in bursts, from all servers of a stack at once: they have no limit. Event streams
have their own limit.

A request beyond the limit of its project or caller waits for others of the same party, up to
`postponement.WAIT_SECONDS`, without a thread. It is refused then, or if too many wait already.

Authentication computes, too. The parties are predicted from the last request with the same credentials, and
such a request waits before its authentication. The prediction authorizes nothing: it can only delay the owner
of the credentials.

Each API process counts separately, as in `api/limits/rate_limits.py`.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from werkzeug.wsgi import ClosingIterator

from api import capacity, postponement
from api.dependencies import Wsgi
from orchestrator import config, metrics
from orchestrator.config import Settings
from orchestrator.fair_share import Occupancy
from orchestrator.operations.runtime import turns
from orchestrator.operations.runtime.caches import BoundedCache
from orchestrator.rate_errors import TooManyConcurrentRequests
from orchestrator.security.caller import Caller

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

TICKET: Final = "orchestrator.in_flight"
VERSIONED: Final = "/v1/"  # start of the path
SIGNAL: Final = "/signal"  # end of the path
SOCKET: Final = "gunicorn.socket"
LEAST: Final = 2  # concurrent requests, however few threads the process has
SHARE: Final = 2  # a caller and a project each have 1/SHARE of the threads
BODY_SHARE: Final = 4  # and 1/BODY_SHARE of the threads for slow bodies, as has an address
MAX_WAITING: Final = 512  # requests that wait for their party
MAX_WAITING_OF_PARTY: Final = 64
MAX_EXPECTED: Final = 10_000  # credentials
KINDS: Final = {"address": "The client address", "caller": "The caller", "project": "The project"}

Party = tuple[str, ...]  # a kind of KINDS, and the identity of the party


@dataclass(slots=True)
class Ticket:
    """A request in progress, and the parties that it counts for."""

    in_flight: InFlight
    address: str
    credentials: bytes = b""  # digest
    parties: Sequence[Party] = ()

    def release(self) -> None:
        """Count the request no longer."""
        parties, self.parties = self.parties, ()
        if parties:
            self.in_flight.leave(parties)


@dataclass(slots=True)
class InFlight:
    """WSGI middleware that counts the requests in progress."""

    app: Wsgi
    settings: Settings
    _requests: Occupancy = field(default_factory=Occupancy)
    _bodies: Occupancy = field(default_factory=Occupancy)
    _waiting: Occupancy = field(default_factory=Occupancy)
    _expected: BoundedCache[bytes, Sequence[Party]] = field(
        default_factory=partial(BoundedCache, MAX_EXPECTED)
    )

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Count the request, as soon as its caller is known or expected, until the response is closed.

        Raises:
            Postponed: the request waits for others.
        """
        ticket = environ[TICKET] = Ticket(self, environ.get("REMOTE_ADDR") or "", _credentials(environ))
        self._expect(environ, ticket)
        try:
            body = self.app(environ, start_response)
        except BaseException:
            ticket.release()
            raise
        return ClosingIterator(body, [ticket.release])

    def _expect(self, environ: Mapping[str, Any], ticket: Ticket) -> None:
        """Count a request for the parties of the last request with its credentials. Health checks never wait:
        their threads are for all callers.

        Raises:
            Postponed: they have too many requests in progress.
        """
        path = environ.get("PATH_INFO", "")
        if not ticket.credentials or not path.startswith(VERSIONED) or path.endswith(SIGNAL):
            return
        parties = self._expected.get(ticket.credentials)
        if parties is None:
            return
        refused = self.enter(parties, limit := self.request_limit())
        if refused is None:
            ticket.parties = parties
        elif (
            postponed := self._postponed(environ, refused, limit, counted=postponement.is_counted())
        ) is not None:
            raise postponed

    def _postponed(
        self, environ: Mapping[str, Any], refused: Party, limit: int | None, *, counted: bool
    ) -> postponement.Postponed | None:
        """Return the postponement of a request, None if it cannot wait."""
        if not postponement.may_wait() or "HTTP_EXPECT" in environ:
            return None
        return self.postpone(refused, limit or 0, counted=counted)

    def admit(
        self, environ: Mapping[str, Any], ticket: Ticket, parties: Sequence[Party], *, may_wait: bool
    ) -> None:
        """Count a request for its authenticated parties, instead of those that were expected.

        Raises:
            Postponed: they have too many requests in progress, and the request waits if it `may_wait`.
            TooManyConcurrentRequests: they have too many requests in progress.
        """
        if ticket.parties == parties:
            return
        ticket.release()
        refused = self.enter(parties, limit := self.request_limit())
        if refused is not None:
            postponed = self._postponed(environ, refused, limit, counted=True) if may_wait else None
            raise postponed or _too_many(refused, limit or 0)
        ticket.parties = parties
        if ticket.credentials:
            self._expected.put(ticket.credentials, parties)

    def request_limit(self) -> int | None:
        """Return the limit of concurrent requests of a party, None if there is no limit."""
        configured = self.settings.max_concurrent_requests
        if configured:
            return configured if configured > 0 else None
        threads = capacity.threads()
        return None if threads is None else max(LEAST, threads // SHARE)

    def enter(self, parties: Sequence[Party], limit: int | None) -> Party | None:
        """Count a request for these parties; if one of them has too many, return it and count nothing."""
        return cast("Party | None", self._requests.enter(parties, sys.maxsize if limit is None else limit))

    def postpone(self, party: Party, limit: int, *, counted: bool) -> postponement.Postponed | None:
        """Count a waiting request of a party; return None if too many wait."""
        if self._waiting.enter([party], MAX_WAITING_OF_PARTY, MAX_WAITING) is not None:
            return None
        return postponement.Postponed(
            party,
            lambda: self._requests.held.get(party, 0) < limit,
            lambda: self._waiting.leave([party]),
            counted=counted,
        )

    def leave(self, parties: Sequence[Party]) -> None:
        """Count a request no longer."""
        self._requests.leave(parties)

    @contextmanager
    def slow_body(self, parties: Sequence[Party]) -> Iterator[None]:
        """Occupy one of the threads for slow bodies.

        Raises:
            TooManyConcurrentRequests: a party has its share of them, or all are occupied.
        """
        total = config.MAX_SLOW_BODIES
        each = max(1, total // BODY_SHARE)
        full = self._bodies.enter(parties, each, total)
        if full is self._bodies:
            raise _too_many(None, total, "request bodies")
        if full is not None:
            raise _too_many(cast(Party, full), each, "request bodies")
        try:
            yield
        finally:
            self._bodies.leave(parties)


def identify(environ: Mapping[str, Any], caller: Caller, project_id: str, *, may_wait: bool = False) -> None:
    """Count a request for its authenticated caller and its project.

    Raises:
        Postponed: they have too many requests in progress, and the request waits if it `may_wait`.
        TooManyConcurrentRequests: they have too many requests in progress.
    """
    ticket: Ticket | None = environ.get(TICKET)
    if ticket is None:
        return
    parties: tuple[Party, ...] = (("project", project_id),)
    if caller.user or caller.user_id:  # no name without authentication
        parties = (("caller", caller.project_id, caller.user_id, caller.user), *parties)
    ticket.in_flight.admit(environ, ticket, parties, may_wait=may_wait)


def expected_project(environ: Mapping[str, Any]) -> str | None:
    """Return the project that a request is counted for."""
    ticket: Ticket | None = environ.get(TICKET)
    parties = ticket.parties if ticket is not None else ()
    return next((party[1] for party in parties if party[0] == "project"), None)


def exempt(environ: Mapping[str, Any]) -> None:
    """Count a request no longer, although its response continues: another limit applies."""
    ticket: Ticket | None = environ.get(TICKET)
    if ticket is not None:
        ticket.release()


def is_received(environ: Mapping[str, Any]) -> bool:
    """Whether the body can be read without waiting for the client.

    Other servers than ours require a proxy that sends complete requests.
    """
    if environ.get("CONTENT_LENGTH") in {None, "", "0"} and "HTTP_TRANSFER_ENCODING" not in environ:
        return True
    return bool(getattr(environ.get(SOCKET), "complete", True))


@contextmanager
def reading_body(environ: Mapping[str, Any]) -> Iterator[None]:
    """Occupy one of the threads for slow bodies, if the body has yet to arrive.

    Raises:
        TooManyConcurrentRequests: none is free for this party.
    """
    ticket: Ticket | None = environ.get(TICKET)
    if ticket is None or is_received(environ):
        yield
        return
    with turns.paused(), ticket.in_flight.slow_body(ticket.parties or (("address", ticket.address),)):
        yield


def _credentials(environ: Mapping[str, Any]) -> bytes:
    """Return a digest of the token or password of a request, b"" without any."""
    given = environ.get("HTTP_X_AUTH_TOKEN") or environ.get("HTTP_AUTHORIZATION") or ""
    return hashlib.blake2b(given.encode(), digest_size=16).digest() if given else b""


def _too_many(party: Party | None, limit: int, counted: str = "requests") -> TooManyConcurrentRequests:
    metrics.count_rate_limited()
    return TooManyConcurrentRequests(KINDS[party[0]] if party else "This server", limit, counted)
