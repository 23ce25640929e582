"""Requests about events, of a stack or of the whole project, and about the webhooks that receive them."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from urllib.parse import quote

from orchestrator.cli.client.connection import Connection, Query, StackId, nested_query
from orchestrator.json_types import JsonMapping, JsonObject


class Events:
    """The events of the project."""

    def __init__(self, connection: Connection) -> None:
        """Use `connection`."""
        self._connection = connection

    def list_all(
        self,
        stack: StackId,
        *,
        after: str | None = None,
        resource: str | None = None,
        limit: int | None = None,
        nested: int = 0,
    ) -> Iterator[JsonObject]:
        """Yield the events after the event with id `after`, oldest first, with `nested` levels of nested
        stacks.
        """
        query: dict[str, str | int | list[str]] = {"sort_dir": "asc", **nested_query(nested)}
        if after:
            query["marker"] = after
        if resource:
            query["resource_name"] = resource
        yield from self._connection.pages(f"{stack.path}/events", "events", query, limit)

    def newest(self, stack: StackId) -> JsonObject | None:
        """Return the latest event of a stack."""
        query: dict[str, str | int | list[str]] = {"sort_dir": "desc", "limit": 1}
        events = self._connection.request("GET", f"{stack.path}/events", query)["events"]
        return events[0] if events else None

    def of_project(self, after: str, nested: int = 0) -> JsonObject:
        """Return the events of all stacks after a sequence, the sequence of the last, and whether there is
        `more`.
        """
        query: dict[str, str | int | list[str]] = {"after": after, **nested_query(nested)}
        answer: JsonObject = self._connection.request("GET", "events", query)
        return answer

    def stream(
        self, stack: StackId | None, after: str, seconds: float | None, nested: int = 0
    ) -> Generator[tuple[str, str, JsonObject]]:
        """Yield the events of a stack (None: of all stacks) after a sequence as they happen.

        See `Connection.stream` for the messages and the errors.
        """
        path = "events" if stack is None else f"{stack.path}/events"
        yield from self._connection.stream(path, {"after": after, **nested_query(nested)}, seconds)


class Webhooks:
    """The webhooks of the project."""

    def __init__(self, connection: Connection) -> None:
        """Use `connection`."""
        self._connection = connection

    def list_all(self, query: Query) -> list[JsonObject]:
        """Return the webhooks."""
        found: list[JsonObject] = self._connection.request("GET", "webhooks", query)["webhooks"]
        return found

    def create(self, body: JsonMapping) -> JsonObject:
        """Create a webhook; the answer contains its secret."""
        answer: JsonObject = self._connection.request("POST", "webhooks", body=body)["webhook"]
        return answer

    def show(self, id_: str) -> JsonObject:
        """Return a webhook."""
        answer: JsonObject = self._connection.request("GET", _path(id_))["webhook"]
        return answer

    def delete(self, id_: str) -> None:
        """Delete a webhook."""
        self._connection.request("DELETE", _path(id_))

    def test(self, id_: str) -> JsonObject:
        """Deliver a test message; return the result of the delivery."""
        answer: JsonObject = self._connection.request("POST", f"{_path(id_)}/test")["test"]
        return answer

    def rearm(self, id_: str, after: str | None) -> JsonObject:
        """Resume the deliveries of a webhook."""
        body = {"after": after} if after else {}
        answer: JsonObject = self._connection.request("POST", f"{_path(id_)}/rearm", body=body)["webhook"]
        return answer


def _path(id_: str) -> str:
    return f"webhooks/{quote(id_, safe='')}"
