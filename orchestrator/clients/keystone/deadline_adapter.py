"""Transport of keystoneauth1's sessions with a wall-clock limit; requires the extra `keystone`.

keystoneauth1 sends its requests with the library requests, whose timeout applies to each read. This adapter
sends them over connections of `clients/http_connection.py` instead, which are kept for following requests.
Responses are read completely, up to MAX_BYTES. Proxies of the environment are not used.
"""

from __future__ import annotations

import io
import re
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import httpcore
import httpx
import requests
from requests.adapters import BaseAdapter, HTTPAdapter
from urllib3 import HTTPHeaderDict, HTTPResponse

from orchestrator.clients import provider_calls
from orchestrator.clients.deadline import PIECE, Deadline, verifying
from orchestrator.clients.http_connection import HttpAnswer, HttpConnection, TooLarge

MAX_BYTES: Final = 64 * 1024 * 1024  # of a response
KEPT_SECONDS: Final = 5.0  # that an idle connection is kept

# A URL whose path needs neither quoting nor normalization.
PLAIN: Final = re.compile(
    r"(?P<origin>https?://[A-Za-z0-9:\[\]._-]+)(?P<path>/(?:[A-Za-z0-9_~/-]|(?<!/)\.)*(?:\?[A-Za-z0-9_.~/:&=-]*)?)"
)

_call: ContextVar[Deadline | None] = ContextVar("call_deadline", default=None)


class IdleConnections:
    """Open connections without a request, by origin and verification. A request examines only the connection
    that it takes, the most recently used.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Keep a connection for `seconds` without a request."""
        self._seconds, self._clock = seconds, clock
        self._idle: dict[object, deque[tuple[float, HttpConnection]]] = {}
        self._pruned_at = clock()
        self._lock = threading.Lock()

    def take(self, key: object) -> HttpConnection | None:
        """Return a connection that the peer has not closed, or None."""
        while True:
            with self._lock:
                idle = self._idle.get(key)
                if not idle:
                    return None
                _, connection = idle.pop()
            if not connection.has_expired():
                return connection
            connection.close()

    def put(self, key: object, connection: HttpConnection) -> None:
        """Keep a connection, and close those that were kept for too long."""
        now = self._clock()
        with self._lock:
            expired = self._expired(now)
            self._idle.setdefault(key, deque()).append((now + self._seconds, connection))
        for old in expired:
            old.close()

    def clear(self) -> None:
        """Close all."""
        with self._lock:
            idle, self._idle = self._idle, {}
        for connections in idle.values():
            for _, connection in connections:
                connection.close()

    def _expired(self, now: float) -> list[HttpConnection]:
        """Remove and return the connections that were kept for too long, once a second."""
        expired: list[HttpConnection] = []
        if now < self._pruned_at + 1.0:
            return expired
        self._pruned_at = now
        for key, connections in list(self._idle.items()):
            while connections and connections[0][0] < now:
                expired.append(connections.popleft()[1])
            if not connections:
                del self._idle[key]
        return expired


class HeldConnection:
    """An open connection for the first request of a create to its origin, during `with`."""

    __slots__ = ("_connection", "_idle", "_is_new", "_key")

    def __init__(
        self, idle: IdleConnections, key: object, connection: HttpConnection, *, is_new: bool
    ) -> None:
        """Hold the connection. Without a request it is kept among `idle` at the end; a new one is closed."""
        self._idle, self._key, self._is_new = idle, key, is_new
        self._connection: HttpConnection | None = connection

    def take(self, key: object) -> HttpConnection | None:
        """Return the connection, once, if it is to this origin; None otherwise."""
        if key != self._key:
            return None
        connection, self._connection = self._connection, None
        return connection

    def __enter__(self) -> HeldConnection:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Keep or close the connection if no request was sent."""
        if self._connection is not None and not self._is_new:
            self._idle.put(self._key, self._connection)
        elif self._connection is not None:
            self._connection.close()


@contextmanager
def call_deadline(deadline: Deadline) -> Iterator[None]:
    """Let all requests of this thread end at `deadline`, keystoneauth1's for a token included."""
    token = _call.set(deadline)
    try:
        yield
    finally:
        _call.reset(token)


class DeadlineAdapter(BaseAdapter):
    """Sends each request within `seconds`, or within the timeout that the session sets for the request."""

    def __init__(self, seconds: float) -> None:
        """Open no connection yet."""
        super().__init__()
        self._seconds = seconds
        self._idle = IdleConnections(KEPT_SECONDS)
        self._contexts: dict[tuple[object, object], ssl.SSLContext] = {}
        self._lock = threading.Lock()
        self._responses = HTTPAdapter()  # builds requests' response objects; sends nothing

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,  # noqa: ARG002
        timeout: object = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,  # noqa: ARG002
    ) -> requests.Response:
        """Return the response.

        Raises:
            requests.exceptions.RequestException: no complete response in time.
        """
        seconds = timeout if isinstance(timeout, int | float) else self._seconds
        try:
            answer = self.exchange(
                request.method or "GET",
                request.url or "",
                request.headers.items(),
                _content(request.body),
                _sooner(Deadline(seconds)),
                verify=verify,
                cert=cert,
            )
        except httpcore.ConnectTimeout as error:
            raise requests.exceptions.ConnectTimeout(str(error), request=request) from error
        except httpcore.TimeoutException as error:
            raise requests.exceptions.ReadTimeout(str(error), request=request) from error
        except httpcore.ConnectError as error:
            is_tls = isinstance(error.__cause__, ssl.SSLError)
            failure = requests.exceptions.SSLError if is_tls else requests.exceptions.ConnectionError
            raise failure(str(error), request=request) from error
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
            why = str(error) or type(error).__name__
            raise requests.exceptions.ConnectionError(why, request=request) from error
        except TooLarge as error:
            raise requests.exceptions.ContentDecodingError(str(error), request=request) from error
        headers = HTTPHeaderDict(
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.headers
        )
        raw = HTTPResponse(
            io.BytesIO(answer.content),
            headers=headers,
            status=answer.status,
            reason=answer.reason,
            preload_content=False,
            request_method=request.method,
        )
        return self._responses.build_response(request, raw)

    def exchange(
        self,
        method: str,
        url: str,
        headers: Iterable[tuple[str | bytes, str | bytes]],
        content: bytes | Iterable[bytes] | None,
        deadline: Deadline,
        *,
        verify: bool | str = True,
        cert: Any = None,
        held: provider_calls.HeldConnection | None = None,
    ) -> HttpAnswer:
        """Send a request over the `held` or a kept connection, if any, and read the complete response.

        Raises:
            httpcore.ConnectError, httpcore.ConnectTimeout: nothing was sent.
            httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError: no response.
            TooLarge: the response has more than MAX_BYTES.
        """
        target, netloc = parsed_url(url)
        trust = _trust(verify, cert)
        key = _key(target, trust)
        fields = [(b"Host", netloc), *((_bytes(name), _bytes(value)) for name, value in headers)]
        connection = (held and held.take(key)) or self._idle.take(key)
        connection = connection or self._new_connection(target, trust)
        answer = connection.exchange(_bytes(method), target.target, fields, content, deadline, MAX_BYTES)
        if connection.is_reusable:
            self._idle.put(key, connection)
        return answer

    def connected(
        self, url: str, deadline: Deadline, *, verify: bool | str = True, cert: Any = None
    ) -> HeldConnection:
        """Return an open connection to an origin, held for a request during `with`.

        Raises:
            httpcore.ConnectError, httpcore.ConnectTimeout: it cannot be opened.
        """
        target, _ = parsed_url(url)
        trust = _trust(verify, cert)
        key = _key(target, trust)
        connection = self._idle.take(key)
        if connection is not None:
            return HeldConnection(self._idle, key, connection, is_new=False)
        connection = self._new_connection(target, trust)
        connection.open(deadline)
        return HeldConnection(self._idle, key, connection, is_new=True)

    def close(self) -> None:
        """Close the kept connections."""
        self._idle.clear()

    def _new_connection(self, target: httpcore.URL, trust: tuple[bool | str, Any]) -> HttpConnection:
        with self._lock:
            if trust not in self._contexts:
                self._contexts[trust] = _context(*trust)
        return HttpConnection(target, self._contexts[trust], KEPT_SECONDS)


def with_deadline(session: Any, seconds: float) -> Any:
    """Return a session of keystoneauth1 whose requests end within `seconds`."""
    adapter = DeadlineAdapter(seconds)
    for scheme in ("http://", "https://"):
        session.session.mount(scheme, adapter)
    return session


def _trust(verify: bool | str, cert: Any) -> tuple[bool | str, Any]:
    return verify, tuple(cert) if isinstance(cert, list) else cert


def _key(target: httpcore.URL, trust: tuple[bool | str, Any]) -> object:
    """Return the key of the connections that may carry a request."""
    return (target.scheme, target.host, target.port, *trust)


def _sooner(deadline: Deadline) -> Deadline:
    """Return the deadline of the call in progress, if it is sooner."""
    call = _call.get()
    return call if call is not None and call.until < deadline.until else deadline


def _content(body: Any) -> bytes | Iterator[bytes] | None:
    """Return the body of a request of the library requests."""
    if body is None or isinstance(body, str | bytes):
        return body.encode() if isinstance(body, str) else body
    pieces = iter(lambda: body.read(PIECE), b"") if hasattr(body, "read") else iter(body)
    return (piece.encode() if isinstance(piece, str) else piece for piece in pieces)


def _context(verify: bool | str, cert: Any) -> ssl.SSLContext:
    """Return the context for a CA file or directory, and a client certificate (path, or paths with key)."""
    if verify is True and not cert:
        return verifying()
    if isinstance(verify, str):
        place = {"capath" if Path(verify).is_dir() else "cafile": verify}
        context = ssl.create_default_context(**place)  # type: ignore[arg-type]
    else:
        context = httpx.create_ssl_context(trust_env=False)
    if not verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if cert:
        context.load_cert_chain(*((cert,) if isinstance(cert, str) else cert))
    return context


def parsed_url(url: str) -> tuple[httpcore.URL, bytes]:
    """Return a URL for httpcore, and its host for the header. Most URLs begin with the same few origins."""
    found = PLAIN.fullmatch(url)
    if found is None:
        return _parsed(url)
    origin, netloc = _parsed(found["origin"])
    path = found["path"].encode()
    return httpcore.URL(scheme=origin.scheme, host=origin.host, port=origin.port, target=path), netloc


@lru_cache(maxsize=256)
def _parsed(url: str) -> tuple[httpcore.URL, bytes]:
    parsed = httpx.URL(url)
    target = httpcore.URL(
        scheme=parsed.raw_scheme, host=parsed.raw_host, port=parsed.port, target=parsed.raw_path
    )
    return target, parsed.netloc


def _bytes(value: str | bytes) -> bytes:
    return value.encode("latin-1") if isinstance(value, str) else value
