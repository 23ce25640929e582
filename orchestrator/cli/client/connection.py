"""HTTP to a project of a server; every refusal becomes an `ApiFailure`.

The server answers a request by stack name with 302. The same method and body are then sent to the location in
the answer (docs/internals/rest-api.md §3). After a broken connection only GET requests are repeated: a change
may have been made although its answer was lost.
"""

from __future__ import annotations

import ipaddress
import json
import re
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_exponential, wait_random

from orchestrator.cli.exit_codes import ApiFailure, Failure
from orchestrator.json_types import JsonObject

PAGE_SIZE = 500
MAX_REDIRECTS = 3
READ_TIMEOUT_SECONDS = 300.0  # the validation of a hundred thousand resources precedes the answer
MAX_SILENCE_SECONDS = 40.0  # a stream sends a comment every 15 seconds; later the connection counts as dead
EVENT_STREAM = "text/event-stream"
UNKNOWN_ADDRESS = "The resource could not be found."  # the answer to a path without a route
_GATEWAY_ERRORS = {502, 503, 504}

Query = Mapping[str, str | int | list[str]]


class NoStream(Exception):
    """The server offers no event streams, or has reached its limit of streams."""


class _UnavailableError(Exception):
    """A gateway cannot reach the server at the moment."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__(str(response.status_code))
        self.response = response


@dataclass(frozen=True, slots=True)
class StackId:
    """The name and the id of a stack: together they address it without a lookup."""

    name: str
    id: str

    @property
    def path(self) -> str:
        """The canonical path below the project."""
        return f"stacks/{quote(self.name, safe='')}/{self.id}"


class Connection:
    """The HTTP client and the address of a project."""

    def __init__(
        self,
        url: str,
        project: str,
        token: str | None = None,
        *,
        login: tuple[str, str] | None = None,
        patience_seconds: float = 1.0,
    ) -> None:
        """Authenticate with a token, or with a user name and a password (`login`).

        A request is repeated for `patience_seconds` while the server cannot be reached.
        """
        self.url = url.rstrip("/")
        self.project = project
        self.patience_seconds = patience_seconds
        headers = {"Accept": "application/json"} | ({"X-Auth-Token": token} if token else {})
        self._http = httpx.Client(
            headers=headers,
            auth=login,
            timeout=httpx.Timeout(READ_TIMEOUT_SECONDS, connect=5.0),
            follow_redirects=False,
            trust_env=not _is_loopback(self.url),
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def request(self, method: str, path: str, query: Query | None = None, body: object = None) -> Any:
        """Send a request for a path below the project; return the JSON of the answer.

        Raises:
            ApiFailure: the server refused.
            Failure: the server could not be reached.
        """
        response = self._send(method, self._address(path), dict(query or {}), body)
        for _ in range(MAX_REDIRECTS):
            if response.status_code != httpx.codes.FOUND or "location" not in response.headers:
                break
            response = self._send(method, self._local_address(response.headers["location"]), None, body)
        if response.status_code >= 300:
            request_id = response.headers.get("x-openstack-request-id")
            challenge = response.headers.get("www-authenticate", "")
            failure = ApiFailure(response.status_code, _json(response), request_id, challenge)
            if response.status_code == httpx.codes.NOT_FOUND and failure.message == UNKNOWN_ADDRESS:
                address = response.request.url.copy_with(query=None)
                failure.details = (f"  {address} is not an address of the API; check --url and --project",)
            raise failure
        return _json(response)

    def pages(
        self, path: str, key: str, query: Query, limit: int | None, marker: str = "id"
    ) -> Iterator[JsonObject]:
        """Yield the items of a list, page by page, at most `limit`; `marker` is the field that identifies
        them.
        """
        parameters = dict(query)
        remaining = limit
        while remaining is None or remaining > 0:
            size = PAGE_SIZE if remaining is None else min(PAGE_SIZE, remaining)
            items = self.request("GET", path, {**parameters, "limit": size})[key]
            yield from items
            if len(items) < size:
                return
            remaining = None if remaining is None else remaining - len(items)
            parameters["marker"] = items[-1][marker]

    def stream(
        self, path: str, query: Query, seconds: float | None
    ) -> Generator[tuple[str, str, JsonObject]]:
        """Yield the messages of an event stream: kind, sequence and body; the kind of a comment is "".

        Ends when the server closes the stream, or has been silent for `seconds` or MAX_SILENCE_SECONDS.

        Raises:
            NoStream: the server offers none, or has reached its limit.
            httpx.HTTPError: the connection broke.
        """
        silence = MAX_SILENCE_SECONDS if seconds is None else max(0.05, min(MAX_SILENCE_SECONDS, seconds))
        timeout = httpx.Timeout(silence, connect=5.0)
        headers = {"Accept": f"{EVENT_STREAM}, application/json;q=0.5"}
        request = self._http.stream(
            "GET", self._address(path), params=query, headers=headers, timeout=timeout
        )
        with request as answer:
            if answer.status_code in {502, 504}:
                raise httpx.RemoteProtocolError(f"the gateway answered {answer.status_code}")
            media_type = answer.headers.get("content-type", "").partition(";")[0]
            if answer.status_code != httpx.codes.OK or media_type != EVENT_STREAM:
                raise NoStream
            yield from read_messages(answer.iter_lines())

    def _address(self, path: str) -> str:
        return f"{self.url}/v1/{quote(self.project, safe='')}/{path}"

    def _local_address(self, location: str) -> str:
        """Return `location` at the configured address: a proxy may show another, and the token stays here."""
        parts = urlsplit(location)
        _, separator, rest = parts.path.partition("/v1/")
        if not separator:
            raise Failure(f"the server redirects to {location}, which is not an address of the API")
        return f"{self.url}/v1/{rest}" + (f"?{parts.query}" if parts.query else "")

    def _send(self, method: str, url: str, query: JsonObject | None, body: object) -> httpx.Response:
        def repeatable(error: BaseException) -> bool:
            if isinstance(error, httpx.ConnectError):  # nothing was sent: safe for every method
                return True
            return method == "GET" and isinstance(error, httpx.TransportError | _UnavailableError)

        def attempt() -> httpx.Response:
            response = self._http.request(method, url, params=query, json=body)
            if response.status_code in _GATEWAY_ERRORS:
                raise _UnavailableError(response)
            return response

        attempts = Retrying(
            retry=retry_if_exception(repeatable),
            wait=wait_exponential(multiplier=0.1, max=2) + wait_random(0, 0.1),
            stop=stop_after_delay(self.patience_seconds),
            sleep=time.sleep,
            reraise=True,
        )
        try:
            return attempts(attempt)
        except _UnavailableError as error:
            return error.response
        except httpx.ConnectError as error:
            raise Failure(
                f"cannot reach {self.url}: {_reason(error)}",
                details=["  `orchestrator up` starts a server; --url or ORCHESTRATOR_URL selects a server"],
            ) from error
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise Failure(f"{self.url} is not a URL: {error}") from error
        except httpx.HTTPError as error:
            raise Failure(
                f"{self.url} did not answer {method} {urlsplit(url).path}: {_reason(error)}"
            ) from error


def read_messages(lines: Iterable[str]) -> Iterator[tuple[str, str, JsonObject]]:
    """Yield the messages of a stream of server-sent events; an incomplete message is dropped."""
    event_type, sequence, data = "message", "", list[str]()
    for line in lines:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                yield event_type, sequence, json.loads("\n".join(data))
            event_type, data = "message", []
        elif not name:
            yield "", "", {}
        elif name == "event":
            event_type = value
        elif name == "id":
            sequence = value
        elif name == "data":
            data.append(value)


def nested_query(levels: int) -> dict[str, int]:
    """Return the query that includes `levels` levels of nested stacks."""
    return {"nested_depth": levels} if levels else {}


def _is_loopback(url: str) -> bool:
    """Whether `url` is on this machine: the proxies in the environment are then ignored."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _json(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return None


def _reason(error: Exception) -> str:
    return re.sub(r"^\[Errno -?\d+\] ", "", str(error)) or type(error).__name__
