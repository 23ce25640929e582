"""Requests about events, of a stack or of the whole project."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

from orchestrator.cli.client.connection import Connection, StackId, nested_query


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
    ) -> Iterator[dict[str, Any]]:
        """Yield the events after the event with id `after`, oldest first, with `nested` levels of nested
        stacks.
        """
        query: dict[str, str | int | list[str]] = {"sort_dir": "asc", **nested_query(nested)}
        if after:
            query["marker"] = after
        if resource:
            query["resource_name"] = resource
        yield from self._connection.pages(f"{stack.path}/events", "events", query, limit)

    def newest(self, stack: StackId) -> dict[str, Any] | None:
        """Return the latest event of a stack."""
        query: dict[str, str | int | list[str]] = {"sort_dir": "desc", "limit": 1}
        found = self._connection.request("GET", f"{stack.path}/events", query)["events"]
        return found[0] if found else None

    def of_project(self, after: str, nested: int = 0) -> dict[str, Any]:
        """Return the events of all stacks after a sequence, the sequence of the last, and whether there is
        `more`.
        """
        query: dict[str, str | int | list[str]] = {"after": after, **nested_query(nested)}
        answer: dict[str, Any] = self._connection.request("GET", "events", query)
        return answer

    def stream(
        self, stack: StackId | None, after: str, seconds: float | None, nested: int = 0
    ) -> Generator[tuple[str, str, dict[str, Any]]]:
        """Yield the events of a stack (None: of all stacks) after a sequence as they happen.

        See `Connection.stream` for the messages and the errors.
        """
        path = "events" if stack is None else f"{stack.path}/events"
        yield from self._connection.stream(path, {"after": after, **nested_query(nested)}, seconds)
