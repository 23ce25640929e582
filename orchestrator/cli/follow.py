"""Follow one action of one stack by its events, until the stack's own event ends it (spec/rest-api.md §8)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from orchestrator.cli.client import Client, StackId
from orchestrator.cli.failure import ApiFailure, Exit, Failure

FASTEST_SECONDS = 0.3
SLOWEST_SECONDS = 2.0
LOOK_EVERY = 4  # empty polls between two looks at the stack itself
PATIENCE_SECONDS = 60.0  # an API that restarts is waited for

Event = dict[str, Any]


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
    after: str | None,
    timeout_seconds: float | None = None,
    idle: Callable[[float], None] = time.sleep,
) -> Iterator[Event | End]:
    """Yield the events after `after` as they come, and then the end.

    `idle` waits between two looks. A stack that is gone, or at rest although its last event was never
    seen (events are kept for a limited time), ends the following as well.

    Raises:
        Failure: with `Exit.TIMEOUT` when `timeout_seconds` have passed; the stack goes on by itself.
    """
    deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
    causes: dict[str, str] = {}
    empty, pause = 0, FASTEST_SECONDS
    client.patience_seconds = (
        PATIENCE_SECONDS if deadline is None else max(1.0, min(PATIENCE_SECONDS, timeout_seconds or 0))
    )
    while True:
        fresh = False
        try:
            for event in client.events(stack, after=after):
                fresh, after = True, event["id"]
                yield event
                status = str(event["resource_status"])
                if not is_stack_event(event, stack):
                    if status.endswith("_FAILED"):
                        causes[event["resource_name"]] = event["resource_status_reason"]
                elif not status.endswith("_IN_PROGRESS"):
                    yield _end(client, stack, status, event["resource_status_reason"], causes)
                    return
            empty = 0 if fresh else empty + 1
            if empty and empty % LOOK_EVERY == 0:
                shown = client.show(stack, outputs=False)
                if not shown["stack_status"].endswith("_IN_PROGRESS") and not _more(client, stack, after):
                    yield _end(client, stack, shown["stack_status"], shown["stack_status_reason"], causes)
                    return
        except ApiFailure as failure:
            if failure.status != 404:
                raise
            yield End("DELETE_COMPLETE", "The stack is gone", causes)
            return
        if deadline is not None and time.monotonic() >= deadline:
            raise Failure(
                f"stack {stack.name} was not done after {timeout_seconds:g} seconds; it goes on by itself",
                code=Exit.TIMEOUT,
                details=[f"  look again with: orchestrator stack events {stack.name} --follow"],
                facts={"stack_id": stack.id, "stack_name": stack.name},
            )
        pause = FASTEST_SECONDS if fresh else min(pause * 1.3, SLOWEST_SECONDS)
        idle(pause if deadline is None else max(0.0, min(pause, deadline - time.monotonic())))


def _more(client: Client, stack: StackId, after: str | None) -> bool:
    """Whether an event arrived between the last poll and the look at the stack."""
    return next(client.events(stack, after=after, limit=1), None) is not None


def _end(client: Client, stack: StackId, status: str, reason: str, causes: dict[str, str]) -> End:
    """Add the causes that only the resources tell: events may be pruned, or older than our first look."""
    end = End(status, reason, causes)
    if end.failed:
        for resource in client.resources(stack, {"status": "FAILED"}):
            end.causes.setdefault(resource["resource_name"], resource["resource_status_reason"])
    return end
