"""The API as this command line sees it: one method per question, every refusal a `Failure`.

Names are looked up by the server, which answers 302; the same method and body are then repeated at the place
it names (docs/internals/rest-api.md §3). When a connection breaks only questions are asked again: a change
may have been made although its answer was lost.
"""

from __future__ import annotations

import ipaddress
import json
import re
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, quote, urlsplit

import httpx
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_exponential, wait_random

from orchestrator.cli.client.webhooks import Query, WebhookCalls
from orchestrator.cli.exit_codes import ApiFailure, Failure

PAGE = 500
PAGES = 100  # that are turned over in search of something to tell
READ_TIMEOUT_SECONDS = 300.0  # a body of a hundred thousand resources is validated before the answer
_UNAVAILABLE = {502, 503, 504}
EVENT_STREAM = "text/event-stream"
SILENT_SECONDS = 40.0  # a server that says nothing for so long is gone: it says something every 15


class NoStream(Exception):
    """The server tells of events in lists only, or has no room for one more that listens."""


class _UnavailableError(Exception):
    """A gateway says that nobody is behind it just now."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__(str(response.status_code))
        self.response = response


@dataclass(frozen=True, slots=True)
class StackId:
    """A stack's name and id; both are needed to address it without a lookup."""

    name: str
    id: str

    @property
    def path(self) -> str:
        """The canonical path below the project."""
        return f"stacks/{quote(self.name, safe='')}/{self.id}"


class Client(WebhookCalls):
    """A connection to one project of one server."""

    def __init__(
        self,
        url: str,
        project: str,
        token: str | None = None,
        *,
        login: tuple[str, str] | None = None,
        patience_seconds: float = 1.0,
    ) -> None:
        """Remember where to ask, and as whom: with a token, or a name and a password.

        For `patience_seconds` a question is repeated while nobody answers.
        """
        self.url = url.rstrip("/")
        self.project = project
        self.patience_seconds = patience_seconds
        headers = {"Accept": "application/json"} | ({"X-Auth-Token": token} if token else {})
        timeout = httpx.Timeout(READ_TIMEOUT_SECONDS, connect=5.0)
        self._http = httpx.Client(
            headers=headers,
            auth=login,
            timeout=timeout,
            follow_redirects=False,
            trust_env=not _loopback(self.url),
        )

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close its connections."""
        self._http.close()

    # Stacks

    def create(self, body: Mapping[str, Any]) -> StackId:
        """Ask for a stack; it is accepted, not finished, when this returns."""
        answer = self._ask("POST", "stacks", body=body)
        return StackId(str(body["stack_name"]), str(answer["stack"]["id"]))

    def update(self, stack: StackId, body: Mapping[str, Any], *, existing: bool = False) -> None:
        """Ask for another template; `existing` keeps what the body leaves out."""
        self._ask("PATCH" if existing else "PUT", stack.path, body=body)

    def act(self, stack: StackId, action: str) -> None:
        """Ask for an action, one of Heat's names."""
        self._ask("POST", f"{stack.path}/actions", body={action: None})

    def preview_create(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the stack that a create would make."""
        answer: dict[str, Any] = self._ask("POST", "stacks/preview", body=body)["stack"]
        return answer

    def preview_update(
        self, stack: StackId, body: Mapping[str, Any], *, existing: bool = False
    ) -> dict[str, list[dict[str, Any]]]:
        """Return what an update would do, resource by resource, in five lists."""
        place, method = f"{stack.path}/preview", "PATCH" if existing else "PUT"
        query = {"show_nested": "true"}
        answer: dict[str, Any] = self._ask(method, place, query, body)["resource_changes"]
        # Heat's clients find every resource that stands for a stack among the updated.
        updated = answer["updated"]
        answer["updated"] = [one for one in updated if not one.get("unchanged")]
        answer["unchanged"] += [one for one in updated if one.get("unchanged")]
        return answer

    def validate(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the server makes of a template, without making anything; its warnings too."""
        query = {"with_warnings": "true"}
        answer: dict[str, Any] = self._ask("POST", "validate", query, body)
        return answer

    def stacks(self, query: Query, limit: int | None = None) -> Iterator[dict[str, Any]]:
        """Yield stacks, at most `limit`, newest first."""
        yield from self._pages("stacks", "stacks", query, limit)

    def find(self, name: str) -> StackId:
        """Return the identity of the stack called `name`, or with that id (a deleted one, too)."""
        stack = self.show(name, outputs=False)
        return StackId(stack["stack_name"], stack["id"])

    def show(self, stack: str | StackId, *, outputs: bool = True) -> dict[str, Any]:
        """Return the stack; without its outputs nothing has to be resolved."""
        query = {} if outputs else {"resolve_outputs": "false"}
        answer: dict[str, Any] = self._ask("GET", _place(stack), query)["stack"]
        return answer

    def delete(self, stack: str | StackId) -> None:
        """Ask for the stack's deletion."""
        self._ask("DELETE", _place(stack))

    def template(self, stack: StackId) -> Any:
        """Return the template in force."""
        return self._ask("GET", f"{stack.path}/template")

    def outputs(self, stack: StackId) -> list[dict[str, Any]]:
        """Return the outputs with their values."""
        return list(self.show(stack).get("outputs") or [])

    def output(self, stack: StackId, key: str) -> dict[str, Any]:
        """Return one output with its value."""
        answer: dict[str, Any] = self._ask("GET", f"{stack.path}/outputs/{quote(key, safe='')}")["output"]
        return answer

    # What became of a stack

    def revisions(self, stack: StackId, limit: int | None = None) -> Iterator[dict[str, Any]]:
        """Yield the stack's revisions, at most `limit`, the newest first."""
        yield from self._pages(f"{stack.path}/revisions", "revisions", {}, limit, "number")

    def revision(self, stack: StackId, number: int) -> dict[str, Any]:
        """Return one revision and what it did."""
        answer: dict[str, Any] = self._ask("GET", f"{stack.path}/revisions/{number}")["revision"]
        return answer

    def diff(self, stack: StackId, before: int, after: int) -> dict[str, Any]:
        """Return what differs between two revisions."""
        answer: dict[str, Any] = self._ask("GET", f"{stack.path}/revisions/{before}/diff/{after}")["diff"]
        return answer

    def rollback(self, stack: StackId, number: int) -> None:
        """Ask for the stack to be brought back to a revision."""
        self._ask("POST", f"{stack.path}/revisions/{number}/rollback")

    def failures(
        self, stack: StackId, revision: int | None = None, limit: int | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield every cause why the stack, or a revision, failed."""
        query: dict[str, str | int | list[str]] = {} if revision is None else {"revision": revision}
        yield from self._pages(f"{stack.path}/failures", "failures", query, limit)

    def failure_tree(self, stack: StackId, revision: int | None, depth: int) -> dict[str, Any]:
        """Return every cause why the stack, or a revision, failed, with those in nested stacks below them."""
        query: dict[str, str | int | list[str]] = {"nested_depth": depth}
        if revision is not None:
            query["revision"] = revision
        answer: dict[str, Any] = self._ask("GET", f"{stack.path}/failures", query)
        return answer

    # How it is getting on

    def why(self, stack: StackId, resource: str | None, limit: int) -> tuple[dict[str, Any], bool]:
        """Return what a stack or one of its resources waits for, and whether there is more than `limit`."""
        if resource is not None:
            told: dict[str, Any] = self._ask("GET", f"{stack.path}/resources/{quote(resource, safe='')}/why")[
                "why"
            ]
            return told, False
        told, waiting = {}, list[dict[str, Any]]()
        query: dict[str, str | int | list[str]] = {}
        for _ in range(PAGES):  # one may come back empty, and name the next
            answer = self._ask("GET", f"{stack.path}/why", {**query, "limit": limit - len(waiting)})
            told = told or answer["why"]
            waiting += answer["why"]["waiting"]
            links = answer.get("links") or []
            if not links or len(waiting) >= limit:
                return {**told, "waiting": waiting}, bool(links)
            query["marker"] = parse_qs(urlsplit(links[0]["href"]).query)["marker"]
        return {**told, "waiting": waiting}, True

    def progress(self, stack: StackId) -> dict[str, Any]:
        """Return how far a stack's action is."""
        answer: dict[str, Any] = self._ask("GET", f"{stack.path}/progress")["progress"]
        return answer

    # A stack as it once was, and as a document

    def take_snapshot(self, stack: StackId, name: str | None) -> dict[str, Any]:
        """Ask for a snapshot; it is begun, not finished, when this returns."""
        body = {} if name is None else {"name": name}
        answer: dict[str, Any] = self._ask("POST", f"{stack.path}/snapshots", body=body)
        return answer

    def snapshots(self, stack: StackId) -> list[dict[str, Any]]:
        """Return the stack's snapshots, the oldest first."""
        return list(self._ask("GET", f"{stack.path}/snapshots")["snapshots"])

    def snapshot(self, stack: StackId, snapshot_id: str) -> dict[str, Any]:
        """Return one snapshot."""
        answer: dict[str, Any] = self._ask("GET", _snapshot(stack, snapshot_id))["snapshot"]
        return answer

    def delete_snapshot(self, stack: StackId, snapshot_id: str) -> None:
        """Ask for the removal of a snapshot."""
        self._ask("DELETE", _snapshot(stack, snapshot_id))

    def restore(self, stack: StackId, snapshot_id: str) -> None:
        """Ask for the stack to be brought back to a snapshot."""
        self._ask("POST", f"{_snapshot(stack, snapshot_id)}/restore")

    def export(self, stack: StackId) -> dict[str, Any]:
        """Return the stack as a document."""
        answer: dict[str, Any] = self._ask("GET", f"{stack.path}/export")
        return answer

    def abandon(self, stack: StackId) -> dict[str, Any]:
        """Ask for the stack to be let go of; return it as a document."""
        answer: dict[str, Any] = self._ask("DELETE", f"{stack.path}/abandon")
        return answer

    # What is in a stack, and what happened to it

    def resources(self, stack: StackId, query: Query | None = None) -> list[dict[str, Any]]:
        """Return the stack's resources."""
        return list(self._ask("GET", f"{stack.path}/resources", query or {})["resources"])

    def events(
        self,
        stack: StackId,
        *,
        after: str | None = None,
        resource: str | None = None,
        limit: int | None = None,
        nested: int = 0,
    ) -> Iterator[dict[str, Any]]:
        """Yield the events after the one with id `after`, oldest first; of so many nested levels too."""
        query: dict[str, str | int | list[str]] = {"sort_dir": "asc", **_levels(nested)}
        if after:
            query["marker"] = after
        if resource:
            query["resource_name"] = resource
        yield from self._pages(f"{stack.path}/events", "events", query, limit)

    def newest_event(self, stack: StackId) -> dict[str, Any] | None:
        """Return the latest event, from which a follower starts."""
        found = self._ask("GET", f"{stack.path}/events", {"sort_dir": "desc", "limit": 1})["events"]
        return found[0] if found else None

    def project_events(self, after: str, nested: int = 0) -> dict[str, Any]:
        """Return what comes after a sequence in all stacks of the project, where that ends, and whether
        there is `more`.
        """
        answer: dict[str, Any] = self._ask("GET", "events", {"after": after, **_levels(nested)})
        return answer

    def stream(
        self, stack: StackId | None, after: str, seconds: float | None, nested: int = 0
    ) -> Generator[tuple[str, str, dict[str, Any]]]:
        """Yield what a stack tells after a sequence, as it happens: its kind, where it stands, and what;
        without a stack what all of the project's tell.

        Comments are of the kind "" and say that somebody is there. It ends when the server says so, or has
        said nothing for `seconds`, and for a little longer than it is ever silent.

        Raises:
            NoStream: the server has none, or no room.
            httpx.HTTPError: it was cut.
        """
        place = "events" if stack is None else f"{stack.path}/events"
        url = f"{self.url}/v1/{quote(self.project, safe='')}/{place}"
        silent = SILENT_SECONDS if seconds is None else max(0.05, min(SILENT_SECONDS, seconds))
        timeout = httpx.Timeout(silent, connect=5.0)
        headers = {"Accept": f"{EVENT_STREAM}, application/json;q=0.5"}
        asked: Query = {"after": after, **_levels(nested)}
        with self._http.stream("GET", url, params=asked, headers=headers, timeout=timeout) as answer:
            if answer.status_code in {502, 504}:
                raise httpx.RemoteProtocolError(f"the gateway answered {answer.status_code}")
            kind = answer.headers.get("content-type", "").partition(";")[0]
            if answer.status_code != httpx.codes.OK or kind != EVENT_STREAM:
                raise NoStream
            yield from _messages(answer.iter_lines())

    # What is sent to one resource

    def signal(self, stack: StackId, resource: str, details: Mapping[str, Any] | None) -> None:
        """Send a resource a signal; it is taken in after this returns."""
        self._ask("POST", f"{_resource(stack, resource)}/signal", body=details)

    def waiting(self, stack: StackId) -> list[dict[str, Any]]:
        """Return the resources that wait at a hook."""
        return list(self._ask("GET", f"{stack.path}/hooks")["hooks"])

    def mark_unhealthy(self, stack: StackId, resource: str, reason: str | None, *, unhealthy: bool) -> None:
        """Mark a resource to be replaced by the next update, or unmark it."""
        body = {"mark_unhealthy": unhealthy} | ({} if reason is None else {"resource_status_reason": reason})
        self._ask("PATCH", _resource(stack, resource), body=body)

    def metadata(self, stack: StackId, resource: str) -> Any:
        """Return a resource's metadata as it is now."""
        return self._ask("GET", f"{_resource(stack, resource)}/metadata")["metadata"]

    # Asking

    def _pages(
        self, path: str, key: str, query: Query, limit: int | None, marker: str = "id"
    ) -> Iterator[dict[str, Any]]:
        asked = dict(query)
        left = limit
        while left is None or left > 0:
            size = PAGE if left is None else min(PAGE, left)
            items = self._ask("GET", path, {**asked, "limit": size})[key]
            yield from items
            if len(items) < size:
                return
            left = None if left is None else left - len(items)
            asked["marker"] = items[-1][marker]

    def _ask(self, method: str, path: str, query: Query | None = None, body: object = None) -> Any:
        url = f"{self.url}/v1/{quote(self.project, safe='')}/{path}"
        response = self._send(method, url, dict(query or {}), body)
        for _ in range(3):
            if response.status_code != httpx.codes.FOUND or "location" not in response.headers:
                break
            response = self._send(method, self._here(response.headers["location"]), None, body)
        if response.status_code >= 300:
            raise ApiFailure(
                response.status_code, _json(response), response.headers.get("x-openstack-request-id")
            )
        return _json(response)

    def _here(self, location: str) -> str:
        """Return `location` at the address we were given: a proxy may show another; the token stays."""
        parts = urlsplit(location)
        _, found, rest = parts.path.partition("/v1/")
        if not found:
            raise Failure(f"the server sent us to {location}, which is no address of its API")
        return f"{self.url}/v1/{rest}" + (f"?{parts.query}" if parts.query else "")

    def _send(self, method: str, url: str, query: dict[str, Any] | None, body: object) -> httpx.Response:
        def again(error: BaseException) -> bool:
            if isinstance(error, httpx.ConnectError):  # nothing was sent: safe for every method
                return True
            return method == "GET" and isinstance(error, httpx.TransportError | _UnavailableError)

        def once() -> httpx.Response:
            response = self._http.request(method, url, params=query, json=body)
            if response.status_code in _UNAVAILABLE:
                raise _UnavailableError(response)
            return response

        attempts = Retrying(
            retry=retry_if_exception(again),
            wait=wait_exponential(multiplier=0.1, max=2) + wait_random(0, 0.1),
            stop=stop_after_delay(self.patience_seconds),
            sleep=time.sleep,
            reraise=True,
        )
        try:
            return attempts(once)
        except _UnavailableError as error:
            return error.response
        except httpx.ConnectError as error:
            raise Failure(
                f"cannot reach {self.url}: {_reason(error)}",
                details=[
                    "  is it running? `orchestrator up` starts one; --url or ORCHESTRATOR_URL names another"
                ],
            ) from error
        except httpx.InvalidURL as error:
            raise Failure(f"{self.url} is not a URL: {error}") from error
        except httpx.HTTPError as error:
            raise Failure(
                f"{self.url} did not answer {method} {urlsplit(url).path}: {_reason(error)}"
            ) from error


def _messages(lines: Iterable[str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the messages of a stream of server-sent events; one that was cut in the middle is none."""
    kind, place, data = "message", "", list[str]()
    for line in lines:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                yield kind, place, json.loads("\n".join(data))
            kind, data = "message", []
        elif not name:
            yield "", "", {}
        elif name == "event":
            kind = value
        elif name == "id":
            place = value
        elif name == "data":
            data.append(value)


def _loopback(url: str) -> bool:
    """Whether `url` is on this machine, which no proxy of the environment reaches."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _place(stack: str | StackId) -> str:
    return stack.path if isinstance(stack, StackId) else f"stacks/{quote(stack, safe='')}"


def _resource(stack: StackId, name: str) -> str:
    return f"{stack.path}/resources/{quote(name, safe='')}"


def _levels(nested: int) -> dict[str, int]:
    return {"nested_depth": nested} if nested else {}


def _snapshot(stack: StackId, snapshot_id: str) -> str:
    return f"{stack.path}/snapshots/{quote(snapshot_id, safe='')}"


def _json(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return None


def _reason(error: Exception) -> str:
    return re.sub(r"^\[Errno -?\d+\] ", "", str(error)) or type(error).__name__
