"""An event as the API tells of it: in lists as Heat does, in streams and to webhooks with a little more."""

from __future__ import annotations

from typing import Any

from api.response.serialization import Links, below, link
from orchestrator.operations.events.event_body import event_body, event_stack_fields
from orchestrator.store.events.events import EventRow
from orchestrator.store.stacks.stacks import StackRow


def event_in_list(row: EventRow, stack: StackRow, links: Links, root: str | None = None) -> dict[str, Any]:
    """Return an event as a list has it (docs/internals/rest-api.md §8), and where it stands among the
    others.
    """
    place, told = links.of(stack), event_body(row, stack)
    resource = below(place, "resources", row.resource_name)
    told["links"] = linked = [
        link("self", f"{resource}/events/{told['id']}"),
        link("resource", resource),
        link("stack", place),
    ]
    if root is not None:  # clients take this link for "nested depth is understood here"
        linked.append(link("root_stack", root))
    return told


def event_with_stack(row: EventRow, stack: StackRow, links: Links, root: str | None = None) -> dict[str, Any]:
    """Return an event as those who follow several stacks hear of it: which stack's, and of what type."""
    return event_in_list(row, stack, links, root) | event_stack_fields(row, stack)
