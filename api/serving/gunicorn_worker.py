"""How gunicorn serves the API: a thread is lent to no client before its request's head is in, nor for ever.

`gunicorn -k api.serving.gunicorn_worker.Worker "api.app:create_app()"`. The loop that accepts connections
gathers each head without waiting: thousands of idle or dripping clients cost a socket each and nobody's time.
A body must keep coming (`Patient.SLOWEST`), an answer must be taken, and the end of a connection is waited
for in the loop.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections import deque
from functools import partial
from selectors import EVENT_READ
from types import FrameType
from typing import Any, Final

from gunicorn.workers.gthread import ThreadWorker

LONGEST_URL: Final = 50_000  # bytes of the first line, docs/internals/rest-api.md §17
LONGEST_HEAD: Final = LONGEST_URL + 128 * 1024  # with the headers
CHUNK: Final = 64 * 1024
END: Final = b"\r\n\r\n"


class TooLong(Exception):
    """A head that is not read to its end; the status says what is too long."""

    def __init__(self, status: int) -> None:
        """414 or 431."""
        super().__init__(status)
        self.status = status


class BufferedSocket(socket.socket):
    """A client's connection: what was read ahead of its request's head, and how long the rest may take."""

    IDLE = 30.0  # seconds without a byte of a body, or for taking one slice of an answer
    GRACE = 20.0  # seconds of a body before its rate counts
    SLOWEST = 4 * 1024  # bytes a second

    ahead: bytearray
    scanned: int  # bytes of it in which the end of the head is not
    begun: float
    received: int
    until: float | None  # when no more of a body is waited for

    @classmethod
    def of(cls, client: socket.socket) -> BufferedSocket:
        """Take a connection over."""
        mine = cls(client.family, client.type, client.proto, fileno=client.detach())
        mine.ahead, mine.scanned = bytearray(), 0
        mine.restart()
        return mine

    def restart(self) -> None:
        """A request's head is in: what follows is its body."""
        self.begun, self.received, self.scanned, self.until = time.monotonic(), 0, 0, None

    def gather(self) -> bool:
        """Read what there is; return whether a thread can go on from there without waiting.

        Raises:
            TooLong: it is longer than any head.
        """
        while not self._whole():
            try:
                data = super().recv(CHUNK, socket.MSG_DONTWAIT)
            except (BlockingIOError, InterruptedError):
                return False
            except OSError:
                return True  # the thread finds out, too
            if not data:
                return True
            self.ahead += data
        return True

    def _whole(self) -> bool:
        """Whether a head is in, or what can be none."""
        start, size = max(0, self.scanned - len(END) + 1), len(self.ahead)
        if start < LONGEST_URL <= size and self.ahead.find(b"\r\n", 0, LONGEST_URL) < 0:
            raise TooLong(414)
        end = self.ahead.find(END, start, LONGEST_HEAD)
        if end < 0 and size >= LONGEST_HEAD:
            raise TooLong(431)
        self.scanned = size
        return end >= 0

    def setblocking(self, blocking: bool) -> None:
        """Never block for ever."""
        self.settimeout(self.IDLE if blocking else 0.0)

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Return what was read ahead, then what comes.

        Raises:
            TimeoutError: nothing does, or too little.
        """
        if self.ahead:
            data = bytes(self.ahead[:size])
            del self.ahead[:size]
        else:
            now = time.monotonic()
            if self.until is not None and now >= self.until:
                raise TimeoutError("nobody waits for the rest of the body")
            spent = now - self.begun
            if spent > self.GRACE and self.received < (spent - self.GRACE) * self.SLOWEST:
                raise TimeoutError("the body comes too slowly")
            data = super().recv(size, flags)
        self.received += len(data)
        return data


class Worker(ThreadWorker):
    """Threads for whole requests. Everything but `handle` and what it calls runs in the loop."""

    HEAD_SECONDS = 10.0  # for a whole head
    LINGER_SECONDS = 2.0  # until a client has taken the end of its answer
    DRAIN_SECONDS = 0.2  # for what is left of a body that nobody wanted
    NEAR_MILLISECONDS = 4  # for the next request on a connection, which is mostly sent at once
    connection: type[BufferedSocket] = BufferedSocket

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """As gunicorn does; the length of a URL is looked at here."""
        super().__init__(*args, **kwargs)
        self.cfg.set("limit_request_line", 0)
        self.lingering: deque[tuple[float, Any]] = deque()
        self.lent = 0  # threads

    def handle_exit(self, sig: int, frame: FrameType | None) -> Any:
        """Stop in an orderly way."""
        _end_streams()
        return super().handle_exit(sig, frame)

    def handle_quit(self, sig: int, frame: FrameType | None) -> Any:
        """Stop at once."""
        _end_streams()
        return super().handle_quit(sig, frame)

    def enqueue_req(self, conn: Any) -> None:
        """Give the connection to a thread once a whole head is in."""
        if self.cfg.is_ssl:
            super().enqueue_req(conn)
            return
        if not isinstance(conn.sock, BufferedSocket):
            conn.sock = self.connection.of(conn.sock)
        if conn.parser is not None:  # what came behind the request before
            conn.sock.ahead[:0] = conn.parser.unreader.take_buffered()
        conn.sock.setblocking(False)
        if not self._gathered(conn):
            conn.timeout = time.monotonic() + self.HEAD_SECONDS
            self.pending_conns.append(conn)
            self.poller.register(conn.sock, EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def on_pending_socket_readable(self, conn: Any, client: Any) -> None:
        """More of a head came."""
        if self._gathered(conn):
            self.poller.unregister(client)
            self.pending_conns.remove(conn)

    def _gathered(self, conn: Any) -> bool:
        """Return whether no more is to be waited for."""
        try:
            whole: bool = conn.sock.gather()
        except TooLong as long:
            with contextlib.suppress(OSError):
                conn.sock.send(_refusal(long.status))
            self._let_go(conn, registered=conn in self.pending_conns)
            return True
        if whole:
            conn.data_ready = True
            conn.sock.restart()
            self.lent += 1
            super().enqueue_req(conn)
        return whole

    def handle(self, conn: Any) -> Any:
        """Serve a request, and those that come right behind it: the way back through the loop costs as much
        as a small request.
        """
        kept = super().handle(conn)
        while kept is True and self._comes_more(conn):
            kept = super().handle(conn)
        return kept

    def _comes_more(self, conn: Any) -> bool:
        """Return whether the next request's head is in, after waiting a moment where threads are plenty."""
        sock = conn.sock
        if not (self.alive and isinstance(sock, BufferedSocket)):
            return False
        sock.ahead[:0] = conn.parser.unreader.take_buffered()
        if 2 * self.lent > self.cfg.threads:
            return False
        if not sock.ahead:
            near = select.poll()
            near.register(sock, select.POLLIN)
            if not near.poll(self.NEAR_MILLISECONDS):
                return False
        try:
            if not sock.gather():
                return False
        except TooLong:
            return False  # the loop refuses it
        sock.restart()
        return True

    def finish_request(self, conn: Any, fs: Any) -> None:
        """Keep the connection, or let it go without waiting."""
        kept = not fs.cancelled() and fs.exception() is None and fs.result()
        mine = isinstance(conn.sock, BufferedSocket)
        if mine:
            self.lent -= 1
        if kept and mine and conn.sock.ahead:
            self.enqueue_req(conn)  # a part of the next head, which the poller would not see
        elif kept or not mine:
            super().finish_request(conn, fs)
        else:
            self._let_go(conn)

    def _let_go(self, conn: Any, *, registered: bool = False) -> None:
        """Say that no more comes; close when the client saw it, or it might miss the end of its answer."""
        if registered:
            self.poller.unregister(conn.sock)
        try:
            conn.sock.setblocking(False)
            conn.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self._close(conn)
            return
        self.lingering.append((time.monotonic() + self.LINGER_SECONDS, conn))
        self.poller.register(conn.sock, EVENT_READ, partial(self._last_bytes, conn))

    def _last_bytes(self, conn: Any, client: Any) -> None:
        try:
            data = socket.socket.recv(client, CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self.poller.unregister(client)
            self._close(conn)

    def _close(self, conn: Any) -> None:
        """Close for good; told apart from what is closed already by its number."""
        if conn.sock.fileno() >= 0:
            self.nr_conns -= 1
            conn.close()

    def murder_pending(self) -> None:
        """Close what took too long."""
        super().murder_pending()
        now = time.monotonic()
        while self.lingering and (self.lingering[0][0] < now or self.lingering[0][1].sock.fileno() < 0):
            _, conn = self.lingering.popleft()
            if conn.sock.fileno() >= 0:
                with contextlib.suppress(KeyError, ValueError):
                    self.poller.unregister(conn.sock)
                self._close(conn)

    def _keepalive_after(self, conn: Any, keepalive: Any) -> bool:
        """Return whether the connection can be used again: not where more of a body must be waited for.

        Time is taken only where more is to come: on a busy machine any time may be over at once.
        """
        if not keepalive:
            return False
        until = time.monotonic() + self.DRAIN_SECONDS
        if not isinstance(conn.sock, BufferedSocket):
            return bool(conn.parser.finish_body(deadline=until))
        conn.sock.settimeout(self.DRAIN_SECONDS)
        conn.sock.until = until
        return bool(conn.parser.finish_body(max_bytes=CHUNK))


def _end_streams() -> None:
    """Let go of who follows events, who would hold up the end for as long as it may take."""
    from api.streaming import hub  # noqa: PLC0415 - not in gunicorn's master, which serves nobody

    hub.let_go()


def _refusal(status: int) -> bytes:
    """Return the whole answer to a head that is too long."""
    from api.response.errors import fault  # noqa: PLC0415 - as above

    answer = fault(
        status, "HTTPRequestTooLong", f"The request has more than {LONGEST_URL} bytes before its body."
    )
    head = f"HTTP/1.1 {answer.status}\r\nConnection: close\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {answer.content_length}\r\n\r\n".encode() + answer.get_data()
