"""Slow peers as attackers, and a caller whose requests must stay fast during an attack."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

from tests.integration.served_api import answer, status

HEALTH = ("/healthcheck", "/livez", "/readyz")
TEMPLATE = {"heat_template_version": "2021-04-16", "resources": {"a": {"type": "OS::Heat::None"}}}


def head(method: str, path: str, token: str = "", *headers: str, length: int = 0) -> bytes:
    """Return the head of a request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: a", *([f"X-Auth-Token: {token}"] if token else []), *headers]
    if length:
        lines.append(f"Content-Length: {length}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def create(token: str, project: str, body: dict[str, object]) -> bytes:
    """Return a complete create request."""
    data = json.dumps(body).encode()
    json_type = "Content-Type: application/json"
    return head("POST", f"/v1/{project}/stacks", token, json_type, length=len(data)) + data


class SlowClients(threading.Thread):
    """Clients that send a request, then single bytes, and connect again when a connection closes."""

    def __init__(self, port: int, request: bytes, clients: int = 48, drips: bool = True) -> None:
        super().__init__(daemon=True)
        self.port, self.request, self.clients, self.drips = port, request, clients, drips
        self.statuses: Counter[int] = Counter()
        self.seconds: list[float] = []  # from the request to its response
        self._over = threading.Event()

    def run(self) -> None:
        connections: list[tuple[socket.socket, float]] = []
        while not self._over.wait(0.1):
            connections = [item for item in connections if self._drip(*item)]
            with contextlib.suppress(OSError):
                while len(connections) < self.clients:
                    connection = socket.create_connection(("127.0.0.1", self.port), timeout=5)
                    connection.sendall(self.request)
                    connection.setblocking(False)
                    connections.append((connection, time.monotonic()))
        for connection, _ in connections:
            connection.close()

    def _drip(self, connection: socket.socket, begun: float) -> bool:
        """Send a byte; return whether the connection is open."""
        try:
            response = connection.recv(65536)
        except BlockingIOError:
            with contextlib.suppress(OSError):
                if self.drips:
                    connection.send(b"x")
            return True
        except OSError:
            response = b""
        connection.close()
        self.statuses[status(response)] += 1
        self.seconds.append(time.monotonic() - begun)
        return False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join(20)


class SlowServer:
    """An HTTP server that sends the head of its response without end, a byte at a time."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self._over = threading.Event()
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/"

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._drip, args=(connection,), daemon=True).start()

    def _drip(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
            while not self._over.wait(0.2):
                connection.sendall(b"x")

    def close(self) -> None:
        self._over.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@dataclass
class Victim:
    """A caller of another project, and the health checks of an operator."""

    port: int
    token: str
    stack: str = ""  # path of a stack
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def prepare(self) -> None:
        """Create a stack."""
        answered = answer(
            self.port, create(self.token, "victim", {"stack_name": "mine", "template": TEMPLATE})
        )
        assert status(answered) == 201, answered
        id_ = json.loads(answered.partition(b"\r\n\r\n")[2])["stack"]["id"]
        self.stack = f"/v1/victim/stacks/mine/{id_}"

    def work(self, seconds: float) -> None:
        """List and show stacks and check the health, repeatedly."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for path in ("/v1/victim/stacks", self.stack, *HEALTH):
                begun = time.monotonic()
                answered = answer(self.port, head("GET", path, self.token), seconds=60)
                self.seconds.setdefault(path, []).append(time.monotonic() - begun)
                assert status(answered) == 200, (path, answered)

    def require_fast(self, seconds: float = 1.0) -> None:
        """Check that all requests were answered in time, except the slowest of each kind."""
        slow = {path: sorted(taken)[-3:] for path, taken in self.seconds.items()}
        assert all(len(taken) > 1 and taken[-2] < seconds for taken in slow.values()), slow


@contextmanager
def slow_server() -> Iterator[SlowServer]:
    """Serve without end."""
    server = SlowServer()
    try:
        yield server
    finally:
        server.close()
