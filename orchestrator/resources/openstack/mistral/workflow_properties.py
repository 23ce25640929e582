"""The properties of OS::Mistral::Workflow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestrator.resources.base import Property
from orchestrator.schema.constraints import AllowedValues, Custom, Length

# Members of a task, and of the defaults of all tasks.
_FLOW: Final[Mapping[str, Property]] = {
    "on_success": Property("list", "Tasks that run after a success."),
    "on_error": Property("list", "Tasks that run after an error."),
    "on_complete": Property("list", "Tasks that run after the end of the task."),
    "requires": Property("list", "Tasks that run before; only in reverse workflows."),
    "retry": Property("map", "How the task is repeated after an error."),
    "wait_before": Property("integer", "Seconds before the task."),
    "wait_after": Property("integer", "Seconds between the task and the next tasks."),
    "pause_before": Property("boolean", "Whether the workflow is paused before the task."),
    "timeout": Property("integer", "Seconds after which the task fails."),
    "concurrency": Property("integer", "Maximum number of simultaneous actions; requires `with_items`."),
}

_TASK: Final[Mapping[str, Property]] = {
    "name": Property("string", "Name of the task.", required=True),
    "description": Property("string", "Description of the task."),
    "input": Property("map", "Input of the task."),
    "action": Property("string", "Action of the task; either an action or a workflow."),
    "workflow": Property(
        "string", "Workflow of the task, by name or reference.", constraints=(Custom("mistral.workflow"),)
    ),
    "publish": Property("map", "Variables that are published to the context."),
    "policies": Property("map", "Former place of retry, timeout and others.", hidden=True),
    **_FLOW,
    "with_items": Property("string", "List of items for which the action is executed."),
    "keep_result": Property("boolean", "Whether the results of actions are kept."),
    "target": Property("string", "Executor of the action."),
    "join": Property("string", "Number of preceding tasks that must be complete, or `all`."),
}

PROPERTIES: Final[Mapping[str, Property]] = {
    "name": Property("string", "Name of the workflow. Default: the physical name."),
    "type": Property(
        "string",
        "Type of the workflow.",
        required=True,
        update_allowed=True,
        constraints=(AllowedValues(("direct", "reverse")),),
    ),
    "use_request_body_as_input": Property(
        "boolean",
        "Whether the body of a signal is the input; otherwise it has the members `input` and `params`.",
        update_allowed=True,
    ),
    "tags": Property("list", "Tags of the workflow.", update_allowed=True),
    "description": Property("string", "Description of the workflow.", update_allowed=True),
    "input": Property("map", "Input, with default values.", update_allowed=True),
    "output": Property("map", "Output, with expressions.", update_allowed=True),
    "params": Property(
        "map", "Parameters of executions; a reverse workflow needs `task_name`.", update_allowed=True
    ),
    "task_defaults": Property("map", "Defaults of all tasks.", update_allowed=True, schema=_FLOW),
    "tasks": Property(
        "list",
        "The tasks.",
        required=True,
        update_allowed=True,
        constraints=(Length(min=1),),
        schema=Property("map", "A task.", schema=_TASK),
    ),
}
