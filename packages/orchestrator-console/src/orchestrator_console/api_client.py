"""Calls of the API within the process, with the credentials of the session.

A call is a complete request to the API: it is authenticated, authorized, counted and audited there. The
console only adds the credentials, and removes the headers by which the API recognizes pages of other sites,
because the console has checked the request itself.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import orjson
from werkzeug.datastructures import Headers

from api.web_applications import WebHost
from orchestrator_console.json_types import JsonMapping, JsonObject

Query = Mapping[str, object]

# Headers of the browser's request that say nothing about the call.
DROPPED: Final = (
    "HTTP_COOKIE",
    "HTTP_ORIGIN",
    "HTTP_REFERER",
    "HTTP_ACCEPT",
    "HTTP_ACCEPT_ENCODING",
    "HTTP_EXPECT",
    "HTTP_TRANSFER_ENCODING",
    "HTTP_IF_NONE_MATCH",
    "HTTP_X_AUTH_TOKEN",
    "HTTP_AUTHORIZATION",
    "CONTENT_TYPE",
    "wsgi.input_terminated",
)
SAFE: Final = "GET"
REFRESH: Final = "HTTP_HX_REQUEST"  # header of a request that refreshes a part of a page
JSON: Final = "application/json"


class ApiError(Exception):
    """The API rejected a call."""

    def __init__(self, status: int, body: JsonMapping) -> None:
        """Read the message and the faults from an error response."""
        error = body.get("error") or {}
        self.status = status
        self.type = str(error.get("type") or "")
        self.message = str(error.get("message") or body.get("explanation") or body.get("title") or "")
        self.faults: list[JsonObject] = list(error.get("errors") or ())
        super().__init__(self.message)


class ApiClient:
    """The API as seen by a request of the console."""

    def __init__(self, host: WebHost, environ: Mapping[str, Any], credentials: Mapping[str, Any]) -> None:
        """Take the host, the browser's request, and the variables with the credentials."""
        self._host, self._environ, self._credentials = host, environ, credentials

    def get(self, path: str, query: Query | None = None, *, shared: bool = False) -> JsonObject:
        """Return the document at a path below `/v1`. With `shared`, a refreshed page may receive the response
        to another page that is refreshed at the same time.

        Raises:
            ApiError: the response is an error.
        """
        return self.send(SAFE, path, query=query, shares=shared and REFRESH in self._environ)

    def send(
        self,
        method: str,
        path: str,
        body: JsonMapping | None = None,
        query: Query | None = None,
        *,
        shares: bool = False,
    ) -> JsonObject:
        """Send a request; return the document of the response, empty without any.

        Raises:
            ApiError: the response is an error.
        """
        chunks, status, _headers = self.open(path, query, method=method, body=body, shares=shares)
        data = _joined(chunks)
        document = _document(data)
        if status >= 400:
            raise ApiError(status, document)
        return document

    def data(self, path: str, query: Query | None = None) -> tuple[bytes, Headers]:
        """Return a response that is not JSON, with its headers.

        Raises:
            ApiError: the response is an error.
        """
        chunks, status, headers = self.open(path, query)
        data = _joined(chunks)
        if status >= 400:
            raise ApiError(status, _document(data))
        return data, headers

    def open(
        self,
        path: str,
        query: Query | None = None,
        *,
        method: str = SAFE,
        body: JsonMapping | None = None,
        headers: Mapping[str, str] | None = None,
        shares: bool = False,
    ) -> tuple[Iterable[bytes], int, Headers]:
        """Send a request; return the chunks of the response, its status and its headers.

        Only a request without a body may be postponed: it is handled again from the start.
        """
        environ = self._call_environ(path, query or {}, method, body)
        environ.update(headers or {})
        may_wait = self._environ["REQUEST_METHOD"] == SAFE == method
        return self._host.call(environ, may_wait=may_wait, shares=shares)

    def _call_environ(self, path: str, query: Query, method: str, body: JsonMapping | None) -> dict[str, Any]:
        environ = {
            name: value
            for name, value in self._environ.items()
            if name not in DROPPED and not name.startswith(("HTTP_SEC_", "HTTP_HX_", "werkzeug.", "flask."))
        }
        data = b"" if body is None else orjson.dumps(body)
        pairs = {name: value for name, value in query.items() if value not in (None, "")}
        return environ | {
            "REQUEST_METHOD": method,
            "PATH_INFO": f"/v1{path}".encode().decode("latin-1"),
            "QUERY_STRING": urlencode(pairs, doseq=True),
            "CONTENT_LENGTH": str(len(data)),
            "wsgi.input": io.BytesIO(data),
            **({} if body is None else {"CONTENT_TYPE": JSON}),
            **self._credentials,
        }


def location_path(headers: Headers) -> str:
    """Return the path of a redirect of the API, without its version."""
    path = urlsplit(headers.get("Location", "")).path
    return "/" + path.partition("/v1/")[2]


def _joined(chunks: Iterable[bytes]) -> bytes:
    """Return the content of a response, and close the response."""
    try:
        return b"".join(chunks)
    finally:
        close = getattr(chunks, "close", None)
        if close is not None:
            close()


def _document(data: bytes) -> JsonObject:
    if not data:
        return {}
    document = orjson.loads(data)
    return document if isinstance(document, dict) else {}
