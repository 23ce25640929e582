"""Requests about policies, pauses and accepted differences of the observation, and about repairs."""

from __future__ import annotations

from urllib.parse import quote

from orchestrator.cli.client.connection import Connection, Query
from orchestrator.json_types import JsonMapping, JsonObject

PATH = "observation_policies"


class ObservationPolicies:
    """The policies, pauses and acceptances of the project."""

    def __init__(self, connection: Connection) -> None:
        """Use `connection`."""
        self._connection = connection

    def list_all(self, query: Query) -> list[JsonObject]:
        """Return the rules."""
        found: list[JsonObject] = self._connection.request("GET", PATH, query)[PATH]
        return found

    def create(self, body: JsonMapping) -> JsonObject:
        """Create a rule."""
        answer: JsonObject = self._connection.request("POST", PATH, body=body)["observation_policy"]
        return answer

    def effective(self, stack: str, resource: str | None) -> JsonObject:
        """Return what applies to a stack or a resource."""
        query = {"stack": stack} | ({"resource": resource} if resource else {})
        answer: JsonObject = self._connection.request("GET", f"{PATH}/effective", query)["effective"]
        return answer

    def delete(self, id_: str) -> None:
        """End a rule."""
        self._connection.request("DELETE", f"{PATH}/{quote(id_, safe='')}")


class Repairs:
    """The repairs of the project."""

    def __init__(self, connection: Connection) -> None:
        """Use `connection`."""
        self._connection = connection

    def list_all(self, status: str | None, stack: str | None) -> list[JsonObject]:
        """Return the repairs."""
        query = ({"status": status} if status else {}) | ({"stack": stack} if stack else {})
        found: list[JsonObject] = self._connection.request("GET", "repairs", query)["repairs"]
        return found

    def answer(self, id_: str, verb: str, body: JsonMapping) -> JsonObject:
        """Approve or decline a repair."""
        path = f"repairs/{quote(id_, safe='')}/{verb}"
        answer: JsonObject = self._connection.request("POST", path, body=body)["repair"]
        return answer
