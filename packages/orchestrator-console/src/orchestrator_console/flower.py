"""Links to Flower, which shows the tasks of the workers to operators.

No row has the id of a task, because that would be a write per task. Flower finds tasks by their arguments:
the resource, and the id of the root stack. Its list begins with the last task.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from orchestrator_console.context import host, may
from orchestrator_console.json_types import JsonMapping

OPERATORS: Final = "service:index"  # the policy that also shows the workers


def address() -> str:
    """Return the address of Flower, empty without one or for callers who are no operators."""
    is_operator = host().auth == "none" or may(OPERATORS)
    return host().flower_url.rstrip("/") if is_operator else ""


def tasks_of(stack: JsonMapping, resource_name: str) -> str:
    """Return the address of the tasks of a resource, empty if `address` is."""
    base = address()
    # The page has parameters for some fields only; the text of the last may contain further terms.
    return f"{base}/tasks?name={quote(search(stack, resource_name), safe='')}" if base else ""


def search(stack: JsonMapping, resource_name: str) -> str:
    """Return the terms that find the tasks of a resource, after `name:`.

    A finished check names stack and resource in its arguments, a check in progress the resource only.
    """
    finished = "args:" + _quoted(f"{stack['stack_name']}/{resource_name} ")
    if stack.get("parent"):  # the name of a nested stack is unique, and its root is not known here
        return f"check {finished}"
    begun = "args:" + _quoted(f"({resource_name})")
    return f"check kwargs:root_stack={stack['id']} ({finished} OR {begun})"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
