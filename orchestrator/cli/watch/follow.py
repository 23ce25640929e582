"""Follow one action of one stack by its events, until the stack's own event ends it
(docs/internals/rest-api.md §8).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from orchestrator.cli.client.api_client import Client, StackId
from orchestrator.cli.exit_codes import ApiFailure, Exit, Failure
from orchestrator.cli.watch.event_feed import PATIENCE_SECONDS, Event, Idle, feed

__all__ = ["End", "Event", "follow", "is_stack_event"]


@dataclass(slots=True)
class End:
    """How an action ended: the stack's status and reason, and every failed resource's own words."""

    status: str
    reason: str
    causes: dict[str, str] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether the action did not reach its goal."""
        return self.status.endswith("_FAILED")


def is_stack_event(event: Event, stack: StackId) -> bool:
    """Whether the event is about the stack and not about one of its resources."""
    return (event["resource_name"], event["physical_resource_id"]) == (stack.name, stack.id)


def follow(
    client: Client,
    stack: StackId,
    *,
    after: Event | None,
    action: str | None = None,
    timeout_seconds: float | None = None,
    idle: Callable[[float], None] = time.sleep,
    nested: int = 0,
) -> Iterator[Event | End]:
    """Yield the events after `after` as they come, those of so many `nested` levels too, and then the end.

    With an `action` the end is that action's: what ended before it began was another. `idle` waits between
    two looks. A stack that is gone, or at rest although its last event was never seen (events are kept for a
    limited time), ends the following as well.

    Raises:
        Failure: with `Exit.TIMEOUT` when `timeout_seconds` have passed; the stack goes on by itself.
    """
    deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
    causes: dict[str, str] = {}
    begun, last = action is None, str(after["id"]) if after is not None else None
    client.patience_seconds = (
        PATIENCE_SECONDS if deadline is None else max(1.0, min(PATIENCE_SECONDS, timeout_seconds or 0))
    )

    def left() -> float | None:
        return None if deadline is None else deadline - time.monotonic()

    try:
        for step in feed(client, stack, after, left=left, idle=idle, nested=nested):
            if isinstance(step, Idle):
                at_rest = _at_rest(client, stack, last, nested) if step.settled else None
                if at_rest is not None:
                    yield _end(client, stack, at_rest["stack_status"], at_rest["stack_status_reason"], causes)
                    return
                seconds = left()
                if seconds is not None and seconds <= 0:
                    raise _late(stack, timeout_seconds)
                continue
            last = str(step["id"])
            yield step
            status = str(step["resource_status"])
            if not is_stack_event(step, stack):
                if status.endswith("_FAILED"):
                    causes[step["resource_name"]] = step["resource_status_reason"]
            elif status.endswith("_IN_PROGRESS"):
                if not begun:
                    begun = status == f"{action}_IN_PROGRESS"
                    causes.clear()  # of what was under way before
            elif begun:
                yield _end(client, stack, status, step["resource_status_reason"], causes)
                return
    except ApiFailure as failure:
        if failure.status != 404:
            raise
        yield End("DELETE_COMPLETE", "The stack is gone", causes)


def _at_rest(client: Client, stack: StackId, last: str | None, nested: int) -> dict[str, Any] | None:
    """Return the stack when nothing is under way in it, and nothing was told since the last event."""
    shown = client.show(stack, outputs=False)
    if shown["stack_status"].endswith("_IN_PROGRESS"):
        return None
    return shown if next(client.events(stack, after=last, limit=1, nested=nested), None) is None else None


def _late(stack: StackId, seconds: float | None) -> Failure:
    return Failure(
        f"stack {stack.name} was not done after {seconds:g} seconds; it goes on by itself",
        code=Exit.TIMEOUT,
        details=[f"  look again with: orchestrator stack events {stack.name} --follow"],
        facts={"stack_id": stack.id, "stack_name": stack.name},
    )


def _end(client: Client, stack: StackId, status: str, reason: str, causes: dict[str, str]) -> End:
    """Add the causes that only the resources tell: events may be pruned, or older than our first look."""
    end = End(status, reason, causes)
    if end.failed:
        for resource in client.resources(stack, {"status": "FAILED"}):
            end.causes.setdefault(resource["resource_name"], resource["resource_status_reason"])
    return end
