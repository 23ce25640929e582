"""Requests about the revisions of a stack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orchestrator.cli.client.connection import Connection, StackId


class Revisions:
    """The revisions of the project's stacks."""

    def __init__(self, connection: Connection) -> None:
        """Use `connection`."""
        self._connection = connection

    def list_all(self, stack: StackId, limit: int | None = None) -> Iterator[dict[str, Any]]:
        """Yield the revisions of a stack, at most `limit`, newest first."""
        yield from self._connection.pages(f"{stack.path}/revisions", "revisions", {}, limit, "number")

    def show(self, stack: StackId, number: int) -> dict[str, Any]:
        """Return a revision and its result."""
        answer: dict[str, Any] = self._connection.request("GET", f"{stack.path}/revisions/{number}")[
            "revision"
        ]
        return answer

    def diff(self, stack: StackId, before: int, after: int) -> dict[str, Any]:
        """Return the differences between two revisions."""
        path = f"{stack.path}/revisions/{before}/diff/{after}"
        answer: dict[str, Any] = self._connection.request("GET", path)["diff"]
        return answer

    def roll_back(self, stack: StackId, number: int) -> None:
        """Request a rollback to a revision."""
        self._connection.request("POST", f"{stack.path}/revisions/{number}/rollback")
