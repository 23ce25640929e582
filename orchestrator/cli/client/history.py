"""Requests about the earlier states of a stack: its revisions and snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from orchestrator.cli.client.connection import Connection, StackId
from orchestrator.json_types import JsonObject


class Revisions:
    """The revisions of the project's stacks."""

    def __init__(self, connection: Connection) -> None:
        """Use `connection`."""
        self._connection = connection

    def list_all(self, stack: StackId, limit: int | None = None) -> Iterator[JsonObject]:
        """Yield the revisions of a stack, at most `limit`, newest first."""
        yield from self._connection.pages(f"{stack.path}/revisions", "revisions", {}, limit, "number")

    def show(self, stack: StackId, number: int) -> JsonObject:
        """Return a revision and its result."""
        answer: JsonObject = self._connection.request("GET", f"{stack.path}/revisions/{number}")["revision"]
        return answer

    def diff(self, stack: StackId, before: int, after: int) -> JsonObject:
        """Return the differences between two revisions."""
        path = f"{stack.path}/revisions/{before}/diff/{after}"
        answer: JsonObject = self._connection.request("GET", path)["diff"]
        return answer

    def roll_back(self, stack: StackId, number: int) -> None:
        """Request a rollback to a revision."""
        self._connection.request("POST", f"{stack.path}/revisions/{number}/rollback")


class Snapshots:
    """The snapshots of the project's stacks."""

    def __init__(self, connection: Connection) -> None:
        """Use `connection`."""
        self._connection = connection

    def create(self, stack: StackId, name: str | None, *, queue: bool = False) -> JsonObject:
        """Request a snapshot, taken after the return; with `queue` after the running operation."""
        query = {"wait": "true"} if queue else None
        body = {} if name is None else {"name": name}
        answer: JsonObject = self._connection.request("POST", f"{stack.path}/snapshots", query, body)
        return answer

    def list_all(self, stack: StackId) -> list[JsonObject]:
        """Return the snapshots of a stack, oldest first."""
        found: list[JsonObject] = self._connection.request("GET", f"{stack.path}/snapshots")["snapshots"]
        return found

    def show(self, stack: StackId, snapshot_id: str) -> JsonObject:
        """Return a snapshot."""
        answer: JsonObject = self._connection.request("GET", _path(stack, snapshot_id))["snapshot"]
        return answer

    def delete(self, stack: StackId, snapshot_id: str) -> None:
        """Request the deletion of a snapshot."""
        self._connection.request("DELETE", _path(stack, snapshot_id))

    def restore(self, stack: StackId, snapshot_id: str) -> None:
        """Request the restoration of a stack from a snapshot."""
        self._connection.request("POST", f"{_path(stack, snapshot_id)}/restore")


def _path(stack: StackId, snapshot_id: str) -> str:
    return f"{stack.path}/snapshots/{quote(snapshot_id, safe='')}"
