"""Mistral's API: workflows, their executions, and cron triggers. Names are unique in a project."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Final
from uuid import UUID

from orchestrator.clients.openstack.service_api import ServiceApi
from orchestrator.json_types import JsonMapping, JsonObject

TEXT: Final = "text/plain"


class Workflows(ServiceApi):
    """Mistral, called as a credential. A workflow is identified by its name or id."""

    service: ClassVar[str] = "mistral"
    service_type: ClassVar[str] = "workflow"

    def create_workflow(self, definition: str) -> JsonObject:
        """Create the workflow of a definition in YAML."""
        return _single(self.upload("/workflows", definition.encode(), method="POST", content_type=TEXT))

    def update_workflow(self, definition: str) -> JsonObject:
        """Replace the definition of the workflow with the name in the definition."""
        return _single(self.upload("/workflows", definition.encode(), content_type=TEXT))

    def workflow(self, identifier: str) -> JsonObject | None:
        """Return a workflow, None if it does not exist."""
        return self.find_one(f"/workflows/{identifier}")

    def delete_workflow(self, identifier: str) -> bool:
        """Delete a workflow. Return whether it existed."""
        return self.delete(f"/workflows/{identifier}")

    def execute(
        self, workflow: str, given: JsonMapping, params: JsonMapping, description: str = "", id_: str = ""
    ) -> JsonObject:
        """Start an execution. With an id, a second request returns the execution of the first."""
        body: JsonObject = {
            identifier_key(workflow): workflow,
            "input": json.dumps(given),
            "params": json.dumps(params),
            "description": description,
        }
        return self.post("/executions", body | ({"id": id_} if id_ else {}))

    def execution(self, execution_id: str) -> JsonObject | None:
        """Return an execution, None if it does not exist."""
        return self.find_one(f"/executions/{execution_id}")

    def delete_execution(self, execution_id: str) -> bool:
        """Delete an execution, also if it is not finished. Return whether it existed."""
        return self.delete(f"/executions/{execution_id}", {"force": "true"})

    def create_cron_trigger(self, trigger: JsonMapping) -> JsonObject:
        """Create a cron trigger."""
        return self.post("/cron_triggers", trigger)

    def cron_trigger(self, name: str) -> JsonObject | None:
        """Return a cron trigger, None if it does not exist; it ends with its last execution."""
        return self.find_one(f"/cron_triggers/{name}")

    def delete_cron_trigger(self, name: str) -> bool:
        """Delete a cron trigger. Return whether it existed."""
        return self.delete(f"/cron_triggers/{name}")


def identifier_key(workflow: str) -> str:
    """Return the member of a request that identifies a workflow: names and ids have their own."""
    try:
        UUID(workflow)
    except ValueError:
        return "workflow_name"
    return "workflow_id"


def decoded(value: Any) -> Any:
    """Return a JSON value that Mistral may have encoded as a text."""
    return json.loads(value) if isinstance(value, str) and value else value or {}


def _single(answer: JsonMapping) -> JsonObject:
    """Return the only workflow of a definition."""
    return dict(answer["workflows"][0])
