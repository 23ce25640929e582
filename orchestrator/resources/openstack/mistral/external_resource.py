"""OS::Mistral::ExternalResource: an object that workflows create, change and delete.

Each operation has two steps: `run` starts the workflow of the action, under an id that follows from the
request token and the number of runs, so that a second request starts no second execution; `record` stores the
output. After a failed operation, `begin` precedes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID, uuid5

from orchestrator.clients.openstack.platform_services.workflow import EXECUTIONS, decoded
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import (
    Attribute,
    Change,
    Context,
    Created,
    Observation,
    Property,
    ResourceType,
    Value,
)
from orchestrator.resources.openstack.mistral.workflow import mistral
from orchestrator.schema.constraints import Custom

ACTIONS: Final = ("CREATE", "UPDATE", "SUSPEND", "RESUME", "DELETE")
BEGIN, RUN, RECORD = "begin", "run", "record"
RUNNING: Final = ("IDLE", "RUNNING", "PAUSED", "DELAYED")
POLL_SECONDS: Final = 3.0
MAX_ID: Final = 255  # characters of a physical id
OUTPUTS: Final = "heat_extresource_data"  # in the environment of an execution
_NAMESPACE: Final = UUID("4a5f8c38-6d51-4b3e-9a0c-6a8f7d3a1c55")  # of the ids of executions

_ACTION: Final = Property(
    "map",
    "The workflow that carries out the action.",
    schema={
        "workflow": Property(
            "string", "Name or id of the workflow.", required=True, constraints=(Custom("mistral.workflow"),)
        ),
        "params": Property("map", "Parameters; a reverse workflow needs `task_name`.", default={}),
    },
)


class ExternalResource(ResourceType):
    """An object that is managed by workflows. Their output `resource_id` is its id."""

    name = "OS::Mistral::ExternalResource"
    service = "mistral"
    endpoint_type = "workflowv2"
    live_show = True
    support_version = "9.0.0"
    always_visited = True
    delete_retry_seconds = 0.0
    properties = {
        "actions": Property(
            "map",
            "The workflows by action.",
            required=True,
            schema=dict.fromkeys(ACTIONS, _ACTION),
        ),
        "input": Property("map", "Input of the workflows.", default={}, update_allowed=True),
        "description": Property("string", "Description of the executions.", default="Heat managed"),
        "replace_on_change_inputs": Property(
            "list", "Inputs whose change replaces the resource.", default=[]
        ),
        "always_update": Property(
            "boolean", "Whether every update of the stack executes the workflow UPDATE.", default=False
        ),
    }
    attributes = {"output": Attribute("Output of the executions.", "map")}

    def change(
        self, before: Mapping[str, Value], after: Mapping[str, Value], changed: frozenset[str]
    ) -> Change:
        """Replace the resource if one of certain inputs changes; update it always if it says so."""
        old, new = before.get("input") or {}, after.get("input") or {}
        if any(old.get(name) != new.get(name) for name in after.get("replace_on_change_inputs") or ()):
            return "replace"
        step = super().change(before, after, changed)
        return "update" if step == "keep" and after.get("always_update") else step

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Take the physical name as the id; the workflow is executed in a step."""
        return Created(ctx.physical_name, {"runs": 0})

    def find(self, ctx: Context, token: str) -> str | Sequence[str] | None:
        """Return None: the create itself sends no request."""
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the execution of the open operation, and name its next step."""
        known = Observation(exists=True, attributes={"output": ctx.data.get("outputs") or {}})
        if ctx.action not in ACTIONS:
            return known
        if self._action(ctx) is None or (ctx.action == "DELETE" and not ctx.data.get("runs")):
            return Observation(exists=False) if ctx.action == "DELETE" else known
        execution_id = ctx.data.get("execution")
        if ctx.step in ("", BEGIN, RUN) and not execution_id:
            return Observation(exists=True, step=RUN, retry_after=0.0)
        if ctx.step in ("", BEGIN):  # the execution of a failed operation
            return Observation(exists=True, step=BEGIN, retry_after=0.0)
        if not execution_id:  # its output is recorded
            return Observation(exists=False) if ctx.action == "DELETE" else known
        return self._running(ctx, execution_id)

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        """Forget the execution of a failed operation, start an execution, or store its output."""
        match step:
            case "begin":
                return Created(physical_id, {**ctx.data, "execution": None})
            case "run":
                return self._run(ctx, physical_id)
        return self._record(ctx, physical_id)

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Nothing to request: the workflow is executed in a step."""
        return Created(physical_id, ctx.data)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Nothing to request: the workflow is executed in a step."""

    def suspend(self, ctx: Context, physical_id: str) -> None:
        """Nothing to request: the workflow is executed in a step."""

    def resume(self, ctx: Context, physical_id: str) -> None:
        """Nothing to request: the workflow is executed in a step."""

    def read_attributes(self, ctx: Context, physical_id: str, names: frozenset[str]) -> Mapping[str, Value]:
        """Return the latest execution as `show`."""
        latest = ctx.data.get("execution") or ctx.data.get("latest")
        return {"show": mistral(ctx).find(EXECUTIONS, latest) if latest else None}

    def _action(self, ctx: Context) -> JsonObject | None:
        action: JsonObject | None = (ctx.properties.get("actions") or {}).get(ctx.action)
        return action

    def _running(self, ctx: Context, execution_id: str) -> Observation:
        execution = mistral(ctx).find(EXECUTIONS, execution_id) or {}
        state = execution.get("state")
        seen = Observation(exists=True, ready=False, retry_after=POLL_SECONDS, reason=f"execution {state}")
        if state in RUNNING:
            return seen
        if state == "SUCCESS":
            return Observation(exists=True, step=RECORD, retry_after=0.0)
        info = execution.get("state_info") or "Unknown"
        if state not in ("ERROR", "CANCELLED"):
            info = f'Mistral execution is in unknown state. - Unknown status {state} due to "{info}"'
        return Observation(exists=True, error=str(info))

    def _run(self, ctx: Context, physical_id: str) -> Created:
        action, data = self._action(ctx) or {}, ctx.data
        runs = int(data.get("runs") or 0)
        params = dict(action.get("params") or {})
        if runs:
            params["env"] = {**(params.get("env") or {}), OUTPUTS: data.get("outputs") or {}}
        execution = mistral(ctx).execute(
            action["workflow"],
            ctx.properties.get("input") or {},
            params,
            ctx.properties.get("description") or "",
            str(uuid5(_NAMESPACE, f"{ctx.token} {ctx.action} {runs}")),
        )
        return Created(physical_id, {**data, "runs": runs + 1, "execution": execution["id"]})

    def _record(self, ctx: Context, physical_id: str) -> Created:
        data = dict(ctx.data)
        execution_id = data.pop("execution", None)
        if execution_id is None:
            return Created(physical_id, data)
        output = decoded((mistral(ctx).find(EXECUTIONS, execution_id) or {}).get("output"))
        data |= {"latest": execution_id, "outputs": {**(data.get("outputs") or {}), **output}}
        named = output.get("resource_id") or data.get("resource_id")
        if named:
            data["resource_id"] = named
        return Created(str(named or execution_id)[:MAX_ID], data)
