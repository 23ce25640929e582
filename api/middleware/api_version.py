"""The version prefix of a path: `/v1` and `/v1.0` are the same API (docs/internals/rest-api.md §1).

The prefix moves to SCRIPT_NAME like a mount point, so that links repeat the caller's prefix. An Accept header
can replace the prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from flask import Blueprint, Response, request

from api.dependencies import Wsgi
from api.response.serialization import json_response
from orchestrator.json_types import JsonObject

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

MARK: Final = "orchestrator.version"
EMPTY_PROJECT: Final = "orchestrator.empty_project"
QUERY_PATH: Final = "orchestrator.asked"  # path of a CloudFormation query, which has no path
QUERY: Final = "/.query"  # route of these queries
ACCEPTED: Final = "application/vnd.openstack.orchestration-v1.0"
_PREFIX: Final = re.compile(r"/(v1(?:\.0)?)(?=/(?!/)|\Z)")
_EMPTY_PROJECT: Final = re.compile(r"/v1(?:\.0)?//")
_OTHER: Final = re.compile(r"/(v\d[^/]*|versions[^/]*)(/|\Z)")

versions = Blueprint("versions", __name__)


class Versioned:
    """WSGI middleware that finds the version, or leaves the request without a version."""

    def __init__(self, app: Wsgi) -> None:
        """Wrap `app`."""
        self.app = app

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Pass the request on with its prefix moved."""
        environ.pop(MARK, None)
        environ.pop(QUERY_PATH, None)
        environ.pop(EMPTY_PROJECT, None)
        path = environ.get("PATH_INFO", "")
        match = _PREFIX.match(path)
        if match:
            environ["SCRIPT_NAME"] = environ.get("SCRIPT_NAME", "") + match.group(0)
            environ["PATH_INFO"] = path[match.end() :] or "/"
            environ[MARK] = match.group(1)
            if path[match.end() :] in {"", "/"} and _is_query(environ):
                environ[QUERY_PATH], environ["PATH_INFO"] = path[match.end() :], QUERY
        elif _EMPTY_PROJECT.match(path):
            environ[EMPTY_PROJECT] = True
        elif path in {"", "/"} or _OTHER.match(path):
            environ["PATH_INFO"] = "/"
        elif ACCEPTED in environ.get("HTTP_ACCEPT", ""):
            environ[MARK] = "v1"
        return self.app(environ, start_response)


def _is_query(environ: WSGIEnvironment) -> bool:
    """Whether a request for the bare version is a CloudFormation query."""
    if environ.get("REQUEST_METHOD") in {"HEAD", "OPTIONS"}:
        return False
    form = str(environ.get("CONTENT_TYPE", "")).startswith("application/x-www-form-urlencoded")
    return "Action=" in str(environ.get("QUERY_STRING", "")) or form


def versioned() -> bool:
    """Whether the request named a version."""
    return MARK in request.environ


@versions.get("/")
def root() -> Response:
    """List the versions: 300 Multiple Choices, as clients expect."""
    return json_response({"versions": [_version(f"{request.root_url.rstrip('/')}/v1/")]}, 300)


@versions.get("/<project_id>")
def of_project(project_id: str) -> Response:  # noqa: ARG001 - in the request's address
    """Return the version of this path.

    Heat has no such path. openstacksdk requests it first, and falls back only with Keystone; it appends the
    project to the link itself.
    """
    return json_response({"version": _version(f"{request.root_url.rstrip('/')}/")})


@versions.get("/healthcheck")
def healthcheck() -> Response:
    """Report that this process is alive."""
    return Response("OK", mimetype="text/plain")


def _version(href: str) -> JsonObject:
    return {"id": "v1.0", "status": "CURRENT", "links": [{"rel": "self", "href": href}]}
