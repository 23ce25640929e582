"""Connections of HTTP/1.1, over which requests are sent in turn, each within its deadline.

httpcore's connections, which are Python like their parser h11, need about three times the processor time
(docs/internals/ceilings.md, section 7). Errors are httpcore's. No redirect is followed, and proxies,
cookies and credentials of the environment are not used.
"""

from __future__ import annotations

import ssl
import time
from typing import Final, NamedTuple

import httpcore

from orchestrator.clients.deadline import Deadline, DeadlineBackend
from orchestrator.clients.http_messages import Content, Fields, ResponseReader, request_body, request_head

READ_BYTES: Final = 64 * 1024


class TooLarge(Exception):
    """The body of a response is too large."""


class HttpAnswer(NamedTuple):
    """A response with its complete body, which is not decompressed."""

    status: int
    headers: list[tuple[bytes, bytes]]
    content: bytes
    reason: str


class HttpConnection:
    """A connection to an origin, opened by its first request at the latest.

    Not thread-safe. `is_reusable`: the last exchange left it open for the next request.
    """

    def __init__(self, url: httpcore.URL, context: ssl.SSLContext | None, seconds: float) -> None:
        """Open nothing yet.

        `context` verifies the peer of an https URL; the connection expires after `seconds` without a request.

        Raises:
            httpcore.UnsupportedProtocol: the scheme is neither http nor https.
        """
        if url.scheme not in (b"http", b"https"):
            raise httpcore.UnsupportedProtocol(f"the scheme {url.scheme.decode('latin-1')} is not supported")
        self._host, self._port = url.host.decode("ascii"), url.origin.port
        self._context = context if url.scheme == b"https" else None
        self._deadline = Deadline(0.0)  # of the exchange in progress
        self._backend = DeadlineBackend(lambda: self._deadline)
        self._stream: httpcore.NetworkStream | None = None
        self._seconds, self._expires_at = seconds, 0.0
        self.is_reusable = False

    def open(self, deadline: Deadline) -> None:
        """Connect, with the TLS handshake.

        Raises:
            httpcore.ConnectError, httpcore.ConnectTimeout: it is not possible.
        """
        self._deadline = deadline
        self._opened()

    def exchange(
        self, method: bytes, target: bytes, fields: Fields, content: Content, deadline: Deadline, most: int
    ) -> HttpAnswer:
        """Send a request and read the complete response.

        Raises:
            httpcore.ConnectError, httpcore.ConnectTimeout: nothing was sent.
            httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError: no response.
            TooLarge: its body has more than `most` bytes.
        """
        self.is_reusable, self._deadline = False, deadline
        try:
            head, length = request_head(method, target, fields, content)
            stream = self._opened()
            is_sent = _sent(stream, head, content, length)
            response = _received(stream, ResponseReader(method), most)
            self.is_reusable = is_sent and response.keeps_open
        finally:
            if not self.is_reusable:
                self.close()
        self._expires_at = time.monotonic() + self._seconds
        return HttpAnswer(
            response.status, response.headers, bytes(response.body), response.reason.decode("latin-1")
        )

    def has_expired(self) -> bool:
        """Whether it can carry no further request: too old, closed by the peer, or unread bytes arrived."""
        if self._stream is None or time.monotonic() > self._expires_at:
            return True
        return bool(self._stream.get_extra_info("is_readable"))

    def close(self) -> None:
        """Close the connection without waiting for the peer."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def _opened(self) -> httpcore.NetworkStream:
        if self._stream is None:
            stream = self._backend.connect_tcp(self._host, self._port)
            if self._context is not None:
                self._context.set_alpn_protocols(["http/1.1"])
                stream = stream.start_tls(self._context, self._host)
            self._stream = stream
        return self._stream


def _sent(stream: httpcore.NetworkStream, head: bytes, content: Content, length: int | None) -> bool:
    """Send a request; return whether all of it was sent. A service may answer before and close."""
    try:
        stream.write(head)
        for piece in request_body(content, length):
            stream.write(piece)
    except httpcore.WriteError:
        return False
    return True


def _received(stream: httpcore.NetworkStream, response: ResponseReader, most: int) -> ResponseReader:
    """Read a response.

    Raises:
        TooLarge: its body has more than `most` bytes.
    """
    while not response.is_complete:
        data = stream.read(READ_BYTES)
        if data:
            response.feed(data)
        else:
            response.end()
        if len(response.body) > most:
            raise TooLarge("the response is too large")
    return response
