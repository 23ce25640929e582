"""Client connection with buffered input and time limits (adr/0001)."""

from __future__ import annotations

import re
import socket
import time
from typing import Final

MAX_URL_BYTES: Final = 50_000  # bytes of the request line, docs/internals/rest-api.md §17
MAX_HEAD_BYTES: Final = MAX_URL_BYTES + 128 * 1024  # bytes including headers
MAX_GATHERED_BODY: Final = 128 * 1024  # bytes of a body that the loop collects
CHUNK: Final = 64 * 1024
END: Final = b"\r\n\r\n"
LENGTH: Final = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,7})[ \t]*\r\n", re.IGNORECASE)
EXPECT: Final = re.compile(rb"\r\nexpect:", re.IGNORECASE)  # the client waits for a response
BODY: Final = re.compile(rb"\r\n(?:content-length|transfer-encoding):", re.IGNORECASE)
PROBES: Final = tuple(
    f"GET {path} HTTP/1.".encode() for path in ("/healthcheck", "/livez", "/readyz", "/metrics")
)


class TooLong(Exception):
    """A head that exceeds its limit, with the status for the response."""

    def __init__(self, status: int) -> None:
        """Take the status: 414 or 431."""
        super().__init__(status)
        self.status = status


class BufferedSocket(socket.socket):
    """A client connection with buffered input and time limits for reading and writing."""

    IDLE = 30.0  # seconds without a byte of a body, or for sending a slice of a response
    GRACE = 20.0  # seconds of a body before its minimum rate applies
    SLOWEST = 32 * 1024  # minimum rate in bytes per second, on average

    ahead: bytearray
    scanned: int  # offset up to which the buffer has no end of a head
    size: int  # bytes of the request, as far as the loop collects it; 0: its head is incomplete
    complete: bool  # the whole request is in the buffer
    begun: float
    received: int
    until: float | None  # deadline of the body

    @classmethod
    def of(cls, client: socket.socket) -> BufferedSocket:
        """Wrap a connection."""
        wrapper = cls(client.family, client.type, client.proto, fileno=client.detach())
        wrapper.ahead, wrapper.scanned, wrapper.size, wrapper.complete = bytearray(), 0, 0, False
        wrapper.restart()
        return wrapper

    def restart(self) -> None:
        """Start the body limits after a complete head."""
        self.begun, self.received, self.scanned, self.until = time.monotonic(), 0, 0, None
        self.size = 0

    def gather(self) -> bool:
        """Read available input; return whether a thread can handle the request.

        Its head is complete then, and its body too unless it is large or the client waits for a response.

        Raises:
            TooLong: the head exceeds its limit.
        """
        while not self._whole():
            try:
                data = super().recv(CHUNK, socket.MSG_DONTWAIT)
            except (BlockingIOError, InterruptedError):
                return False
            except OSError:
                return True  # the thread handles the error
            if not data:
                return True
            self.ahead += data
        return True

    def _whole(self) -> bool:
        """Whether the buffer has the whole request, as far as the loop collects it."""
        if not self.size and not self._find_head():
            return False
        return len(self.ahead) >= self.size

    def _find_head(self) -> bool:
        """Whether the head is complete; set `size` and `complete` then."""
        start, size = max(0, self.scanned - len(END) + 1), len(self.ahead)
        if start < MAX_URL_BYTES <= size and self.ahead.find(b"\r\n", 0, MAX_URL_BYTES) < 0:
            raise TooLong(414)
        end = self.ahead.find(END, start, MAX_HEAD_BYTES)
        if end < 0 and size >= MAX_HEAD_BYTES:
            raise TooLong(431)
        self.scanned = size
        if end < 0:
            return False
        self.size = end + len(END)
        self.complete = False
        if self.ahead[:1] == b"P":  # POST, PUT or PATCH; other bodies are rare
            found = LENGTH.search(self.ahead, 0, self.size)
            length = int(found[1]) if found else 0
            if 0 < length <= MAX_GATHERED_BODY and not EXPECT.search(self.ahead, 0, self.size):
                self.size += length
                self.complete = True  # as soon as the buffer has `size` bytes
        return True

    @property
    def is_probe(self) -> bool:
        """Whether the buffer has exactly one request, a health check without a body."""
        return (
            self.ahead.startswith(PROBES)
            and len(self.ahead) == self.size
            and not BODY.search(self.ahead, 0, self.size)
        )

    def setblocking(self, blocking: bool) -> None:
        """Set a timeout instead of blocking without limit."""
        self.settimeout(self.IDLE if blocking else 0.0)

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Return buffered input, then further input.

        Raises:
            TimeoutError: no input, or a rate below the minimum.
        """
        if self.ahead:
            data = bytes(self.ahead[:size])
            del self.ahead[:size]
        elif self.until is not None:
            if time.monotonic() >= self.until:
                raise TimeoutError("the rest of the body is not awaited")
            data = super().recv(size, flags)
        else:
            data = self._recv_in_time(size, flags)
        self.received += len(data)
        return data

    def _recv_in_time(self, size: int, flags: int) -> bytes:
        """Wait for input no longer than the minimum rate allows."""
        end = self.begun + self.GRACE + self.received / self.SLOWEST
        remaining = end - time.monotonic()
        if remaining <= 0:
            raise TimeoutError("request body received too slowly")
        self.settimeout(min(self.IDLE, remaining))
        try:
            return super().recv(size, flags)
        finally:
            self.settimeout(self.IDLE)
