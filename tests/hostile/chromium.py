"""Chromium, and the web sites of an attacker that it visits.

`Site` is a server with two kinds of paths. Below `/__` it serves the attacker's pages and receives their
reports. It forwards all other requests unchanged to the API and records them. Under a name of the attacker it
is therefore a site after DNS rebinding; under a loopback address it is the API with a record of the requests.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.routes import Route

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
EVIL = "evil.example"
PAGE = (Path(__file__).parent / "attack.html").read_text()
SECONDS = 300.0  # for all requests of a page, on a loaded machine


@dataclass(frozen=True, slots=True)
class Received:
    """A request that reached the API from the browser."""

    method: str
    path: str
    headers: dict[str, str]  # names in lower case
    status: int


class Site:
    """The server of an attacker, in front of the API at `port`."""

    def __init__(self, port: int) -> None:
        self.api_port = port
        self.requests: list[Received] = []
        self.reports: list[dict[str, Any]] = []
        self.reported = threading.Event()
        self.attack: dict[str, Any] = {}
        self.challenge = ""  # realm of the basic authentication of `/__login`
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(site) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - self is the handler
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.path.startswith("/__page"):
                    self._reply(PAGE.replace("ATTACK", json.dumps(site.attack)).encode(), "text/html")
                elif self.path.startswith("/__report"):
                    self._reply(b"", "text/plain")
                    site.reports.append(json.loads(body))
                    site.reported.set()
                elif self.path.startswith("/__login") and "Authorization" not in self.headers:
                    self._reply(b"", "text/plain", 401, ("WWW-Authenticate", site.challenge))
                elif self.path.startswith("/__login"):
                    self._reply(b"", "text/plain", 302, ("Location", self.path.partition("?")[2]))
                elif self.path == "/favicon.ico":
                    self._reply(b"", "image/png", 404)
                else:
                    self._forward(body)

            def _forward(self, body: bytes) -> None:
                lines = [f"{self.command} {self.path} HTTP/1.1"]
                lines += [f"{name}: {value}" for name, value in self.headers.items() if name != "Connection"]
                head = "\r\n".join([*lines, "Connection: close"]).encode("latin-1") + b"\r\n\r\n"
                with socket.create_connection(("127.0.0.1", site.api_port), timeout=30) as api:
                    api.sendall(head + body)
                    answer = b""
                    with contextlib.suppress(TimeoutError):
                        while chunk := api.recv(65_536):
                            answer += chunk
                named = {name.lower(): value for name, value in self.headers.items()}
                status = int(answer.split(b" ", 2)[1]) if answer else 0
                site.requests.append(Received(self.command, self.path, named, status))
                with contextlib.suppress(OSError):
                    self.wfile.write(answer)
                self.close_connection = True

            def _reply(self, body: bytes, kind: str, status: int = 200, *headers: tuple[str, str]) -> None:
                self.send_response(status)
                for name, value in (("Access-Control-Allow-Origin", "*"), *headers):
                    self.send_header(name, value)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Log no requests."""

            do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = handle_any  # noqa: N815

        return Handler


@contextlib.contextmanager
def sites(port: int) -> Iterator[tuple[Site, Site]]:
    """Yield a site in front of the API, and a site for pages of another origin."""
    with contextlib.ExitStack() as stack:
        yield (
            stack.enter_context(contextlib.closing(Site(port))),
            stack.enter_context(contextlib.closing(Site(port))),
        )


def program() -> str:
    """Return the path of Chromium; without it the test is skipped."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("Chromium is not installed; `make test-hostile` installs it")
    return found


def attack(
    page: str, target: str, routes: Sequence[Route], site: Site, folder: Path, *, start: str = ""
) -> dict[str, Any]:
    """Visit the attacker's page at `page`, which requests the routes at `target`; return its report.

    The browser first visits `start`, which must lead to the page.
    """
    site.attack = {
        "target": target,
        "routes": [
            {"method": route.method, "path": route.path, "body": route.body.decode(), "kind": route.kind}
            for route in routes
        ],
    }
    site.reported.clear()
    options = (
        "--headless=new",
        "--no-sandbox",  # the tests may run as root
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--no-proxy-server",
        "--disable-popup-blocking",
        # The server must not depend on recent protections of browsers.
        "--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests",
        f"--host-resolver-rules=MAP {EVIL} 127.0.0.1",
        f"--user-data-dir={folder}",
    )
    with (folder.parent / f"{folder.name}.log").open("wb") as log:
        browser = subprocess.Popen(
            (program(), *options, start or page), stdout=log, stderr=log, start_new_session=True
        )
        try:
            assert site.reported.wait(SECONDS), "the page did not report"
        finally:
            os.killpg(browser.pid, signal.SIGKILL)
            browser.wait(20)
    return site.reports[-1]
