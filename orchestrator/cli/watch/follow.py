"""Follow an action of a stack by its events until it has ended (docs/internals/rest-api.md §8).

A failed create or update of a stack with rollback enabled ends with the end of its rollback.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from orchestrator.cli.client.api_client import Client
from orchestrator.cli.client.connection import StackId
from orchestrator.cli.exit_codes import ApiFailure, Exit, Failure
from orchestrator.cli.output.event_line import stack_of
from orchestrator.cli.watch.event_feed import PATIENCE_SECONDS, Event, Idle, feed
from orchestrator.json_types import JsonObject

__all__ = ["End", "Event", "follow", "is_stack_event"]

ROLLED_BACK: Final = frozenset({"CREATE_FAILED", "UPDATE_FAILED"})  # the failures that start a rollback


@dataclass(slots=True)
class End:
    """The end of an action: status and reason of the stack, and the reason of every failed resource."""

    status: str
    reason: str
    causes: dict[str, str] = field(default_factory=dict)
    rolled_back: End | None = None  # the failure that the rollback followed

    @property
    def failed(self) -> bool:
        """Whether the action failed, regardless of its rollback."""
        return self.rolled_back is not None or self.status.endswith("_FAILED")


def is_stack_event(event: Event, stack: StackId) -> bool:
    """Whether the event is about the stack itself, not about a resource."""
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
    """Yield the events after `after` as they happen, with `nested` levels of nested stacks, and then the end.

    With an `action`, ends before the start of this action belong to earlier actions. `idle` sleeps. Two more
    conditions end the iteration: the stack is deleted, or it is at rest although its last event is missing
    (events are deleted after some time).

    Raises:
        Failure: with `Exit.TIMEOUT` after `timeout_seconds`; the action continues.
    """
    follower = _Follower(client, stack, action, after, timeout_seconds, idle, nested)
    try:
        yield from follower.run(after)
    except ApiFailure as failure:
        if failure.status != 404:
            raise
        yield End("DELETE_COMPLETE", "The stack is deleted", follower.causes, follower.failure)


class _Follower:
    """The state of following an action."""

    def __init__(
        self,
        client: Client,
        stack: StackId,
        action: str | None,
        after: Event | None,
        timeout_seconds: float | None,
        idle: Callable[[float], None],
        nested: int,
    ) -> None:
        self.client, self.stack, self.action = client, stack, action
        self.timeout_seconds, self.idle, self.nested = timeout_seconds, idle, nested
        self.deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        self.begun = action is None
        self.last = str(after["id"]) if after is not None else None
        self.causes: dict[str, str] = {}
        self.failure: End | None = None  # set while the rollback after it is in progress
        limit = PATIENCE_SECONDS if timeout_seconds is None else timeout_seconds
        client.connection.patience_seconds = max(1.0, min(PATIENCE_SECONDS, limit))

    def run(self, after: Event | None) -> Iterator[Event | End]:
        """Yield events, then the end."""
        steps = feed(
            self.client,
            self.stack,
            after,
            seconds_left=self._seconds_left,
            idle=self.idle,
            nested=self.nested,
        )
        for step in steps:
            if isinstance(step, Idle):
                end = self._end_at_rest() if step.settled else None
                self._require_time(end)
            else:
                self.last = str(step["id"])
                yield step
                end = self._end_after(step)
            if end is not None:
                yield end
                return

    def _seconds_left(self) -> float | None:
        return None if self.deadline is None else self.deadline - time.monotonic()

    def _require_time(self, end: End | None) -> None:
        seconds = self._seconds_left()
        if end is None and seconds is not None and seconds <= 0:
            raise _timeout(self.stack, self.timeout_seconds)

    def _end_after(self, event: Event) -> End | None:
        """Return the end of the action if this event is its end."""
        status, reason = str(event["resource_status"]), str(event["resource_status_reason"])
        if not is_stack_event(event, self.stack):
            of_nested_stack = event["physical_resource_id"] == stack_of(event)[1]  # its resources are causes
            if status.endswith("_FAILED") and self.failure is None and not of_nested_stack:
                self.causes[event["resource_name"]] = reason
            return None
        if status.endswith("_IN_PROGRESS"):
            if not self.begun:
                self.begun = status == f"{self.action}_IN_PROGRESS"
                self.causes.clear()  # they belong to an earlier action
            return None
        if not self.begun:
            return None
        if status in ROLLED_BACK and self.failure is None and self._rolls_back():
            self.failure = self._end(status, reason)
            return None
        return self._end(status, reason)

    def _rolls_back(self) -> bool:
        """Whether the stack has rollback enabled."""
        return self.client.stacks.show(self.stack, outputs=False).get("disable_rollback") is False

    def _end_at_rest(self) -> End | None:
        """Return the end if nothing is in progress, and no event has followed the last."""
        shown: JsonObject = self.client.stacks.show(self.stack, outputs=False)
        if shown["stack_status"].endswith("_IN_PROGRESS") or shown.get("queued_action"):
            return None
        newer = self.client.events.list_all(self.stack, after=self.last, limit=1, nested=self.nested)
        if next(newer, None) is not None:
            return None
        if self.failure is not None and shown["stack_status"] == self.failure.status:
            return self.failure  # it was not rolled back after all
        return self._end(shown["stack_status"], shown["stack_status_reason"])

    def _end(self, status: str, reason: str) -> End:
        """Return the end, with the causes that events did not report: they may be deleted, or older."""
        end = End(status, reason, self.causes, self.failure)
        if status.endswith("_FAILED"):
            for resource in self.client.resources.list_all(self.stack, {"status": "FAILED"}):
                end.causes.setdefault(resource["resource_name"], resource["resource_status_reason"])
        return end


def _timeout(stack: StackId, seconds: float | None) -> Failure:
    return Failure(
        f"stack {stack.name} was not finished after {seconds:g} seconds; the action continues",
        code=Exit.TIMEOUT,
        details=[f"  follow it with: orchestrator stack events {stack.name} --follow"],
        facts={"stack_id": stack.id, "stack_name": stack.name},
    )
