"""Errors in Heat's response format (docs/internals/rest-api.md §2, §19), with a table of statuses.

`explanation` is fixed per status; only `error.message` describes the error. `error.errors` is our extension:
every fault of a template with its code and location. An unexpected error has no message, only an id that is
also in the log.
"""

from __future__ import annotations

import re
import uuid
from typing import Final

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from api.response.serialization import json_response
from orchestrator import errors, logs, rate_errors
from orchestrator.engine.validation.nested_faults import as_parent_fault
from orchestrator.json_types import JsonObject
from orchestrator.store.connections.database import UNREACHABLE

log = logs.logger()

MALFORMED: Final = (
    "The server could not comply with the request since it is either malformed or otherwise incorrect."
)
EXPLANATIONS: Final = {
    403: "Access was denied to this resource.",
    404: "The resource could not be found.",
    409: "There was a conflict when trying to complete your request.",
    429: "Too many requests were sent in a short time. Please try again at a later time.",
    500: "The server has either erred or is incapable of performing the requested operation.",
    503: "The server is currently unavailable. Please try again at a later time.",
}
TITLES: Final = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    409: "Conflict",
    414: "URI Too Long",
    415: "Unsupported Media Type",
    421: "Misdirected Request",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
STATUSES: Final[dict[type[BaseException], int]] = {
    errors.InvalidTemplate: 400,
    errors.InvalidRequest: 400,
    errors.NotSupported: 400,
    errors.LimitExceeded: 400,
    errors.Unauthenticated: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    rate_errors.TooManyRequests: 429,
    errors.Unavailable: 503,
}
RETRY_SECONDS: Final = 5  # seconds in Retry-After


class HttpNotFound(errors.NotFound):
    """A 404 of the HTTP layer with its own message."""

    heat_type = "HTTPNotFound"

    def __init__(self, message: str) -> None:
        """Set the message."""
        errors.OrchestratorError.__init__(self, message)


class OutputNotFound(HttpNotFound):
    """The template declares no such output."""

    heat_type = "NotFound"


class TemplateVersionNotFound(HttpNotFound):
    """The template language has no such version."""

    heat_type = "NotFound"


def register(app: Flask) -> None:
    """Register the error handlers of `app`."""
    app.register_error_handler(errors.OrchestratorError, _orchestrator_error)
    app.register_error_handler(HTTPException, http_error)
    app.register_error_handler(Exception, _unexpected)


def fault(
    status: int,
    error_type: str,
    message: str | None,
    problems: list[JsonObject] | None = None,
    **fields: object,
) -> Response:
    """Return an error response. Without a message the key is omitted, as clients of Heat expect."""
    error: JsonObject = {"type": error_type, "traceback": None, **fields}
    if message is not None:
        error["message"] = message
        error["errors"] = problems or [_problem(_code(error_type), message)]
    title = TITLES.get(status, "Error")
    body = {
        "code": status,
        "title": title,
        "explanation": EXPLANATIONS.get(status, MALFORMED),
        "error": error,
    }
    return json_response(body, status)


def _orchestrator_error(error: errors.OrchestratorError) -> Response:
    status = next((STATUSES[cls] for cls in type(error).__mro__ if cls in STATUSES), 500)
    if isinstance(error, rate_errors.TooManyStreams):
        response = fault(503, error.heat_type, str(error))
        response.headers["Retry-After"] = str(RETRY_SECONDS)
        return response
    if status == 500:  # not the caller's fault: details are in the log
        return _unexpected(error)
    if isinstance(error, errors.Unauthenticated):
        return _unauthenticated(error)
    if isinstance(error, errors.InvalidTemplate):
        cls, message = error.heat_type, as_parent_fault(error.diagnostics[0])
        if request.endpoint == "templates.validate" and cls == "StackValidationFailed":
            cls, message = "HTTPBadRequest", str(error)  # Heat's engine reports this error as a plain text
        return fault(status, cls, message, [diagnostic_body(diagnostic) for diagnostic in error.diagnostics])
    response = fault(status, error.heat_type, str(error))
    if isinstance(error, rate_errors.TooManyRequests | errors.RequestHung):
        response.headers["Retry-After"] = str(error.retry_seconds)
    return response


def _unauthenticated(error: errors.Unauthenticated) -> Response:
    """Return the response of the token check, which has its own format (§1)."""
    response = json_response({"error": {"code": 401, "title": TITLES[401], "message": str(error)}}, 401)
    response.headers["WWW-Authenticate"] = error.challenge
    return response


def http_error(error: HTTPException) -> Response | HTTPException:
    """Return the response to an HTTP error."""
    status = error.code or 500
    if status < 400:
        return error
    error_type = "HTTP" + re.sub(r"[^A-Za-z]", "", error.name)
    response = fault(status, error_type, EXPLANATIONS.get(status) or error.description or MALFORMED)
    if isinstance(error, MethodNotAllowed):
        allowed = sorted(set(error.valid_methods or ()) - {"HEAD", "OPTIONS"})
        if request.method == "OPTIONS":
            response = Response(status=204)
        response.headers["Allow"] = ",".join(allowed)
    return response


def _unexpected(error: Exception) -> Response:
    error_id = str(uuid.uuid4())
    if isinstance(error, UNREACHABLE):
        log.error("database_unreachable", error_id=error_id, error=str(error))
        response = fault(503, "HTTPServiceUnavailable", EXPLANATIONS[503], id=error_id)
        response.headers["Retry-After"] = str(RETRY_SECONDS)
        return response
    log.error("request_failed", error_id=error_id, path=request.path, exc_info=error)
    return fault(500, type(error).__name__, None, id=error_id)


def diagnostic_body(diagnostic: errors.Diagnostic) -> JsonObject:
    """Return a diagnostic in the response format."""
    problem = _problem(diagnostic.code, diagnostic.message)
    problem.update(path=diagnostic.path, line=diagnostic.line, column=diagnostic.column, hint=diagnostic.hint)
    problem.update(file=diagnostic.file, excerpt=diagnostic.excerpt, severity=diagnostic.severity)
    return problem


def _problem(code: str, message: str) -> JsonObject:
    nowhere: JsonObject = {
        "path": "",
        "line": None,
        "column": None,
        "hint": "",
        "file": "",
        "excerpt": "",
        "severity": "error",
    }
    return {"code": code, "message": message, **nowhere}


def _code(error_type: str) -> str:
    """`StackExists` → `stack-exists`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", error_type.removeprefix("HTTP")).lower()
