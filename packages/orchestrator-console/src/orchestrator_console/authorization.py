"""The name of each page in the policy, and the check for all of them.

The API decides about every call of a page. A page is checked itself as well, so that a caller without the
right to its content receives no page without content.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from flask import g, request

from orchestrator_console.actions import BY_NAME
from orchestrator_console.context import host

NAMES: Final = MappingProxyType(
    {
        "actions.create": "stacks:create",
        "actions.create_form": "stacks:create",
        "field.changes": "resource:index",
        "field.data": "resource:index",
        "field.names": "resource:index",
        "field.show": "resource:index",
        "history.show": "resource:index",
        "overview.show": "stacks:index",
        "repairs.answer": "stacks:repair",
        "repairs.index": "stacks:list_repairs",
        "resource.show": "resource:show",
        "revisions.diff": "stacks:diff_revisions",
        "revisions.index": "stacks:list_revisions",
        "revisions.one": "stacks:show_revision",
        "revisions.rollback": "stacks:rollback",
        "revisions.template": "stacks:template",
        "stack.drift": "observations:index",
        "stack.events": "events:index",
        "stack.failures": "stacks:failures",
        "stack.find": "stacks:lookup",
        "stack.outputs": "stacks:list_outputs",
        "stack.reveal": "stacks:show_output",
        "stack.resources": "resource:index",
        "stack.stream": "events:index",
        "stack.summary": "stacks:show",
        "stack_map.show": "resource:index",
        "stacks.index": "stacks:index",
        "timeline.show": "events:index",
    }
)
UNNAMED: Final = "stacks:update"  # of a page without a name, which a test finds
ACTIONS: Final = frozenset({"actions.act", "actions.form"})  # with the policy of the action in the path


def enforce() -> None:
    """Return if the caller may use this page.

    Raises:
        Forbidden: the policy does not allow it.
    """
    name = name_of(request.endpoint or "", (request.view_args or {}).get("action", ""))
    if name is not None:
        host().require(g.who, name)


def name_of(endpoint: str, action: str) -> str | None:
    """Return the name of a page in the policy; None for an action that does not exist."""
    if endpoint in ACTIONS:
        return BY_NAME[action].policy if action in BY_NAME else None
    return NAMES.get(endpoint, UNNAMED)
