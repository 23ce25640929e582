"""The dependency graph of a stack in parts that fit a screen; an extension (docs/console.md)."""

from __future__ import annotations

from typing import Final

from flask import Blueprint, Response

from api.dependencies import operation_context
from api.request import query_params
from api.request.stack_lookup import get_stack
from api.response.serialization import json_response
from orchestrator.errors import ResourceNotFound
from orchestrator.operations.stacks.resources import neighbourhood

graph = Blueprint("graph", __name__)

STACK: Final = "/<project_id>/stacks/<stack_name>/<stack_id>"
MAX_LEVELS: Final = 10
MAX_NEIGHBOURS: Final = 300


@graph.get(f"{STACK}/resources/<resource_name>/dependencies")
def dependencies_of(project_id: str, stack_name: str, stack_id: str, resource_name: str) -> Response:  # noqa: ARG001
    """Return the requirements and dependents of a resource, up to a number of levels."""
    stack = get_stack(stack_name, stack_id)
    query_params.require_known("levels")
    levels = max(1, min(query_params.integer("levels") or 1, MAX_LEVELS))
    found = neighbourhood(operation_context(), stack, resource_name, levels, MAX_NEIGHBOURS)
    if all(node.name != resource_name for node in found.nodes):
        raise ResourceNotFound(resource_name, stack.name)
    awaited = {node.name for node in found.nodes if node.action == "INIT" or node.status != "COMPLETE"}
    return json_response(
        {
            "dependencies": {
                "resources": [
                    {
                        "resource_name": node.name,
                        "resource_type": node.type,
                        "resource_status": f"{node.action}_{node.status}",
                        "level": node.level,
                    }
                    for node in found.nodes
                ],
                "edges": [
                    {"from": dependent, "to": required, "awaited": required in awaited}
                    for dependent, required in found.edges
                ],
                "left_out": found.left_out,
            }
        }
    )
