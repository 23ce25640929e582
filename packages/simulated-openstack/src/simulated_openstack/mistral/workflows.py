"""Workflows, by name or id."""

from __future__ import annotations

from typing import Any

import yaml

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.service import Call, Service, new_id, precise_timestamp
from simulated_openstack.state import Table


class Workflows:
    """All workflows. Names are unique in a project."""

    def __init__(self, mistral: Service) -> None:
        """Add the routes."""
        self.table: Table = mistral.cloud.state.table("mistral.workflow", "project_id")
        add = mistral.router.add
        add("POST", "/v2/workflows", self.post)
        add("PUT", "/v2/workflows", self.put)
        add("GET", "/v2/workflows/{identifier}", self.show)
        add("DELETE", "/v2/workflows/{identifier}", self.delete)

    def post(self, call: Call) -> Response:
        """Create the workflows of a definition."""
        rows = []
        for values in _parsed(call):
            if self.find(call.caller.project_id, values["name"]) is not None:
                raise ApiError(409, f"Duplicate entry for WorkflowDefinition: ['name']: {values['name']}")
            owner = {"project_id": call.caller.project_id, "scope": "private", "namespace": ""}
            row = {"id": new_id(), "created_at": precise_timestamp(), **owner, **values}
            rows.append(self.table.save(row))
        return Response(201, {"workflows": rows})

    def put(self, call: Call) -> Response:
        """Replace the definitions of workflows."""
        rows = []
        for values in _parsed(call):
            row = self.found(call.caller.project_id, values["name"])
            rows.append(self.table.save(row | values | {"updated_at": precise_timestamp()}))
        return Response(200, {"workflows": rows})

    def show(self, call: Call, identifier: str) -> Response:
        """Return a workflow."""
        return Response(200, self.found(call.caller.project_id, identifier))

    def delete(self, call: Call, identifier: str) -> Response:
        """Delete a workflow."""
        self.table.remove(self.found(call.caller.project_id, identifier)["id"])
        return Response(204)

    def find(self, project_id: str, identifier: str) -> JsonObject | None:
        """Return a workflow, or None."""
        rows = self.table.where("project_id", project_id)
        return next((row for row in rows if identifier in (row["id"], row["name"])), None)

    def found(self, project_id: str, identifier: str) -> JsonObject:
        """Return a workflow.

        Raises:
            ApiError: there is none.
        """
        row = self.find(project_id, identifier)
        if row is None:
            raise ApiError(404, f"Workflow not found [workflow_identifier={identifier}, namespace=]")
        return row


def _parsed(call: Call) -> list[JsonObject]:
    """Return the workflows of a definition.

    Raises:
        ApiError: the definition is not valid.
    """
    text = call.request.content.decode(errors="replace")
    try:
        parsed: Any = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ApiError(400, f"Definition could not be parsed: {error}") from None
    if not isinstance(parsed, dict) or str(parsed.pop("version", "")) != "2.0":
        raise ApiError(400, "Invalid DSL: version must be 2.0")
    found = []
    for name, body in parsed.items():
        tasks = body.get("tasks") if isinstance(body, dict) else None
        if not isinstance(tasks, dict) or not tasks:
            raise ApiError(400, f"Invalid DSL: workflow '{name}' has no tasks")
        values = {"name": name, "definition": text, "tags": body.get("tags") or []}
        found.append({**values, "input": ", ".join(body.get("input") or [])})
    return found
