"""Requests about the resources of a stack, and about the resource types of the server."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from orchestrator.cli.client.connection import Connection, Query, StackId
from orchestrator.json_types import JsonMapping, JsonObject


class Resources:
    """The resources of the project's stacks."""

    def __init__(self, connection: Connection) -> None:
        """Use `connection`."""
        self._connection = connection

    def list_all(self, stack: StackId, query: Query | None = None) -> list[JsonObject]:
        """Return the resources of a stack."""
        resources: list[JsonObject] = self._connection.request("GET", f"{stack.path}/resources", query)[
            "resources"
        ]
        return resources

    def show(self, stack: StackId, name: str) -> JsonObject:
        """Return a resource with its attributes."""
        answer: JsonObject = self._connection.request("GET", _path(stack, name))["resource"]
        return answer

    def metadata(self, stack: StackId, name: str) -> Any:
        """Return the current metadata of a resource."""
        return self._connection.request("GET", f"{_path(stack, name)}/metadata")["metadata"]

    def signal(self, stack: StackId, name: str, details: JsonMapping | None) -> None:
        """Send a signal to a resource, which is processed after the return."""
        self._connection.request("POST", f"{_path(stack, name)}/signal", body=details)

    def at_hooks(self, stack: StackId) -> list[JsonObject]:
        """Return the resources that wait at a hook."""
        hooks: list[JsonObject] = self._connection.request("GET", f"{stack.path}/hooks")["hooks"]
        return hooks

    def mark_unhealthy(self, stack: StackId, name: str, reason: str | None, *, unhealthy: bool) -> None:
        """Mark a resource for replacement by the next update, or remove the mark."""
        body = {"mark_unhealthy": unhealthy} | ({} if reason is None else {"resource_status_reason": reason})
        self._connection.request("PATCH", _path(stack, name), body=body)


def _path(stack: StackId, name: str) -> str:
    return f"{stack.path}/resources/{quote(name, safe='')}"


class ResourceTypes:
    """The resource types that templates of the project can use."""

    def __init__(self, connection: Connection) -> None:
        """Use `connection`."""
        self._connection = connection

    def list_all(self) -> list[JsonObject]:
        """Return the types with their descriptions."""
        query = {"with_description": "true"}
        found: list[JsonObject] = self._connection.request("GET", "resource_types", query)["resource_types"]
        return found

    def show(self, name: str) -> JsonObject:
        """Return the schema of a type: properties and attributes."""
        path = f"resource_types/{quote(name, safe='')}"
        answer: JsonObject = self._connection.request("GET", path, {"with_description": "true"})
        return answer
