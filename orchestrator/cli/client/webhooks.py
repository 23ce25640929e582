"""Requests about the webhooks of the project."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from orchestrator.cli.client.connection import Connection, Query


class Webhooks:
    """The webhooks of the project."""

    def __init__(self, connection: Connection) -> None:
        """Use `connection`."""
        self._connection = connection

    def list_all(self, query: Query) -> list[dict[str, Any]]:
        """Return the webhooks."""
        found: list[dict[str, Any]] = self._connection.request("GET", "webhooks", query)["webhooks"]
        return found

    def create(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create a webhook; the answer contains its secret."""
        answer: dict[str, Any] = self._connection.request("POST", "webhooks", body=body)["webhook"]
        return answer

    def show(self, id_: str) -> dict[str, Any]:
        """Return a webhook."""
        answer: dict[str, Any] = self._connection.request("GET", _path(id_))["webhook"]
        return answer

    def delete(self, id_: str) -> None:
        """Delete a webhook."""
        self._connection.request("DELETE", _path(id_))

    def test(self, id_: str) -> dict[str, Any]:
        """Deliver a test message; return the result of the delivery."""
        answer: dict[str, Any] = self._connection.request("POST", f"{_path(id_)}/test")["test"]
        return answer

    def rearm(self, id_: str, after: str | None) -> dict[str, Any]:
        """Resume the deliveries of a webhook."""
        body = {"after": after} if after else {}
        answer: dict[str, Any] = self._connection.request("POST", f"{_path(id_)}/rearm", body=body)["webhook"]
        return answer


def _path(id_: str) -> str:
    return f"webhooks/{quote(id_, safe='')}"
