"""The page of a resource: state, attributes, dependencies, events."""

from __future__ import annotations

from typing import Final

from flask import Blueprint, request

from orchestrator_console import flower
from orchestrator_console.api_client import ApiError
from orchestrator_console.context import api, page, stack_path
from orchestrator_console.failures import linked_stack
from orchestrator_console.json_types import JsonMapping, JsonObject
from orchestrator_console.views.stack import BASE, read_stack

resource = Blueprint("resource", __name__)

EVENTS: Final = 20
MAX_LEVELS: Final = 5


@resource.get(f"{BASE}/resources/<path:resource_name>")
def show(project: str, name: str, stack_id: str, resource_name: str) -> str:
    """Show a resource."""
    path = stack_path(project, name, stack_id, "resources", resource_name)
    levels = request.args.get("levels", "1")
    levels = levels if levels in map(str, range(1, MAX_LEVELS + 1)) else "1"
    shown = api().get(path, {"with_diagnostics": "true"})["resource"]
    stack, events = read_stack(project, name, stack_id), _events(path)
    return page(
        "resource.html",
        stack=stack,
        tab="resources",
        resource=shown,
        nested=linked_stack(shown, "nested"),
        why=_why(path),
        tasks=flower.tasks_of(stack, resource_name),
        events=events,
        properties=_properties(path, events),
        near=api().get(f"{path}/dependencies", {"levels": levels})["dependencies"],
        levels=int(levels),
        max_levels=MAX_LEVELS,
    )


def _why(path: str) -> list[JsonMapping]:
    """Return the reasons for waiting."""
    found: list[JsonMapping] = api().get(f"{path}/why")["why"]["waiting"]
    return found


def _events(path: str) -> list[JsonObject]:
    try:
        found: list[JsonObject] = api().get(f"{path}/events", {"limit": EVENTS})["events"]
    except ApiError as error:
        if error.status != 404:  # without events
            raise
        return []
    return found


def _properties(path: str, events: list[JsonObject]) -> JsonMapping:
    """Return the properties of the last operation, masked as in its event."""
    if not events:
        return {}
    found: JsonMapping = api().get(f"{path}/events/{events[0]['id']}")["event"]["resource_properties"]
    return found
