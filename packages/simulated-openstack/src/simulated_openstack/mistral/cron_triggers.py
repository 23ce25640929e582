"""Cron triggers: they are stored and never fire."""

from __future__ import annotations

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.mistral.workflows import Workflows
from simulated_openstack.service import Call, Service, new_id, precise_timestamp
from simulated_openstack.state import Table


class CronTriggers:
    """All cron triggers. Names are unique in a project."""

    def __init__(self, mistral: Service, workflows: Workflows) -> None:
        """Add the routes."""
        self._workflows = workflows
        self.table: Table = mistral.cloud.state.table("mistral.cron_trigger", "project_id")
        add = mistral.router.add
        add("POST", "/v2/cron_triggers", self.post)
        add("GET", "/v2/cron_triggers/{name}", self.show)
        add("DELETE", "/v2/cron_triggers/{name}", self.delete)

    def post(self, call: Call) -> Response:
        """Create a trigger."""
        body, project_id = call.body or {}, call.caller.project_id
        if not body.get("pattern") and not body.get("first_execution_time"):
            raise ApiError(400, "Pattern or first_execution_time must be specified.")
        if self._find(project_id, str(body.get("name"))) is not None:
            raise ApiError(409, f"Duplicate entry for CronTrigger: ['name']: {body.get('name')}")
        identifier = body.get("workflow_id") or body.get("workflow_name")
        workflow = self._workflows.found(project_id, str(identifier))
        row = {
            "id": new_id(),
            "name": body.get("name"),
            "workflow_name": workflow["name"],
            "workflow_id": workflow["id"],
            "workflow_input": body.get("workflow_input") or {},
            "pattern": body.get("pattern"),
            "first_execution_time": body.get("first_execution_time"),
            "next_execution_time": body.get("first_execution_time") or "2099-01-01 00:00:00",
            "remaining_executions": body.get("remaining_executions"),
            "project_id": project_id,
            "created_at": precise_timestamp(),
        }
        return Response(201, self.table.save(row))

    def show(self, call: Call, name: str) -> Response:
        """Return a trigger."""
        return Response(200, self._found(call, name))

    def delete(self, call: Call, name: str) -> Response:
        """Delete a trigger."""
        self.table.remove(self._found(call, name)["id"])
        return Response(204)

    def _find(self, project_id: str, name: str) -> JsonObject | None:
        rows = self.table.where("project_id", project_id)
        return next((row for row in rows if name in (row["id"], row["name"])), None)

    def _found(self, call: Call, name: str) -> JsonObject:
        row = self._find(call.caller.project_id, name)
        if row is None:
            raise ApiError(404, f"Cron trigger not found [cron_trigger_identifier={name}]")
        return row
