"""Requests about the snapshots of a stack."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from orchestrator.cli.client.connection import Connection, StackId


class Snapshots:
    """The snapshots of the project's stacks."""

    def __init__(self, connection: Connection) -> None:
        """Use `connection`."""
        self._connection = connection

    def create(self, stack: StackId, name: str | None) -> dict[str, Any]:
        """Request a snapshot, which is taken after the return."""
        body = {} if name is None else {"name": name}
        answer: dict[str, Any] = self._connection.request("POST", f"{stack.path}/snapshots", body=body)
        return answer

    def list_all(self, stack: StackId) -> list[dict[str, Any]]:
        """Return the snapshots of a stack, oldest first."""
        found: list[dict[str, Any]] = self._connection.request("GET", f"{stack.path}/snapshots")["snapshots"]
        return found

    def show(self, stack: StackId, snapshot_id: str) -> dict[str, Any]:
        """Return a snapshot."""
        answer: dict[str, Any] = self._connection.request("GET", _path(stack, snapshot_id))["snapshot"]
        return answer

    def delete(self, stack: StackId, snapshot_id: str) -> None:
        """Request the deletion of a snapshot."""
        self._connection.request("DELETE", _path(stack, snapshot_id))

    def restore(self, stack: StackId, snapshot_id: str) -> None:
        """Request the restoration of a stack from a snapshot."""
        self._connection.request("POST", f"{_path(stack, snapshot_id)}/restore")


def _path(stack: StackId, snapshot_id: str) -> str:
    return f"{stack.path}/snapshots/{quote(snapshot_id, safe='')}"
