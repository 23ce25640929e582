"""Limits on concurrent requests, so that no caller can occupy all threads of an API process.

An authenticated request counts for its caller and its project until its response is sent. A body that the
server has not received completely before assigning a thread needs one of the threads for slow bodies. It
counts for its client address, or for caller and project if they are known. Before authentication a request
waits for nothing but its body, so addresses have no other limit: proxies and NAT share them.

Signals are fast and come in bursts, from all servers of a stack at once: they have no limit. Event streams
have a limit of their own.

A request beyond the limit of its project or caller waits for others of the same party, up to
`postponement.WAIT_SECONDS`, without a thread. It is refused then, or if too many wait already.

Each API process counts separately, as in `rate_limits.py`.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from werkzeug.wsgi import ClosingIterator

from api import capacity, postponement
from orchestrator import metrics
from orchestrator.config import Settings
from orchestrator.operations.runtime import turns
from orchestrator.rate_errors import TooManyConcurrentRequests
from orchestrator.security.caller import Caller

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

TICKET: Final = "orchestrator.in_flight"
SOCKET: Final = "gunicorn.socket"
LEAST: Final = 2  # concurrent requests, however few threads the process has
SHARE: Final = 2  # a caller and a project each have 1/SHARE of the threads
BODY_SHARE: Final = 4  # and 1/BODY_SHARE of the threads for slow bodies, as has an address
MAX_WAITING: Final = 512  # requests that wait for their party
MAX_WAITING_OF_PARTY: Final = 64
KINDS: Final = {"address": "The client address", "caller": "The caller", "project": "The project"}

Party = tuple[str, ...]  # a kind of KINDS, and what identifies the party


@dataclass(slots=True)
class Ticket:
    """A request in progress, and the parties that it counts for."""

    in_flight: InFlight
    address: str
    parties: Sequence[Party] = ()

    def release(self) -> None:
        """Count the request no longer."""
        parties, self.parties = self.parties, ()
        if parties:
            self.in_flight.leave(parties)


@dataclass(slots=True)
class InFlight:
    """WSGI middleware that counts the requests in progress."""

    app: Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]
    settings: Settings
    _requests: Counter[Party] = field(default_factory=Counter)
    _bodies: Counter[Party] = field(default_factory=Counter)
    _waiting: Counter[Party] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Count the request, as soon as its caller is known, until the response is closed."""
        ticket = environ[TICKET] = Ticket(self, environ.get("REMOTE_ADDR") or "")
        try:
            body = self.app(environ, start_response)
        except BaseException:
            ticket.release()
            raise
        return ClosingIterator(body, [ticket.release])

    def request_limit(self) -> int | None:
        """Return the limit of concurrent requests of a party, None if there is no limit."""
        configured = self.settings.max_concurrent_requests
        if configured:
            return configured if configured > 0 else None
        threads = capacity.threads()
        return None if threads is None else max(LEAST, threads // SHARE)

    def enter(self, parties: Sequence[Party], limit: int | None) -> Party | None:
        """Count a request for these parties; if one of them has too many, return it and count nothing."""
        requests = self._requests
        with self._lock:
            for party in parties:
                if limit is not None and requests[party] >= limit:
                    return party
            for party in parties:
                requests[party] += 1
        return None

    def postpone(self, party: Party, limit: int) -> postponement.Postponed | None:
        """Count a waiting request of a party; return None if too many wait."""
        with self._lock:
            if self._waiting[party] >= MAX_WAITING_OF_PARTY or self._waiting.total() >= MAX_WAITING:
                return None
            self._waiting[party] += 1

        def leave() -> None:
            with self._lock:
                _subtract(self._waiting, [party])

        return postponement.Postponed(party, lambda: self._requests[party] < limit, leave)

    def leave(self, parties: Sequence[Party]) -> None:
        """Count a request no longer."""
        with self._lock:
            _subtract(self._requests, parties)

    @contextmanager
    def slow_body(self, parties: Sequence[Party]) -> Iterator[None]:
        """Occupy one of the threads for slow bodies.

        Raises:
            TooManyConcurrentRequests: a party has its share of them, or all are occupied.
        """
        total = self.settings.max_slow_bodies
        each = max(1, total // BODY_SHARE)
        with self._lock:
            bodies = self._bodies
            full = next((party for party in parties if bodies[party] >= each), None)
            if full is None and bodies[()] < total:
                counted = (*parties, ())
                for party in counted:
                    bodies[party] += 1
            else:
                raise _too_many(full, each if full else total, "request bodies")
        try:
            yield
        finally:
            with self._lock:
                _subtract(bodies, counted)


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
    limit = ticket.in_flight.request_limit()
    refused = ticket.in_flight.enter(parties, limit)
    if refused is not None:
        postponed = None
        if may_wait and postponement.may_wait() and "HTTP_EXPECT" not in environ:
            postponed = ticket.in_flight.postpone(refused, limit or 0)
        raise postponed or _too_many(refused, limit or 0)
    ticket.parties = parties


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


def _subtract(counts: Counter[Party], parties: Iterable[Party]) -> None:
    for party in parties:
        counts[party] -= 1
        if not counts[party]:
            del counts[party]


def _too_many(party: Party | None, limit: int, counted: str = "requests") -> TooManyConcurrentRequests:
    metrics.count_rate_limited()
    return TooManyConcurrentRequests(KINDS[party[0]] if party else "This server", limit, counted)
