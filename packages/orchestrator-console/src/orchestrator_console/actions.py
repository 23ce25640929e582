"""The actions that a page offers: by the policy for the caller, and by the state of the stack."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from orchestrator_console.context import may
from orchestrator_console.json_types import JsonMapping

FORBIDDEN: Final = "Your role does not permit it."


@dataclass(frozen=True, slots=True)
class Action:
    """An action of a stack."""

    name: str
    label: str
    policy: str
    effect: str
    danger: bool = False


@dataclass(frozen=True, slots=True)
class Offer:
    """An action, and the reason why it is not available; empty if it is."""

    action: Action
    obstacle: str


ACTIONS: Final = (
    Action("update", "Update", "stacks:update_patch", "Changes the template or the parameters."),
    Action("check", "Check", "actions:check", "Observes all resources and reports their states."),
    Action("converge", "Converge", "actions:converge", "Shows and repairs the differences to the template."),
    Action("suspend", "Suspend", "actions:suspend", "Stops the resources that can be stopped."),
    Action("resume", "Resume", "actions:resume", "Starts suspended resources."),
    Action("cancel_update", "Cancel and roll back", "actions:cancel_update", "Returns to the last revision."),
    Action("cancel_without_rollback", "Cancel", "actions:cancel_without_rollback", "Stops where it is."),
    Action("delete", "Delete", "stacks:delete", "Deletes the stack and its objects.", danger=True),
)
BY_NAME: Final = {action.name: action for action in ACTIONS}


def offered(stack: JsonMapping, accepts: Collection[str]) -> list[Offer]:
    """Return all actions of a stack. A nested stack is changed with its parent."""
    return [Offer(action, _obstacle(action, stack, accepts)) for action in ACTIONS]


def _obstacle(action: Action, stack: JsonMapping, accepts: Collection[str]) -> str:
    if not may(action.policy):
        return FORBIDDEN
    if stack.get("parent"):
        return "It is a nested stack: it changes with its parent."
    if stack.get("deletion_time"):
        return "The stack is deleted."
    if action.name == "converge":
        return "" if not stack["stack_status"].endswith("IN_PROGRESS") else "An operation is in progress."
    if action.name in accepts:
        return ""
    return f"Not in the state {stack['stack_status'].replace('_', ' ').lower()}."
