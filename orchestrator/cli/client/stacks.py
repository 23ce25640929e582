"""Requests about stacks as a whole, their outputs and previews."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from orchestrator.cli.client.connection import Connection, Query, StackId
from orchestrator.json_types import JsonMapping, JsonObject

Warnings = Sequence[JsonObject]  # about probable mistakes in a request


class Stacks:
    """The stacks of the project."""

    def __init__(self, connection: Connection) -> None:
        """Use `connection`."""
        self._connection = connection

    def create(self, body: JsonMapping) -> tuple[StackId, Warnings]:
        """Request the creation of a stack, which continues after the return; return the warnings as well."""
        answer = self._connection.request("POST", "stacks", body=body)
        return StackId(str(body["stack_name"]), str(answer["stack"]["id"])), answer.get("warnings") or ()

    def update(self, stack: StackId, body: JsonMapping, *, existing: bool = False) -> Warnings:
        """Request an update; `existing` keeps the parts that the body omits. Return the warnings."""
        answer = self._connection.request("PATCH" if existing else "PUT", stack.path, body=body)
        return (answer or {}).get("warnings") or ()

    def start_action(self, stack: StackId, action: str, *, queue: bool = False) -> None:
        """Request an action by its name in Heat's API; with `queue` after the running operation."""
        query = {"wait": "true"} if queue else None
        self._connection.request("POST", f"{stack.path}/actions", query, {action: None})

    def converge(self, stack: StackId, *, plan: bool, resources: Sequence[str] = ()) -> JsonObject:
        """Request a convergence of all resources or of these paths, or only its plan; return the plan."""
        options = {"plan": plan, **({"resources": list(resources)} if resources else {})}
        answer: JsonObject = self._connection.request(
            "POST", f"{stack.path}/actions", body={"converge": options}
        )["converge"]
        return answer

    def adoption(self, stack: StackId, resources: Sequence[str] = ()) -> JsonObject:
        """Return the plan that makes the observed state the desired state."""
        options = {"adopt": True, **({"resources": list(resources)} if resources else {})}
        answer: JsonObject = self._connection.request(
            "POST", f"{stack.path}/actions", body={"converge": options}
        )["converge"]
        return answer

    def delete(self, stack: str | StackId) -> None:
        """Request the deletion of a stack."""
        self._connection.request("DELETE", _path(stack))

    def list_all(self, query: Query, limit: int | None = None) -> Iterator[JsonObject]:
        """Yield stacks, at most `limit`, newest first."""
        yield from self._connection.pages("stacks", "stacks", query, limit)

    def find(self, name: str) -> StackId:
        """Return the name and id of the stack with this name or id; a deleted stack has only its id."""
        stack = self.show(name, outputs=False)
        return StackId(stack["stack_name"], stack["id"])

    def show(self, stack: str | StackId, *, outputs: bool = True) -> JsonObject:
        """Return a stack; without outputs the server has nothing to resolve."""
        query = {} if outputs else {"resolve_outputs": "false"}
        answer: JsonObject = self._connection.request("GET", _path(stack), query)["stack"]
        return answer

    def template(self, stack: StackId) -> Any:
        """Return the template in force."""
        return self._connection.request("GET", f"{stack.path}/template")

    def outputs(self, stack: StackId) -> list[JsonObject]:
        """Return the outputs with their values; values that contain secrets are masked."""
        query = {"with_values": "true"}
        answer = self._connection.request("GET", f"{stack.path}/outputs", query)
        return [*answer["outputs"]]

    def output(self, stack: StackId, key: str) -> JsonObject:
        """Return an output with its value."""
        path = f"{stack.path}/outputs/{quote(key, safe='')}"
        answer: JsonObject = self._connection.request("GET", path)["output"]
        return answer

    def export(self, stack: StackId) -> JsonObject:
        """Return the stack as a document for `adopt`."""
        answer: JsonObject = self._connection.request("GET", f"{stack.path}/export")
        return answer

    def abandon(self, stack: StackId) -> JsonObject:
        """Delete the stack but none of its resources; return it as a document for `adopt`."""
        answer: JsonObject = self._connection.request("DELETE", f"{stack.path}/abandon")
        return answer

    def validate(self, body: JsonMapping) -> JsonObject:
        """Return the server's report about a template, with warnings."""
        answer: JsonObject = self._connection.request("POST", "validate", {"with_warnings": "true"}, body)
        return answer

    def preview_create(self, body: JsonMapping) -> tuple[JsonObject, Warnings]:
        """Return the stack that a create would make, and the warnings; the same checks apply."""
        answer = self._connection.request("POST", "stacks/preview", body=body)
        return answer["stack"], answer.get("warnings") or ()

    def preview_update(
        self, stack: StackId, body: JsonMapping, *, existing: bool = False
    ) -> tuple[dict[str, list[JsonObject]], Warnings]:
        """Return the changes that an update would make, resource by resource, in five lists, and the
        warnings.
        """
        path, method = f"{stack.path}/preview", "PATCH" if existing else "PUT"
        answer: JsonObject = self._connection.request(method, path, {"show_nested": "true"}, body)
        changes: JsonObject = answer["resource_changes"]
        # For Heat's clients every resource with a nested stack is in the list of updated resources.
        updated = changes["updated"]
        changes["updated"] = [resource for resource in updated if not resource.get("unchanged")]
        changes["unchanged"] += [resource for resource in updated if resource.get("unchanged")]
        return changes, answer.get("warnings") or ()


def _path(stack: str | StackId) -> str:
    return stack.path if isinstance(stack, StackId) else f"stacks/{quote(stack, safe='')}"
