"""OS::Mistral::CronTrigger. The id of a trigger is its name, which is unique."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.clients.openstack.platform_services.workflow import CRON_TRIGGERS, identifier_key
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import (
    Attribute,
    Context,
    Created,
    Fault,
    Observation,
    Property,
    ResourceType,
    Unique,
    Value,
)
from orchestrator.resources.openstack.creation_times import is_created_by
from orchestrator.resources.openstack.mistral.workflow import mistral
from orchestrator.schema.constraints import Custom
from orchestrator.template.definition import ResourceDefinition

UNSPECIFIED = "At least one of the following properties must be specified: pattern, first_time."


class CronTrigger(ResourceType):
    """A trigger that executes a workflow at certain times. Every change replaces it."""

    name = "OS::Mistral::CronTrigger"
    service = "mistral"
    endpoint_type = "workflowv2"
    live_show = True
    support_version = "5.0.0"
    unique = Unique((("name",),), "delete", searched=True)
    properties = {
        "name": Property("string", "Name of the trigger. Default: the physical name."),
        "pattern": Property("string", "Cron expression.", constraints=(Custom("cron_expression"),)),
        "workflow": Property(
            "map",
            "The workflow.",
            required=True,
            schema={
                "name": Property(
                    "string",
                    "Name or id of the workflow.",
                    required=True,
                    constraints=(Custom("mistral.workflow"),),
                ),
                "input": Property("map", "Input of the workflow."),
            },
        ),
        "first_time": Property("string", "Time of the first execution: YYYY-MM-DD HH:MM."),
        "count": Property("integer", "Number of executions."),
    }
    attributes = {
        "next_execution_time": Attribute("Time of the next execution.", "string", live=True),
        "remaining_executions": Attribute("Number of remaining executions.", "integer", live=True),
    }

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
    ) -> Sequence[Fault]:
        """Require a time."""
        written = resources[name].body.get("properties") or {}
        if written.get("pattern") or written.get("first_time"):
            return ()
        return (Fault(UNSPECIFIED, alone=True),)

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Create the trigger."""
        workflow = props["workflow"]
        values: JsonObject = {
            "name": _name(ctx, props),
            identifier_key(workflow["name"]): workflow["name"],
            "workflow_input": workflow.get("input"),
            "pattern": props.get("pattern"),
            "first_execution_time": props.get("first_time"),
            "remaining_executions": props.get("count"),
        }
        created = mistral(ctx).create(CRON_TRIGGERS, {k: v for k, v in values.items() if v is not None})
        return Created(created["name"], {"id": created.get("id")})

    def find(self, ctx: Context, token: str) -> str | Sequence[str] | None:
        """Return the trigger with the name, unless it is older than the request."""
        name = _name(ctx, ctx.properties)
        found = mistral(ctx).find(CRON_TRIGGERS, name)
        return name if found is not None and is_created_by(ctx, found.get("created_at")) else None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the trigger. Mistral deletes it after its last execution: then it still counts as existing."""
        found = self._own(ctx, physical_id)
        ends = ctx.properties.get("count") or not ctx.properties.get("pattern")
        return Observation(exists=found is not None or bool(ends and ctx.action != "DELETE"))

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Delete the trigger, unless it belongs to another user."""
        if self._own(ctx, physical_id) is not None:
            mistral(ctx).remove(CRON_TRIGGERS, physical_id)

    def read_attributes(self, ctx: Context, physical_id: str, names: frozenset[str]) -> Mapping[str, Value]:
        """Return live attributes, and the trigger as `show`; null after the last execution."""
        found = self._own(ctx, physical_id)
        return {name: (found or {}).get(name) for name in names - {"show"}} | {"show": found}

    def _own(self, ctx: Context, name: str) -> JsonObject | None:
        """Return the trigger with the name, None if it does not exist or belongs to another user."""
        found, own_id = mistral(ctx).find(CRON_TRIGGERS, name), ctx.data.get("id")
        return found if found is not None and own_id in (None, found.get("id")) else None


def _name(ctx: Context, props: Mapping[str, Value]) -> str:
    return props.get("name") or ctx.physical_name
