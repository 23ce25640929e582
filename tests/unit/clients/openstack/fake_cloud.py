"""Keystone and a service on real sockets, with slow, lost and refused answers."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.clients.keystone.http import ServiceUser, service_session

EXPIRES = "2999-01-01T00:00:00.000000Z"


class FakeCloud:
    """Keystone (/identity/v3) and nova (/compute/v2.1) of a region.

    `before` runs in the thread of each request with method and path; it may wait, or return a status. The
    tokens in `refused` are not valid.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.before: Callable[[str, str], int | None] = lambda _method, _path: None
        self.after: Callable[[str, str], bool] = lambda _method, _path: True  # False: the answer is lost
        self.refused: set[str] = set()
        self.tokens = 0
        self.url = ""
        self.service_url = ""
        self._lock = threading.Lock()

    def count(self, method: str, path: str) -> int:
        return sum(1 for request in self.requests if request[:2] == (method, path))

    def cloud(self) -> Cloud:
        session = service_session(ServiceUser(f"{self.url}/identity/v3", "u", "p", "demo", "D", "D"))
        return Cloud(lambda: session, "RegionOne")

    def answer(self, method: str, path: str, headers: dict[str, str]) -> tuple[int, Any, dict[str, str]]:
        with self._lock:
            self.requests.append((method, path, headers))
        status = self.before(method, path)
        if status is not None:
            return status, {"error": {"message": f"status {status}"}}, {}
        if path == "/identity/v3/auth/tokens":
            with self._lock:
                self.tokens += 1
                token = f"token{self.tokens}"
            return 201, {"token": self._token()}, {"X-Subject-Token": token}
        if path.startswith("/compute") and path.rstrip("/").endswith("v2.1"):
            return 200, {"version": self._version()}, {}
        if headers.get("x-auth-token") in self.refused or "x-auth-token" not in headers:
            return 401, {"error": {"message": "refused"}}, {}
        return 200, {"path": path}, {}

    def _token(self) -> dict[str, Any]:
        endpoint = {"id": "e", "interface": "public", "region": "RegionOne", "region_id": "RegionOne"}
        return {
            "methods": ["password"],
            "expires_at": EXPIRES,
            "issued_at": "2020-01-01T00:00:00.000000Z",
            "project": {"id": "project1", "name": "demo", "domain": {"id": "d", "name": "D"}},
            "user": {"id": "u", "name": "u", "domain": {"id": "d", "name": "D"}},
            "roles": [],
            "catalog": [
                {
                    "id": "c",
                    "type": "compute",
                    "name": "nova",
                    "endpoints": [{**endpoint, "url": f"{self.service_url or self.url}/compute/v2.1"}],
                }
            ],
        }

    def _version(self) -> dict[str, Any]:
        links = [{"rel": "self", "href": f"{self.url}/compute/v2.1"}]
        return {"id": "v2.1", "status": "CURRENT", "version": "2.90", "min_version": "2.1", "links": links}


@contextmanager
def fake_cloud() -> Iterator[FakeCloud]:
    """Run a cloud in threads of this process."""
    fake = FakeCloud()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def serve(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, body, extra = fake.answer(self.command, self.path, headers)
            if not fake.after(self.command, self.path):
                self.close_connection = True
                return
            data = json.dumps(body).encode()
            self.send_response(status)
            for name, value in {**extra, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(OSError):  # the client has left
                self.wfile.write(data)

        def __getattr__(self, name: str) -> object:
            if name.startswith("do_"):
                return self.serve
            raise AttributeError(name)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

    server = Server(("127.0.0.1", 0), Handler)
    fake.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
