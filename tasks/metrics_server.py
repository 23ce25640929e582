"""HTTP server for the metrics of a worker.

With child processes (`-P prefork`) the parent serves; it includes their counts only if
PROMETHEUS_MULTIPROC_DIR names a folder that they share.
"""

from __future__ import annotations

import hmac
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from orchestrator import metrics
from orchestrator.browser_requests import is_loopback_name
from orchestrator.config import Settings, is_loopback
from orchestrator.errors import Misconfigured
from orchestrator.logs import logger

log = logger()


def require_protected_metrics(settings: Settings) -> None:
    """Return if the metrics may be served as configured.

    Raises:
        Misconfigured: other machines could read them without authentication.
    """
    host, _ = _address(settings)
    if settings.metrics_address and settings.metrics_token is None and not is_loopback(host):
        raise Misconfigured(
            f"refusing to serve metrics on {host} without authentication: set "
            "ORCHESTRATOR_METRICS_TOKEN, or listen on 127.0.0.1"
        )


def serve(settings: Settings) -> ThreadingHTTPServer | None:
    """Start the server in a daemon thread. Return None if no address is configured or its port is in use; the
    worker runs without metrics then.
    """
    if not settings.metrics_address:
        return None
    token = settings.metrics_token
    expected = None if token is None else f"Bearer {token.get_secret_value()}"
    try:
        server = ThreadingHTTPServer(_address(settings), _handler(expected))
    except OSError as error:
        log.error("metrics_server_failed", address=settings.metrics_address, error=str(error))
        return None
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server


def _address(settings: Settings) -> tuple[str, int]:
    host, _, port = (settings.metrics_address or "").rpartition(":")
    return host.strip("[]"), int(port or 0)


def _handler(expected: str | None) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10.0  # seconds to receive a request

        def do_GET(self) -> None:
            """Return the metrics."""
            values = self.headers.get("Authorization", "")
            if expected is None and not is_loopback_name(self.headers.get("Host", "localhost")):
                self._answer(421, b"", "text/plain")  # a web page that rebound its own name
            elif expected is not None and not hmac.compare_digest(values.encode(), expected.encode()):
                self._answer(403, b"", "text/plain")
            elif self.path.partition("?")[0] != "/metrics":
                self._answer(404, b"", "text/plain")
            else:
                self._answer(200, metrics.exposition(), metrics.CONTENT_TYPE)

        def _answer(self, status: int, body: bytes, content_type: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log no requests."""

    return Handler
