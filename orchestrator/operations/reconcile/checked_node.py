"""Summary of one visit, for the dashboard that follows the tasks (Flower). The engine never reads it."""

from __future__ import annotations

from typing import NamedTuple

from orchestrator.engine.check.outcome import Failed, Outcome, Restricted, Unhealthy
from orchestrator.engine.check.visit import ResourceVisit

MAX_SHOWN = 5  # nodes named in full; further nodes are counted


class CheckedNode(NamedTuple):
    """One visited node and the result of its step."""

    node_id: int
    stack: str  # name
    node: str  # name of the resource, or kind of a node without a resource
    action: str  # of the stack
    step: str
    failure: str = ""  # reason; empty unless the resource failed

    def __str__(self) -> str:
        """Return `stack/resource ACTION step`."""
        return f"{self.stack}/{self.node} {self.action} {self.step}"


def resource_checked(visit: ResourceVisit, step: str, outcome: Outcome) -> CheckedNode:
    """Return the summary of a visit to a resource."""
    match outcome:
        case Failed(reason=reason) | Unhealthy(reason=reason):
            failure = reason
        case Restricted(action=action):
            failure = f"{action} is restricted for resource {visit.resource.name}"
        case _:
            failure = ""
    return CheckedNode(
        visit.node_id, visit.stack.name, visit.resource.name, visit.stack.action, step, failure
    )


def describe_nodes(nodes: list[CheckedNode]) -> str:
    """Return the summaries on one line."""
    shown = ", ".join(str(node) for node in nodes[:MAX_SHOWN])
    return f"{shown} and {len(nodes) - MAX_SHOWN} more" if len(nodes) > MAX_SHOWN else shown
