"""Executions of workflows: they end after a while, and return the output of the definition."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import yaml

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.mistral.workflows import Workflows
from simulated_openstack.service import Call, Service, new_id, precise_timestamp
from simulated_openstack.state import Table

ENDED: Final = "mistral.execution"
INPUT: Final = re.compile(r"<% *\$\.(\w+) *%>")  # the only expression that is evaluated


class Executions:
    """All executions. The fault `execution` lets those of a workflow fail."""

    def __init__(self, mistral: Service, workflows: Workflows) -> None:
        """Add the routes."""
        self._workflows = workflows
        self.mistral = mistral
        self.table: Table = mistral.cloud.state.table("mistral.execution")
        mistral.cloud.schedule.register(ENDED, self._ended)
        add = mistral.router.add
        add("POST", "/v2/executions", self.post)
        add("GET", "/v2/executions/{id_}", self.show)
        add("DELETE", "/v2/executions/{id_}", self.delete)

    def post(self, call: Call) -> Response:
        """Start an execution; with the id of an existing execution return that."""
        body = call.body or {}
        known = self.table.get(str(body.get("id") or ""))
        if known is not None:
            return Response(201, known)
        project_id = call.caller.project_id
        identifier = body.get("workflow_id") or body.get("workflow_name")
        workflow = self._workflows.found(project_id, str(identifier))
        given = _object(body.get("input"))
        unknown = sorted(given.keys() - set(workflow["input"].split(", ")))
        if unknown:
            raise ApiError(400, f"Invalid input [workflow={workflow['name']}, unexpected={unknown}]")
        row = {
            "id": body.get("id") or new_id(),
            "workflow_id": workflow["id"],
            "workflow_name": workflow["name"],
            "description": body.get("description") or "",
            "params": json.dumps(_object(body.get("params"))),
            "input": json.dumps(given),
            "output": "{}",
            "state": "RUNNING",
            "state_info": None,
            "project_id": project_id,
            "created_at": precise_timestamp(),
            "updated_at": precise_timestamp(),
        }
        cloud = self.mistral.cloud
        fault = cloud.faults.action("execution", workflow["name"])
        cloud.schedule.after(cloud.delays.execution + fault.delay, ENDED, row["id"], fault.error)
        return Response(201, self.table.save(row))

    def show(self, call: Call, id_: str) -> Response:
        """Return an execution."""
        return Response(200, self._found(call, id_))

    def delete(self, call: Call, id_: str) -> Response:
        """Delete an execution; a running one only by force."""
        row = self._found(call, id_)
        if row["state"] == "RUNNING" and call.request.value("force") != "true":
            raise ApiError(403, "Only completed executions can be deleted. Use --force to override this.")
        self.table.remove(id_)
        return Response(204)

    def _ended(self, id_: str, error: str | None) -> None:
        row = self.table.get(id_)
        if row is None:
            return
        if error:
            row |= {"state": "ERROR", "state_info": error}
        else:
            workflow = self._workflows.find(row["project_id"], row["workflow_id"]) or {}
            output = _output(workflow.get("definition") or "", row["workflow_name"], json.loads(row["input"]))
            row |= {"state": "SUCCESS", "output": json.dumps(output)}
        self.table.save(row | {"updated_at": precise_timestamp()})

    def _found(self, call: Call, id_: str) -> JsonObject:
        row = self.table.get(id_)
        if row is None or row["project_id"] != call.caller.project_id:
            raise ApiError(404, f"WorkflowExecution not found [id={id_}]")
        return row


def _object(value: Any) -> JsonObject:
    """Return a JSON object that may be encoded as a text."""
    parsed = json.loads(value) if isinstance(value, str) and value else value or {}
    return parsed if isinstance(parsed, dict) else {}


def _output(definition: str, name: str, given: JsonObject) -> JsonObject:
    """Return the output of a workflow: expressions that name an input are replaced by it."""
    declared = ((yaml.safe_load(definition) or {}).get(name) or {}).get("output") or {}
    return {
        key: INPUT.sub(lambda match: str(given.get(match[1], "")), value) if isinstance(value, str) else value
        for key, value in declared.items()
    }
