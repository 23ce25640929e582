"""Access log: a line per finished request with path, status and duration. The query is omitted, since it
may carry a signature.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import structlog
from flask import Request, Response
from werkzeug.wsgi import ClosingIterator

from api.dependencies import Wsgi
from orchestrator import logs, metrics

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

ENDPOINT: Final = "orchestrator.endpoint"
ABOUT: Final = "orchestrator.about"
# Monitoring polls these every few seconds: they are logged only if they fail.
DEBUG_ENDPOINTS: Final = frozenset({"versions.healthcheck", "health.live", "health.ready", "metrics.show"})

log = logs.logger()


def note(request: Request, response: Response) -> None:
    """Keep the fields of the line that only the application knows."""
    named = request.view_args or {}
    stack = named.get("stack_id")
    if stack is None and response.status_code == 201 and request.endpoint == "stacks.create":
        stack = response.headers.get("Location", "").rpartition("/")[2]
    request.environ[ENDPOINT] = request.endpoint or "none"
    request.environ[ABOUT] = {"project": named.get("project_id"), "stack": stack}


class Logged:
    """WSGI middleware that measures and logs each request."""

    def __init__(self, app: Wsgi) -> None:
        """Wrap `app`."""
        self.app = app

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Pass the request on; the line is logged when the response is closed."""
        started = time.perf_counter()
        path, method = environ.get("PATH_INFO", ""), environ.get("REQUEST_METHOD", "")
        statuses: list[int] = []

        def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            statuses.append(int(status[:3]))
            return start_response(status, headers, *rest)

        def closed() -> None:
            seconds, status = time.perf_counter() - started, statuses[-1] if statuses else 500
            endpoint = environ.get(ENDPOINT, "none")
            metrics.observe_request(endpoint, status, seconds)
            write = log.debug if endpoint in DEBUG_ENDPOINTS and status < 400 else log.info
            write(
                "request",
                method=method,
                path=path,
                status=status,
                seconds=round(seconds, 6),
                endpoint=endpoint,
                remote=environ.get("REMOTE_ADDR"),
                **environ.get(ABOUT, {}),
            )
            structlog.contextvars.clear_contextvars()

        return ClosingIterator(self.app(environ, start), [closed])
