"""Events in the response format: Heat's fields in lists, additional stack fields in streams and webhooks."""

from __future__ import annotations

from typing import Any

from api.response.serialization import Links, below, link
from orchestrator.operations.events.event_body import event_body, event_stack_fields
from orchestrator.store.events.events import EventRow
from orchestrator.store.stacks.stacks import StackRow


def event_in_list(row: EventRow, stack: StackRow, links: Links, root: str | None = None) -> dict[str, Any]:
    """Return an event as an entry of a list (docs/internals/rest-api.md §8), with its sequence."""
    url, result = links.of(stack), event_body(row, stack)
    resource = below(url, "resources", row.resource_name)
    result["links"] = linked = [
        link("self", f"{resource}/events/{result['id']}"),
        link("resource", resource),
        link("stack", url),
    ]
    if root is not None:  # clients take this link as support for nested depth
        linked.append(link("root_stack", root))
    return result


def event_with_stack(row: EventRow, stack: StackRow, links: Links, root: str | None = None) -> dict[str, Any]:
    """Return an event with the fields of its stack, for streams of several stacks."""
    return event_in_list(row, stack, links, root) | event_stack_fields(row, stack)
