"""Worker events of the check task, as Flower shows them: visited resources as arguments, FAILURE for a failed
resource.

A message carries only node ids and the names of the resources. The worker knows the stack, the action and
the step after the visit, so it sends them with the event that ends the task; Celery's event state takes the
arguments of the latest event. A failed resource ends its task with `ResourceFailed`. Celery acknowledges the
message of a failed task like any other (`task_acks_on_failure_or_timeout`), stores no result and retries only
lost workers. The outcome is committed and the next messages are published before the exception is raised.
"""

from __future__ import annotations

from typing import Any

from celery.worker.request import Request

from orchestrator.operations.reconcile.checked_node import CheckedNode, describe_nodes

REQUEST = "tasks.task_events:CheckRequest"


class ResourceFailed(Exception):
    """A visited resource failed: the arguments to show, and the reasons. Celery pickles it."""

    def __init__(self, shown: str, reasons: str) -> None:
        super().__init__(shown, reasons)
        self.shown, self.reasons = shown, reasons

    def __str__(self) -> str:
        return self.reasons

    def __repr__(self) -> str:
        return f"ResourceFailed({self.reasons!r})"


class CheckRequest(Request):
    """Celery's request with the visited resources in its last event."""

    shown: str | None = None

    def on_failure(self, exc_info: Any, send_failed_event: bool = True, return_ok: bool = False) -> Any:
        """Keep the visited resources of a failed check for the event."""
        error = getattr(exc_info.exception, "exc", exc_info.exception)  # prefork wraps it
        if isinstance(error, ResourceFailed):
            self.shown = error.shown
        return super().on_failure(exc_info, send_failed_event, return_ok)

    def send_event(self, type: str, **fields: Any) -> None:
        """Send an event; the last event of a check names the resources that it visited."""
        if type == "task-succeeded":
            self.shown = fields["result"].strip("'\"")  # the repr of the returned text
            fields["result"] = ""
        if type == "task-failed" and self.shown is not None:
            fields["traceback"] = None  # the failure is the provider's or the template's
        if self.shown and self.shown != "None":
            fields["args"] = f"({self.shown})"
        super().send_event(type, **fields)


def summary(checked: list[CheckedNode]) -> str | None:
    """Return the resources that a task visited; None without any.

    Raises:
        ResourceFailed: a resource failed.
    """
    if not checked:  # late or repeated message
        return None
    visible = describe_nodes(checked)
    failed = [node.failure for node in checked if node.failure]
    if failed:
        raise ResourceFailed(visible, "; ".join(failed))
    return visible
