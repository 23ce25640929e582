"""The version in front of a path: `/v1` and `/v1.0` are one API (docs/internals/rest-api.md §1).

The prefix moves into the script name, as a mount point does, so that links echo the one the caller used; an
Accept header may stand for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from flask import Blueprint, Response, request

from api.response.serialization import json_response

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

MARK: Final = "orchestrator.version"
ASKED: Final = "orchestrator.asked"  # the path of a CloudFormation query, which has none of its own
QUERY: Final = "/.query"  # where that is served
ACCEPTED: Final = "application/vnd.openstack.orchestration-v1.0"
_PREFIX: Final = re.compile(r"/(v1(?:\.0)?)(?=/(?!/)|\Z)")
_OTHER: Final = re.compile(r"/(v\d[^/]*|versions[^/]*)(/|\Z)")

versions = Blueprint("versions", __name__)


class Versioned:
    """WSGI: find the version, or leave the request without one."""

    def __init__(self, app: Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]) -> None:
        """Stand in front of `app`."""
        self.app = app

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Pass the request on, its prefix moved."""
        environ.pop(MARK, None)
        environ.pop(ASKED, None)
        path = environ.get("PATH_INFO", "")
        found = _PREFIX.match(path)
        if found:
            environ["SCRIPT_NAME"] = environ.get("SCRIPT_NAME", "") + found.group(0)
            environ["PATH_INFO"] = path[found.end() :] or "/"
            environ[MARK] = found.group(1)
            if path[found.end() :] in {"", "/"} and _is_query(environ):
                environ[ASKED], environ["PATH_INFO"] = path[found.end() :], QUERY
        elif path in {"", "/"} or _OTHER.match(path):
            environ["PATH_INFO"] = "/"
        elif ACCEPTED in environ.get("HTTP_ACCEPT", ""):
            environ[MARK] = "v1"
        return self.app(environ, start_response)


def _is_query(environ: WSGIEnvironment) -> bool:
    """Whether a request for just the version is one of CloudFormation's."""
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
    """Say which version answers here.

    Heat has nothing at this path. openstacksdk looks here first, and only with Keystone somewhere else too;
    to the link it adds the project by itself.
    """
    return json_response({"version": _version(f"{request.root_url.rstrip('/')}/")})


@versions.get("/healthcheck")
def healthcheck() -> Response:
    """Say that this process answers."""
    return Response("OK", mimetype="text/plain")


def _version(href: str) -> dict[str, Any]:
    return {"id": "v1.0", "status": "CURRENT", "links": [{"rel": "self", "href": href}]}
