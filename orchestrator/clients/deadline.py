"""Wall-clock limits for outgoing HTTP requests.

The timeouts of httpx, httpcore and requests apply to each read, so a peer that sends one byte per read holds
its caller without end. A `Deadline` covers a whole exchange: name resolution, connection, TLS handshake,
request, and head and body of the response. All outgoing requests of servers use it (a test checks the
imports).
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final

import httpcore
import httpx

MAX_RESOLUTIONS: Final = 64  # concurrent name resolutions of a process, including abandoned resolutions
PIECE: Final = 64 * 1024  # bytes of a write

Headers = Sequence[tuple[bytes, bytes]]
Accept = Callable[[str], bool]  # whether a connection to an address is allowed
_resolutions = threading.BoundedSemaphore(MAX_RESOLUTIONS)


class Deadline:
    """The end of an exchange."""

    __slots__ = ("seconds", "until")

    def __init__(self, seconds: float) -> None:
        """Start now."""
        self.seconds, self.until = seconds, time.monotonic() + seconds

    def remaining(self) -> float:
        """Return the remaining seconds.

        Raises:
            TimeoutError: none remain.
        """
        remaining = self.until - time.monotonic()
        if remaining <= 0:
            raise TimeoutError(f"it took longer than {self.seconds:g} seconds")
        return remaining


@contextmanager
def open_response(
    method: str,
    url: httpcore.URL,
    headers: Headers,
    deadline: Deadline,
    *,
    body: bytes | None = None,
    accept: Accept | None = None,
    context: ssl.SSLContext | None = None,
) -> Iterator[httpcore.Response]:
    """Send a request; yield the response, whose body is read within the same deadline.

    No redirect is followed; proxies, cookies and credentials of the environment are not used. `accept`
    restricts the addresses of the connection, `context` replaces the verification by the system's
    authorities.

    Raises:
        httpcore.ConnectError, httpcore.ConnectTimeout: no connection; nothing was sent.
        httpcore.TimeoutException: the deadline has passed.
        httpcore.NetworkError, httpcore.ProtocolError: the connection broke, or the response is malformed.
        ValueError: `accept` allows no address.
    """
    if url.scheme == b"https" and context is None:
        context = verifying()
    backend = DeadlineBackend(lambda: deadline, accept)
    with (
        httpcore.ConnectionPool(network_backend=backend, ssl_context=context) as pool,
        pool.stream(method, url, headers=list(headers), content=body) as response,
    ):
        yield response


def read_body(response: httpcore.Response, most: int) -> bytes:
    """Return the first `most` + 1 bytes of a body; the rest is not read.

    Raises:
        httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError: as `open_response`.
    """
    data = bytearray()
    for chunk in response.iter_stream():
        data += chunk
        if len(data) > most:
            break
    return bytes(data[: most + 1])


def is_healthy(url: str, seconds: float) -> bool:
    """Whether a GET of this URL succeeds in time."""
    parsed = httpx.URL(url)
    parts = httpcore.URL(
        scheme=parsed.raw_scheme, host=parsed.raw_host, port=parsed.port, target=parsed.raw_path
    )
    try:
        with open_response("GET", parts, [(b"Host", parsed.netloc)], Deadline(seconds)) as response:
            return 200 <= response.status < 300
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError):
        return False


@lru_cache(maxsize=1)
def verifying() -> ssl.SSLContext:
    """Return the verification context: the system's authorities, independent of the environment."""
    return httpx.create_ssl_context(trust_env=False)


class DeadlineBackend(httpcore.NetworkBackend):
    """Connections whose operations end at a deadline.

    `current` returns the deadline of the exchange in progress, so that a kept connection can serve several.
    """

    def __init__(self, current: Callable[[], Deadline], accept: Accept | None = None) -> None:
        """Allow every address, or only those that `accept` allows."""
        self._current, self._accept = current, accept

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,  # noqa: ARG002 - httpcore's signature
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        """Connect to the first address that answers.

        Raises:
            ValueError: no address is allowed.
        """
        deadline = self._current()
        with _translated(httpcore.ConnectTimeout, httpcore.ConnectError):
            addresses = resolve(host, port, deadline.remaining())
            usable = [address for address in addresses if self._accept is None or self._accept(address)]
            if not usable:
                raise NotAllowed("its address is not a public one")
            return DeadlineStream(_connected(usable, port, deadline, timeout), self._current)

    def connect_unix_socket(self, *_args: Any, **_kwargs: Any) -> httpcore.NetworkStream:
        """Raise: no outgoing request uses a local socket."""
        raise httpcore.UnsupportedProtocol("local sockets are not supported")


class NotAllowed(ValueError):
    """The host has no address that the caller may connect to."""


class DeadlineStream(httpcore.NetworkStream):
    """A connection whose operations end at the deadline of the exchange in progress.

    Small writes are sent together, before the next read: head and body of a request share a packet.
    """

    def __init__(self, sock: socket.socket, current: Callable[[], Deadline]) -> None:
        """Take a connected socket."""
        self._sock, self._current = sock, current
        self._unsent = b""

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return available bytes, at most `max_bytes`. A request that the peer refuses to read may have been
        answered.
        """
        if self._unsent:
            with contextlib.suppress(httpcore.WriteError):
                self._send(timeout)
        with _translated(httpcore.ReadTimeout, httpcore.ReadError):
            self._sock.settimeout(self._seconds(timeout))
            return self._sock.recv(max_bytes)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all bytes, at the latest before the next read."""
        self._unsent = self._unsent + buffer if self._unsent else buffer
        if len(self._unsent) >= PIECE:
            self._send(timeout)

    def _send(self, timeout: float | None) -> None:
        view, self._unsent = memoryview(self._unsent), b""
        with _translated(httpcore.WriteTimeout, httpcore.WriteError):
            while view:
                self._sock.settimeout(self._seconds(timeout))
                view = view[self._sock.send(view[:PIECE]) :]

    def close(self) -> None:
        """Close the connection without waiting for the peer."""
        with contextlib.suppress(OSError):
            self._sock.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """Return the encrypted connection. Python applies a socket's timeout to the whole handshake."""
        with _translated(httpcore.ConnectTimeout, httpcore.ConnectError):
            try:
                self._sock.settimeout(self._seconds(timeout))
                encrypted = ssl_context.wrap_socket(self._sock, server_hostname=server_hostname)
            except BaseException:
                self.close()
                raise
            return DeadlineStream(encrypted, self._current)

    def get_extra_info(self, info: str) -> Any:
        """Return information that httpcore requires."""
        if info == "ssl_object" and isinstance(self._sock, ssl.SSLSocket):
            return self._sock
        if info == "is_readable":
            poll = select.poll()
            poll.register(self._sock, select.POLLIN)
            return bool(poll.poll(0))
        return self._sock if info == "socket" else None

    def _seconds(self, timeout: float | None) -> float:
        remaining = self._current().remaining()
        return remaining if timeout is None else min(timeout, remaining)


def resolve(host: str, port: int, seconds: float) -> list[str]:
    """Return the addresses of a host. `getaddrinfo` has no timeout, so a thread calls it.

    Raises:
        TimeoutError: no answer within `seconds`.
        OSError: the host has no address.
    """
    with contextlib.suppress(ValueError, OSError):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.inet_pton(family, host)
        return [host]
    until = time.monotonic() + seconds
    slots = _resolutions
    if not slots.acquire(timeout=seconds):
        raise TimeoutError("too many name resolutions are in progress")
    answer: Future[list[str]] = Future()

    def ask() -> None:
        try:
            rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            answer.set_result(list(dict.fromkeys(str(row[4][0]) for row in rows)))
        except Exception as error:
            answer.set_exception(error)
        finally:
            slots.release()

    threading.Thread(target=ask, name="resolve", daemon=True).start()
    return answer.result(max(0.0, until - time.monotonic()))


def _connected(
    addresses: Sequence[str], port: int, deadline: Deadline, timeout: float | None
) -> socket.socket:
    """Return a connection to the first address that accepts it."""
    failure: OSError | None = None
    for address in addresses:
        remaining = deadline.remaining()
        seconds = remaining if timeout is None else min(timeout, remaining)
        try:
            sock = socket.create_connection((address, port), timeout=seconds)
        except OSError as error:
            failure = error
            continue
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock
    assert failure is not None
    raise failure


@contextmanager
def _translated(late: type[Exception], failed: type[Exception]) -> Iterator[None]:
    """Translate the errors of sockets to httpcore's."""
    try:
        yield
    except TimeoutError as error:
        raise late(str(error)) from error
    except (OSError, UnicodeError) as error:
        raise failed(str(error) or type(error).__name__) from error
