"""Mistral's API: workflows, their executions, and cron triggers. Names are unique in a project."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Final
from uuid import UUID

from orchestrator.clients.openstack.object_collections import Collection, Collections
from orchestrator.json_types import JsonMapping, JsonObject

TEXT: Final = "text/plain"
WORKFLOWS: Final = Collection("/workflows", "", "workflows")
EXECUTIONS: Final = Collection("/executions", "", "executions")
# A trigger ends with its last execution.
CRON_TRIGGERS: Final = Collection("/cron_triggers", "", "cron_triggers", id_key="name")


class Workflows(Collections):
    """Mistral, called as a credential. A workflow is identified by its name or id."""

    service: ClassVar[str] = "mistral"
    service_type: ClassVar[str] = "workflow"

    def create_workflow(self, definition: str) -> JsonObject:
        """Create the workflow of a definition in YAML."""
        return _single(self.upload("/workflows", definition.encode(), method="POST", content_type=TEXT))

    def update_workflow(self, definition: str) -> JsonObject:
        """Replace the definition of the workflow with the name in the definition."""
        return _single(self.upload("/workflows", definition.encode(), content_type=TEXT))

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

    def delete_execution(self, execution_id: str) -> bool:
        """Delete an execution, also if it is not finished. Return whether it existed."""
        return self.remove(EXECUTIONS, execution_id, query={"force": "true"})


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
