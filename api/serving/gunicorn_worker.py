"""Gunicorn worker that assigns a thread to a client only after a whole request arrived (adr/0001).

`gunicorn -k api.serving.gunicorn_worker.Worker "api.app:create_app()"`. The accepting loop collects each head
and each small body without blocking: thousands of idle or slow clients cost a socket each but no thread. A
larger body has a minimum rate (`BufferedSocket.SLOWEST`), a response has a send timeout, and the loop waits
for the end of a connection and, if a project has too many requests in progress, for room (`postponement.py`).
Health checks have their own threads.
"""

from __future__ import annotations

import contextlib
import select
import socket
import sys
import threading
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from selectors import EVENT_READ
from types import FrameType
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

from api import capacity, postponement
from api.serving.buffered_socket import CHUNK, MAX_URL_BYTES, BufferedSocket, TooLong
from api.serving.idle_connections import oldest_of_busiest
from orchestrator.watchdog.watch import watch


class Worker(ThreadWorker):
    """Thread worker for complete requests. Everything except `handle` and its callees runs in the loop."""

    HEAD_SECONDS = 10.0  # for a complete head, and for a small body before a thread waits for its rest
    LINGER_SECONDS = 2.0  # until a client has received the end of its response
    DRAIN_SECONDS = 0.2  # for the unread rest of a body
    NEAR_MILLISECONDS = 4  # for the next request on a connection, usually sent at once
    RESERVED_CONNECTIONS = 16  # below the maximum, for new connections instead of idle connections
    PROBE_THREADS = 4  # for health checks
    PROBE_SECONDS = 2.0  # for sending the response to a health check
    # Interval between switches of threads. The default of 5 ms delays a short request by 5 ms for each thread
    # that computes, each time it has waited for the database.
    SWITCH_SECONDS = 0.001
    connection: type[BufferedSocket] = BufferedSocket
    probes: ThreadPoolExecutor

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Initialize as gunicorn does; the URL length is checked here."""
        super().__init__(*args, **kwargs)
        self.cfg.set("limit_request_line", 0)
        self.cfg.set("forwarder_headers", "")  # api/middleware/proxies.py applies headers of proxies
        self.cfg.set("secure_scheme_headers", {})
        self.lingering: deque[tuple[float, Any]] = deque()
        self.lent = 0  # number of threads
        self.waiting: deque[tuple[Any, Any, postponement.Postponed]] = deque()  # connections and requests

    def init_process(self) -> None:
        """Have the process watched, and publish the number of threads to the application."""
        capacity.set_threads(self.cfg.threads)
        sys.setswitchinterval(self.SWITCH_SECONDS)
        watch("api")
        self.probes = started_pool(self.PROBE_THREADS, "probe")
        super().init_process()

    def get_thread_pool(self) -> ThreadPoolExecutor:
        """Return the threads for requests."""
        return started_pool(self.cfg.threads, "request")

    def handle_exit(self, sig: int, frame: FrameType | None) -> Any:
        """Stop gracefully."""
        _end_streams()
        return super().handle_exit(sig, frame)

    def handle_quit(self, sig: int, frame: FrameType | None) -> Any:
        """Stop at once."""
        _end_streams()
        return super().handle_quit(sig, frame)

    def enqueue_req(self, conn: Any) -> None:
        """Pass the connection to a thread once it has a complete head."""
        if self.cfg.is_ssl:
            super().enqueue_req(conn)
            return
        if not isinstance(conn.sock, BufferedSocket):
            conn.sock = self.connection.of(conn.sock)
        if conn.parser is not None:  # pipelined input after the previous request
            conn.sock.ahead[:0] = conn.parser.unreader.take_buffered()
        conn.sock.setblocking(False)
        if not self._gathered(conn):
            conn.timeout = time.monotonic() + self.HEAD_SECONDS
            self.pending_conns.append(conn)
            self.poller.register(conn.sock, EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def on_pending_socket_readable(self, conn: object, client: object) -> None:
        """Read more of a head."""
        if self._gathered(conn):
            self.poller.unregister(client)
            self.pending_conns.remove(conn)

    def _gathered(self, conn: Any) -> bool:
        """Return whether the head needs no further input."""
        try:
            complete: bool = conn.sock.gather()
        except TooLong as long:
            with contextlib.suppress(OSError):
                conn.sock.send(_refusal(long.status))
            self._release(conn, registered=conn in self.pending_conns)
            return True
        if complete:
            self._assign(conn)
        return complete

    def _assign(self, conn: Any) -> None:
        """Assign a thread to a request: one of a reserved pool to a health check."""
        is_probe = conn.sock.is_probe
        conn.data_ready = True
        conn.sock.restart()
        self.lent += 1
        if is_probe:
            self.probes.submit(self._handle_probe, conn).add_done_callback(partial(self._probed, conn))
        else:
            super().enqueue_req(conn)

    def _handle_probe(self, conn: Any) -> Any:
        """Handle a health check; the loop handles what follows on the connection."""
        conn.sock.IDLE = self.PROBE_SECONDS
        try:
            return super().handle(conn)
        finally:
            del conn.sock.IDLE

    def _probed(self, conn: Any, done: Future[Any]) -> None:
        self.method_queue.defer(self.finish_request, conn, done)

    def handle(self, conn: object) -> Any:
        """Handle a request and pipelined requests: returning to the loop costs as much as a small request."""
        retained = super().handle(conn)
        while retained is True and self._comes_more(conn):
            retained = super().handle(conn)
        return retained

    def handle_request(self, req: Any, conn: Any) -> Any:
        """Handle a request; return it if it has to wait."""
        until: float | None = getattr(req, "wait_until", None)
        may_wait = isinstance(conn.sock, BufferedSocket) and (until is None or time.monotonic() < until)
        with postponement.handling(may_wait=may_wait, counted=getattr(req, "counted", False)):
            try:
                return super().handle_request(req, conn)
            except postponement.Postponed as postponed:
                req.counted = postponed.counted
                if until is None:
                    req.wait_until = time.monotonic() + postponement.WAIT_SECONDS
                return req, postponed

    def _retry_postponed(self) -> None:
        """Handle requests again whose party has room or whose time is over, a single request of each."""
        now, tried = time.monotonic(), set[object]()
        for _ in range(len(self.waiting)):
            conn, req, postponed = self.waiting.popleft()
            if req.wait_until > now and (postponed.party in tried or not postponed.has_room()):
                self.waiting.append((conn, req, postponed))
                continue
            tried.add(postponed.party)
            postponed.leave()
            conn.parser = Repeated(conn, req)
            self.lent += 1
            super().enqueue_req(conn)

    def _comes_more(self, conn: Any) -> bool:
        """Return whether the head of the next request arrived, after a short wait if threads are free."""
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
            return False  # the loop rejects it
        sock.restart()
        return True

    def finish_request(self, conn: Any, fs: Any) -> None:
        """Keep the connection alive, or close it without blocking."""
        retained = not fs.cancelled() and fs.exception() is None and fs.result()
        is_buffered = isinstance(conn.sock, BufferedSocket)
        if is_buffered:
            self.lent -= 1
        if isinstance(retained, tuple):
            self.waiting.append((conn, *retained))
        elif retained and is_buffered and conn.sock.ahead:
            self.enqueue_req(conn)  # part of the next head, which the poller would not report
        elif retained or not is_buffered:
            super().finish_request(conn, fs)
        else:
            self._release(conn)

    def _release(self, conn: Any, *, registered: bool = False) -> None:
        """Shut down writing, and close once the client did, so that it receives the end of its response."""
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
        """Close the connection. Its file descriptor number distinguishes it from closed connections."""
        if conn.sock.fileno() >= 0:
            self.nr_conns -= 1
            conn.close()

    def murder_pending(self) -> None:
        """Close connections past their deadline; if only a body is late, let a thread wait for it."""
        now = time.monotonic()
        while self.pending_conns and self.pending_conns[0].timeout <= now:
            conn = self.pending_conns.popleft()
            with contextlib.suppress(KeyError, ValueError):
                self.poller.unregister(conn.sock)
            if isinstance(conn.sock, BufferedSocket) and conn.sock.size:
                conn.sock.complete = False
                self._assign(conn)
            else:
                self._close(conn)
        while self.lingering and (self.lingering[0][0] < now or self.lingering[0][1].sock.fileno() < 0):
            _, conn = self.lingering.popleft()
            if conn.sock.fileno() >= 0:
                with contextlib.suppress(KeyError, ValueError):
                    self.poller.unregister(conn.sock)
                self._close(conn)

        self._retry_postponed()
        self._make_room()

    def _make_room(self) -> None:
        """Close idle connections while few are left for new clients. Called between the loop's events."""
        while self.nr_conns > self.worker_connections - self.RESERVED_CONNECTIONS:
            idle = oldest_of_busiest(
                *[(end - self.LINGER_SECONDS, conn) for end, conn in self.lingering],
                *[(conn.timeout - self.HEAD_SECONDS, conn) for conn in self.pending_conns],
                *[(conn.timeout - self.cfg.keepalive, conn) for conn in self.keepalived_conns],
            )
            if idle is None:
                break
            for connections in (self.pending_conns, self.keepalived_conns):
                with contextlib.suppress(ValueError):
                    connections.remove(idle)
            with contextlib.suppress(KeyError, ValueError):
                self.poller.unregister(idle.sock)
            self._close(idle)

    def _keepalive_after(self, conn: Any, keepalive: Any) -> Any:
        """Return whether the connection can be reused: not if the rest of its body would have to be awaited.

        A timeout applies only if more input is expected: on a busy machine any timeout may have passed
        already.
        """
        if not keepalive or isinstance(keepalive, tuple):
            return keepalive
        until = time.monotonic() + self.DRAIN_SECONDS
        if not isinstance(conn.sock, BufferedSocket):
            return bool(conn.parser.finish_body(deadline=until))
        conn.sock.settimeout(self.DRAIN_SECONDS)
        conn.sock.until = until
        return bool(conn.parser.finish_body(max_bytes=CHUNK))


class Repeated:
    """The parser of a connection whose request is handled again, before it parses the next request."""

    def __init__(self, conn: Any, request: object) -> None:
        """Replace the parser of the connection."""
        self._conn, self._parser, self._request = conn, conn.parser, request

    def __next__(self) -> object:
        """Return the request, and restore the parser."""
        self._conn.parser = self._parser
        return self._request


def _end_streams() -> None:
    """End event streams, which would otherwise delay the shutdown up to its limit."""
    from api.streaming import hub  # noqa: PLC0415 - not in gunicorn's master, which serves no requests

    hub.end_streams()


def started_pool(threads: int, name: str) -> ThreadPoolExecutor:
    """Return a pool whose threads all run.

    A pool starts a thread when it receives work for it, and waits for that thread. While requests compute,
    this takes tens of milliseconds, in which the loop serves no client.
    """
    pool = ThreadPoolExecutor(threads, name)
    all_run = threading.Barrier(threads)
    for _ in range(threads):
        pool.submit(all_run.wait)
    return pool


def _refusal(status: int) -> bytes:
    """Return the complete response to a head that exceeds its limit."""
    from api.response.errors import fault  # noqa: PLC0415 - as above

    answer = fault(
        status, "HTTPRequestTooLong", f"The request has more than {MAX_URL_BYTES} bytes before its body."
    )
    head = f"HTTP/1.1 {answer.status}\r\nConnection: close\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {answer.content_length}\r\n\r\n".encode() + answer.get_data()
