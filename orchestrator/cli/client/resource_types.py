"""Requests about the resource types of the server."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from orchestrator.cli.client.connection import Connection


class ResourceTypes:
    """The resource types that templates of the project can use."""

    def __init__(self, connection: Connection) -> None:
        """Use `connection`."""
        self._connection = connection

    def list_all(self) -> list[dict[str, Any]]:
        """Return the types with their descriptions."""
        query = {"with_description": "true"}
        found: list[dict[str, Any]] = self._connection.request("GET", "resource_types", query)[
            "resource_types"
        ]
        return found

    def show(self, name: str) -> dict[str, Any]:
        """Return the schema of a type: properties and attributes."""
        path = f"resource_types/{quote(name, safe='')}"
        answer: dict[str, Any] = self._connection.request("GET", path, {"with_description": "true"})
        return answer
