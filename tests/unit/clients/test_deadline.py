"""The wall-clock limit covers each part of an exchange, and all outgoing requests of servers use it."""

from __future__ import annotations

import ast
import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpcore
import httpx
import pytest
from keystoneauth1.exceptions import ConnectFailure, ConnectTimeout
from keystoneauth1.session import Session

from orchestrator.clients import deadline as module
from orchestrator.clients.deadline import Deadline, is_healthy, open_response, read_body, resolve
from orchestrator.clients.keystone.deadline_adapter import parsed_url, with_deadline
from tests.patience import took_at_most

TREE = Path(__file__).resolve().parents[3]
LIBRARIES = {"httpx", "httpcore", "requests", "urllib3", "http", "urllib", "aiohttp", "boto3"}
# Values and errors of the libraries, which open no connection.
HARMLESS = {
    "httpx.URL", "httpx.InvalidURL", "httpx.Headers", "httpx.codes", "httpx.create_ssl_context",
    "httpcore.URL", "httpcore.Response", "httpcore.TimeoutException", "httpcore.NetworkError",
    "httpcore.ProtocolError", "httpcore.UnsupportedProtocol", "httpcore.ConnectError",
    "httpcore.ConnectTimeout", "httpcore.LocalProtocolError", "httpcore.RemoteProtocolError",
    "urllib.parse", "http.HTTPStatus", "http.server",
}  # fmt: skip
HELPERS = {
    "orchestrator/clients/deadline.py",
    "orchestrator/clients/http_connection.py",
    "orchestrator/clients/keystone/deadline_adapter.py",
}
COMMAND_LINE = "orchestrator/cli/"  # a process of the user, which follows event streams without end

Peer = Callable[[socket.socket], None]


@contextlib.contextmanager
def peer(behaviour: Peer) -> Iterator[int]:
    """Serve connections with `behaviour`; yield the port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    def serve(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            behaviour(connection)

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def drip(connection: socket.socket, begin: bytes = b"") -> None:
    connection.sendall(begin)
    for _ in range(100):
        connection.sendall(b"x")
        time.sleep(0.05)


def drip_head(connection: socket.socket) -> None:
    drip(connection, b"HTTP/1.1 200 OK\r\nX-Long: ")


def drip_body(connection: socket.socket) -> None:
    drip(connection, b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")


def drip_early(connection: socket.socket) -> None:
    """Send informational responses without end."""
    for _ in range(100):
        connection.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        time.sleep(0.05)


def read_slowly(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    for _ in range(100):
        connection.recv(64)
        time.sleep(0.05)


def exchange(port: int, seconds: float, scheme: str = "http", body: bytes | None = None) -> bytes:
    url = httpcore.URL(scheme=scheme.encode(), host=b"127.0.0.1", port=port, target=b"/")
    context = ssl.create_default_context()
    headers = [(b"Host", b"x"), *([(b"Content-Length", str(len(body)).encode())] if body else [])]
    with open_response(
        "POST" if body else "GET", url, headers, Deadline(seconds), body=body, context=context
    ) as response:
        return read_body(response, 10_000)


@pytest.mark.parametrize("behaviour", [drip_head, drip_body, drip_early, read_slowly])
def test_an_exchange_ends_at_its_deadline(behaviour: Peer) -> None:
    with peer(behaviour) as port:
        begun = time.monotonic()
        with pytest.raises(httpcore.TimeoutException):
            exchange(port, 0.6, body=b"x" * 8_000_000 if behaviour is read_slowly else None)
        assert time.monotonic() - begun > 0.5
        assert took_at_most(begun, 3)


def test_head_and_body_of_a_small_request_are_sent_together() -> None:
    pieces = []

    def serve(connection: socket.socket) -> None:
        pieces.append(connection.recv(65_536))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with peer(serve) as port:
        assert exchange(port, 5, body=b"{}") == b"ok"
    assert pieces[0].endswith(b"\r\n\r\n{}")


def test_an_answer_before_the_end_of_a_request_is_read() -> None:
    def serve(connection: socket.socket) -> None:
        connection.recv(64)
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 5\r\nConnection: close\r\n\r\nlarge")
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65_536):
            pass

    with peer(serve) as port:
        assert exchange(port, 5, body=b"x" * 8_000_000) == b"large"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v2.0/ports?limit=500&marker=a-b",
        "/a/../b",
        "/a/./b",
        "/a//b",
        "/a b?c=d e",
        "/ä?ö=1",
        "",
        "/a%2Fb",
    ],
)
@pytest.mark.parametrize("origin", ["http://127.0.0.1:80", "https://Cloud.example", "http://[::1]:9696"])
def test_a_url_is_read_as_by_its_library(origin: str, path: str) -> None:
    parsed = httpx.URL(origin + path)
    expected = parsed.raw_scheme, parsed.raw_host, parsed.port, parsed.raw_path
    url, host = parsed_url(origin + path)
    assert ((url.scheme, url.host, url.port, url.target), host) == (expected, parsed.netloc)


def test_a_tls_handshake_ends_at_the_deadline() -> None:
    record = b"\x16\x03\x03\x3f\xff\x02\x00\x3f\xfb"  # the start of a long handshake message
    with peer(lambda connection: drip(connection, record)) as port:
        begun = time.monotonic()
        with pytest.raises(httpcore.ConnectTimeout):
            exchange(port, 0.6, "https")
        assert time.monotonic() - begun > 0.5
        assert took_at_most(begun, 3)


def test_a_name_resolution_ends_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answered.wait(10) and [])
    begun = time.monotonic()
    with pytest.raises(TimeoutError):
        resolve("slow.example", 80, 0.3)
    monkeypatch.setattr(module, "_resolutions", threading.BoundedSemaphore(1))
    with pytest.raises(TimeoutError):
        resolve("slow.example", 80, 0.3)
    with pytest.raises(TimeoutError):  # a single resolution is allowed, and it is in progress
        resolve("other.example", 80, 0.3)
    assert took_at_most(begun, 5)
    assert resolve("127.0.0.1", 80, 0.3) == ["127.0.0.1"]
    answered.set()


def test_a_health_check_reports_slow_and_absent_servers() -> None:
    with peer(drip_head) as port:
        assert not is_healthy(f"http://127.0.0.1:{port}/", 0.3)
    assert not is_healthy(f"http://127.0.0.1:{port}/", 0.3)
    with peer(lambda item: item.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")) as port:
        assert is_healthy(f"http://127.0.0.1:{port}/", 5)


def test_a_session_of_keystone_ends_at_its_deadline() -> None:
    session = with_deadline(Session(), 0.6)
    with peer(drip_head) as port:
        begun = time.monotonic()
        with pytest.raises(ConnectTimeout):
            session.get(f"http://127.0.0.1:{port}/", authenticated=False)
        assert time.monotonic() - begun > 0.5
        assert took_at_most(begun, 3)
    with pytest.raises(ConnectFailure):
        session.get(f"http://127.0.0.1:{port}/", authenticated=False)


def test_a_session_of_keystone_keeps_its_connection() -> None:
    connections = []

    def serve(connection: socket.socket) -> None:
        connections.append(connection)
        for _ in range(2):
            asked = b""
            while not asked.endswith(b"{}"):
                asked += connection.recv(4096)
            assert b"X-Auth-Token: t" in asked
            connection.sendall(
                b'HTTP/1.1 201 Created\r\nX-Subject-Token: s\r\nContent-Length: 7\r\n\r\n{"a":1}'
            )

    session = with_deadline(Session(), 5.0)
    with peer(serve) as port:
        for _ in range(2):
            answer = session.post(
                f"http://127.0.0.1:{port}/x?y=z", json={}, headers={"X-Auth-Token": "t"}, authenticated=False
            )
            assert (answer.status_code, answer.json()) == (201, {"a": 1})
            assert answer.headers["X-Subject-Token"] == "s"
    assert len(connections) == 1


def test_only_the_helper_opens_http_connections() -> None:
    """Every other module of servers uses values and errors of HTTP libraries only."""
    found = {}
    for package in ("orchestrator", "api", "tasks"):
        for path in sorted((TREE / package).rglob("*.py")):
            name = str(path.relative_to(TREE))
            if name in HELPERS or name.startswith(COMMAND_LINE):
                continue
            used = set(_uses(ast.parse(path.read_text()))) - HARMLESS
            if used:
                found[name] = used
    assert found == {}


def _uses(tree: ast.AST) -> Iterator[str]:
    """Yield the names of HTTP libraries that a module uses, with their library."""
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in LIBRARIES:
            module = node.module or ""
            yield from [module] if module in HARMLESS else (f"{module}.{item.name}" for item in node.names)
        elif isinstance(node, ast.Import):
            names = [item.name for item in node.names if item.name.split(".")[0] in LIBRARIES]
            imported |= {item.asname or item.name for item in node.names if item.name in names}
            yield from (name for name in names if "." in name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imported:
            yield f"{node.value.id}.{node.attr}"
