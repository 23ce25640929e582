"""The thirteen actions by name (docs/internals/rest-api.md §14)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from api.cloudformation import resources, stacks, templates
from api.cloudformation.arguments import Arguments
from orchestrator.json_types import JsonMapping

Action = Callable[[Arguments], JsonMapping | None]

ACTIONS: Final[Mapping[str, Action]] = {
    "CancelUpdateStack": stacks.cancel_update_stack,
    "CreateStack": stacks.create_stack,
    "DeleteStack": stacks.delete_stack,
    "DescribeStackEvents": resources.describe_stack_events,
    "DescribeStackResource": resources.describe_stack_resource,
    "DescribeStackResources": resources.describe_stack_resources,
    "DescribeStacks": stacks.describe_stacks,
    "EstimateTemplateCost": templates.estimate_template_cost,
    "GetTemplate": templates.get_template,
    "ListStackResources": resources.list_stack_resources,
    "ListStacks": stacks.list_stacks,
    "UpdateStack": stacks.update_stack,
    "ValidateTemplate": templates.validate_template,
}

_PREVIEW: Final = ": there are no change sets; what an update would do is told by the native API's preview"
_DRIFT: Final = ": drift is looked for by the native API's action check, and by an update with converge"
INSTEAD: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "CreateChangeSet",
            "DeleteChangeSet",
            "DescribeChangeSet",
            "DescribeChangeSetHooks",
            "ExecuteChangeSet",
            "ListChangeSets",
        ),
        _PREVIEW,
    ),
    **dict.fromkeys(
        (
            "DescribeStackDriftDetectionStatus",
            "DescribeStackResourceDrifts",
            "DetectStackDrift",
            "DetectStackResourceDrift",
        ),
        _DRIFT,
    ),
    "ContinueUpdateRollback": ": a stack that failed takes an update, or the native API's rollback",
    "RollbackStack": ": a stack that failed takes an update, or the native API's rollback",
    "UpdateTerminationProtection": ": there is no termination protection",
}
"""What Amazon has and nobody does here -> what to do instead."""
