"""Kept connections of the adapter for keystoneauth1 and of the layer for OpenStack."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import httpcore

from orchestrator.clients.deadline import Deadline
from orchestrator.clients.http_connection import HttpConnection
from orchestrator.clients.keystone.deadline_adapter import DeadlineAdapter, IdleConnections

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class Service:
    """A service that answers each request; `requests` has the number of requests of each connection."""

    def __init__(self, most: int = 100) -> None:
        """Close a connection without a word after `most` requests."""
        self.most, self.requests = most, list[int]()
        self.closed = threading.Event()  # a client has closed a connection, or the service itself
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                number = len(self.requests)
                self.requests.append(0)
                threading.Thread(target=self._serve, args=(connection, number), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with connection, contextlib.suppress(OSError):
            while self.requests[number] < self.most and connection.recv(4096):
                self.requests[number] += 1
                connection.sendall(ANSWER)
        self.closed.set()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@contextlib.contextmanager
def service(most: int = 100) -> Iterator[Service]:
    serving = Service(most)
    try:
        yield serving
    finally:
        serving.close()


def get(adapter: DeadlineAdapter, port: int) -> bytes:
    return adapter.exchange("GET", f"http://127.0.0.1:{port}/x", (), None, Deadline(5.0)).content


def used(port: int) -> HttpConnection:
    connection = HttpConnection(httpcore.URL(f"http://127.0.0.1:{port}/"), None, 5.0)
    answer = connection.exchange(b"GET", b"/", [(b"Host", b"x")], None, Deadline(5.0), 100)
    assert answer.status == 200
    return connection


def test_requests_in_turn_share_a_connection() -> None:
    with service() as serving, contextlib.closing(DeadlineAdapter(5.0)) as adapter:
        assert [get(adapter, serving.port) for _ in range(3)] == [b"{}"] * 3
        assert serving.requests == [3]


def test_a_connection_that_the_service_has_closed_is_not_used_again() -> None:
    with service(most=1) as serving, contextlib.closing(DeadlineAdapter(5.0)) as adapter:
        for _ in range(2):
            assert get(adapter, serving.port) == b"{}"
            assert serving.closed.wait(60.0)
        assert serving.requests == [1, 1]


def test_a_held_connection_is_open_before_its_request_and_kept_after_it() -> None:
    with service() as serving, contextlib.closing(DeadlineAdapter(5.0)) as adapter:
        url = f"http://127.0.0.1:{serving.port}/y"
        with adapter.connected(url, Deadline(5.0)) as held:
            answers = [adapter.exchange("GET", url, (), None, Deadline(5.0), held=held) for _ in range(2)]
            assert [answer.content for answer in answers] == [b"{}"] * 2
        with adapter.connected(url, Deadline(5.0)):
            pass
        assert get(adapter, serving.port) == b"{}"
        assert serving.requests == [3]


def test_a_held_connection_without_a_request_is_closed() -> None:
    with service() as serving, contextlib.closing(DeadlineAdapter(5.0)) as adapter:
        with adapter.connected(f"http://127.0.0.1:{serving.port}/y", Deadline(5.0)):
            pass
        assert serving.closed.wait(60.0)
        assert serving.requests == [0]


def test_simultaneous_requests_have_a_connection_each_and_the_last_one_is_used_first() -> None:
    idle = IdleConnections(5.0)
    with service() as serving:
        first, second = used(serving.port), used(serving.port)
        idle.put("a", first)
        idle.put("a", second)
        assert idle.take("b") is None
        assert idle.take("a") is second
        assert idle.take("a") is first
        assert idle.take("a") is None
        first.close()
        second.close()


def test_a_connection_without_requests_is_closed_after_some_seconds() -> None:
    now = [100.0]
    idle = IdleConnections(5.0, clock=lambda: now[0])
    with service() as old, service() as new:
        idle.put("old", used(old.port))
        now[0] += 4.0
        idle.put("new", used(new.port))
        assert not old.closed.is_set()
        now[0] += 2.0
        idle.put("new", used(new.port))
        assert old.closed.wait(60.0)
        assert idle.take("old") is None
        kept = idle.take("new")
        assert kept is not None
        kept.close()
        idle.clear()


def test_all_kept_connections_are_closed_with_the_adapter() -> None:
    adapter = DeadlineAdapter(5.0)
    with service() as serving:
        get(adapter, serving.port)
        adapter.close()
        assert serving.closed.wait(60.0)
