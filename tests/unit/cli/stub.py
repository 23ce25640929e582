"""A server that speaks just enough of docs/internals/rest-api.md for the command line's tests, and remembers.

It plays back: every request for a stack's events reveals the next events, so that no test waits for a clock.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

GENERIC = {"explanation": "generic", "title": "x"}


@dataclass
class Stack:
    """A stack, and its future events."""

    name: str
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    status: str = "CREATE_IN_PROGRESS"
    reason: str = "Stack CREATE started"
    events: list[dict[str, Any]] = field(default_factory=list)
    coming: list[tuple[str, str, str]] = field(
        default_factory=list
    )  # resource ("" = the stack), status, reason
    on_update: list[tuple[str, str, str]] = field(default_factory=list)
    on_delete: list[tuple[str, str, str]] = field(default_factory=list)
    on_act: list[tuple[str, str, str]] = field(default_factory=list)
    resources: list[dict[str, Any]] = field(default_factory=list)
    outputs: list[dict[str, Any]] = field(default_factory=list)
    snapshots: list[dict[str, Any]] = field(default_factory=list)
    template: Any = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=lambda: {"size": "4"})
    answers: dict[str, Any] = field(default_factory=dict)  # path below the stack -> answer
    on_post: dict[str, list[tuple[str, str, str]]] = field(default_factory=dict)
    changes: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # reported by a preview
    why: list[dict[str, Any]] = field(default_factory=list)  # the answers, in order
    progress: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.coming = list(self.coming)

    def happen(self, name: str, status: str, reason: str) -> None:
        """Record an event."""
        physical = self.id if not name else f"{name}-id"
        self.events.append(
            {
                "id": str(uuid.UUID(int=len(self.events) + 1)),
                "event_time": f"2026-01-31T12:00:{len(self.events) % 60:02}Z",
                "resource_name": name or self.name,
                "physical_resource_id": physical,
                "resource_status": status,
                "resource_status_reason": reason,
            }
        )
        if not name:
            self.status, self.reason = status, reason

    def reveal(self, count: int = 2) -> None:
        """Let the next things happen."""
        for step in self.coming[:count]:
            self.happen(*step)
        del self.coming[:count]

    def shown(self, outputs: bool = True) -> dict[str, Any]:
        """Return the stack as the API shows it."""
        return {
            "id": self.id,
            "stack_name": self.name,
            "stack_status": self.status,
            "stack_status_reason": self.reason,
            "description": "a stack",
            "creation_time": "2026-01-31T12:00:00Z",
            "updated_time": None,
            "deletion_time": None,
            "tags": [],
            "parameters": {"OS::stack_id": self.id, **self.parameters},
            **({"progress": self.progress} if self.progress else {}),
        } | ({"outputs": self.outputs} if outputs else {})


class Stub:
    """The server's state, for a test to arrange and to look at."""

    def __init__(self) -> None:
        self.stacks: list[Stack] = []
        self.requests: list[tuple[str, str, dict[str, list[str]], dict[str, str], Any]] = []
        self.next_create: dict[str, Any] = {}
        self.refusal: tuple[int, Any] | None = None
        self.validation: dict[str, Any] = {}  # additional keys of the answer to validation
        self.warnings: dict[str, Any] = {}  # additional keys of the answers to creates, updates and previews
        self.challenge = ""  # the scheme of authentication that a refusal names
        self.preview: dict[str, Any] = {}  # the stack that a create would make
        self.answers: dict[str, Any] = {}  # "POST webhooks" and the like -> answer, or a list of answers
        self.breaks = 0  # so many requests are cut off unanswered
        self.shown_host = ""  # the address that a proxy puts into Location
        self.url = ""

    def add(self, name: str, **options: Any) -> Stack:
        """Put a stack there."""
        stack = Stack(name, **options)
        self.stacks.append(stack)
        return stack

    def requests_of(self, method: str) -> list[str]:
        """Return the paths asked for with `method`, queries apart."""
        return [path for item, path, *_ in self.requests if item == method]

    def answer(
        self, method: str, path: str, query: dict[str, list[str]], body: Any
    ) -> tuple[int, Any, dict[str, str]]:
        """Answer a request."""
        if self.refusal:
            challenge = {"WWW-Authenticate": self.challenge} if self.challenge else {}
            return *self.refusal, {"x-openstack-request-id": "req-1", **challenge}
        requests = f"{method} {path.split('/', 3)[-1]}"
        if requests in self.answers:
            result = self.answers[requests]
            return (
                (204 if method == "DELETE" else 200),
                result.pop(0) if isinstance(result, list) else result,
                {},
            )
        match [part for part in path.split("/") if part][2:]:
            case ["validate"]:
                parameters = {"size": {"Type": "Number", "Default": 4}}
                return 200, {"Description": "fine", "Parameters": parameters, **self.validation}, {}
            case ["stacks", "preview"]:
                return 200, {"stack": self.preview, **self.warnings}, {}
            case ["stacks"] if method == "POST":
                stack = self.add(body["stack_name"], **self.next_create)
                return 201, {"stack": {"id": stack.id, "links": []}, **self.warnings}, {}
            case ["stacks"]:
                return 200, {"stacks": _page([s.shown(False) for s in self.stacks], query)}, {}
            case ["stacks", name]:
                result = next((s for s in self.stacks if name in {s.name, s.id}), None)
                if result is None:
                    return 404, _fault(f"The Stack ({name}) could not be found."), {}
                host = self.shown_host or self.url
                return (
                    302,
                    None,
                    {"Location": f"{host}/v1/demo/stacks/{result.name}/{result.id}" + _again(query)},
                )
            case ["stacks", _name, key, *rest]:
                return self._inside(next(s for s in self.stacks if s.id == key), rest, method, query)
        return 404, {"message": "no such path", "code": "404 Not Found", "title": "Not Found"}, {}

    def _inside(
        self, stack: Stack, rest: list[str], method: str, query: dict[str, list[str]]
    ) -> tuple[int, Any, dict[str, str]]:
        match rest:
            case [] if method in {"PUT", "PATCH"}:
                stack.coming = list(stack.on_update)
                stack.happen("", "UPDATE_IN_PROGRESS", "Stack UPDATE started")
                return 202, self.warnings or None, {}
            case ["preview"]:
                return 200, {"resource_changes": stack.changes, **self.warnings}, {}
            case [] if method == "DELETE":
                stack.coming = list(stack.on_delete)
                stack.happen("", "DELETE_IN_PROGRESS", "Stack DELETE started")
                return 204, None, {}
            case ["actions"]:
                stack.coming = list(stack.on_act)
                return 200, None, {}
            case []:
                return 200, {"stack": stack.shown("resolve_outputs" not in query)}, {}
            case ["events"]:
                stack.reveal()
                events = stack.events if query.get("sort_dir") == ["asc"] else stack.events[::-1]
                return 200, {"events": _page(events, query)}, {}
            case ["resources"]:
                expected = query.get("status")
                return (
                    200,
                    {"resources": [r for r in stack.resources if not expected or _is(r, expected)]},
                    {},
                )
            case ["outputs"]:
                masked = [o | ({"output_value": "******"} if o.get("secret") else {}) for o in stack.outputs]
                return 200, {"outputs": masked}, {}
            case ["outputs", key]:
                result = next((o for o in stack.outputs if o["output_key"] == key), None)
                if result is None:
                    return 404, _fault(f"Specified output key {key} not found."), {}
                return 200, {"output": result}, {}
            case ["snapshots"] if method == "POST":
                stack.coming = list(stack.on_act)
                return 200, {"id": "n1", "name": "first"}, {}
            case ["snapshots"]:
                return 200, {"snapshots": stack.snapshots}, {}
            case ["snapshots", _] if method == "DELETE":
                return 204, None, {}
            case ["snapshots", key]:
                return (
                    200,
                    {"snapshot": next(snapshot for snapshot in stack.snapshots if snapshot["id"] == key)},
                    {},
                )
            case ["snapshots", _, "restore"]:
                stack.coming = list(stack.on_act)
                return 202, None, {}
            case ["export" | "abandon"]:
                return 200, {"name": stack.name, "resources": {}}, {}
            case ["template"]:
                return 200, stack.template, {}
            case path if method == "POST" and "/".join(path) in stack.on_post:
                first, *stack.coming = stack.on_post["/".join(path)]
                stack.happen(*first)
                return 202, None, {}
            case path if "/".join(path) in stack.answers:
                return 200, stack.answers["/".join(path)], {}
            case ["why"]:
                return 200, stack.why.pop(0), {}
            case ["resources", _, "why"]:
                return 200, stack.why[0], {}
            case ["progress"]:
                few = {"total": len(stack.resources), "counted_at": "2026-01-31T12:00:00Z"}
                return 200, {"progress": stack.progress or few}, {}
        raise AssertionError(rest)


@contextmanager
def serving() -> Iterator[Stub]:
    """Serve a stub on a free loopback port."""
    stub = Stub()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            """Say nothing."""

        def _serve(self) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            query = parse_qs(parts.query)
            stub.requests.append((self.command, parts.path, query, dict(self.headers), body))
            if stub.breaks:
                stub.breaks -= 1
                self.close_connection = True
                return
            status, answer, headers = stub.answer(self.command, parts.path, query, body)
            data = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in {
                "Content-Type": "application/json",
                "Content-Length": str(len(data)),
                **headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 -- the names http.server calls

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    stub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _page(items: Sequence[dict[str, Any]], query: dict[str, list[str]]) -> list[dict[str, Any]]:
    marker, limit = query.get("marker"), query.get("limit")
    start = next((i + 1 for i, item in enumerate(items) if marker and item["id"] == marker[0]), 0)
    return list(items[start : start + int(limit[0])] if limit else items[start:])


def _fault(message: str) -> dict[str, Any]:
    return GENERIC | {"error": {"type": "EntityNotFound", "message": message, "traceback": None}}


def _again(query: dict[str, list[str]]) -> str:
    return (
        "?" + "&".join(f"{key}={value}" for key, values in query.items() for value in values) if query else ""
    )


def _is(resource: dict[str, Any], statuses: list[str]) -> bool:
    return any(resource["resource_status"].endswith(status) for status in statuses)
