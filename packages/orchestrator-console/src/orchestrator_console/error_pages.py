"""Errors as pages: a title, the message of the API, and the next step."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Final

import structlog
from flask import Flask, Response, make_response, render_template, request, url_for
from werkzeug.exceptions import HTTPException
from werkzeug.http import HTTP_STATUS_CODES

from orchestrator_console.api_client import ApiError
from orchestrator_console.context import host

log = structlog.get_logger()

ADVICE: Final = {
    401: "The session has ended. Sign in again in another tab and repeat; this page keeps its contents.",
    403: "Your role does not permit this.",
    404: "It does not exist, was removed, or belongs to another project.",
    409: "Something else changed it in the meantime. Reload the page and repeat.",
    413: "Use the command line for large templates: orchestrator stack create -t FILE NAME",
    429: "Wait a moment, then repeat.",
    503: "The service is not available at the moment. Nothing was lost; reload the page in a few seconds.",
}
UNEXPECTED: Final = "An unexpected error. The log of the server has it under the id below."


@dataclass(frozen=True, slots=True)
class Problem:
    """An error as a page shows it."""

    status: int
    message: str
    error_id: str = ""

    @property
    def title(self) -> str:
        """Return the name of the status."""
        return HTTP_STATUS_CODES.get(self.status, "Error")


def register(app: Flask) -> None:
    """Register the handlers."""
    app.register_error_handler(ApiError, lambda error: _page(Problem(error.status, error.message)))
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(Exception, _unexpected)


def is_navigation() -> bool:
    """Whether the browser shows the response as its own page."""
    mode = request.headers.get("Sec-Fetch-Mode")
    return mode == "navigate" or (mode is None and "HX-Request" not in request.headers)


def _http_error(error: HTTPException) -> Response | HTTPException:
    status = error.code or 500
    return error if status < 400 else _page(Problem(status, error.description or ""))


def _unexpected(error: Exception) -> Response:
    error_id = str(uuid.uuid4())
    if host().is_outage(error):
        log.error("database_unreachable", error_id=error_id, error=str(error))
        return _page(Problem(503, ADVICE[503], error_id))
    log.error("console_request_failed", error_id=error_id, path=request.path, exc_info=error)
    return _page(Problem(500, UNEXPECTED, error_id))


def _page(problem: Problem) -> Response:
    text = render_template(
        "error.html",
        problem=problem,
        advice=ADVICE.get(problem.status, ""),
        sign_in=url_for("sign_in.form") if problem.status == 401 else "",
    )
    return make_response(text, problem.status)
