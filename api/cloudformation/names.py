"""Names and states of stacks in CloudFormation's terms."""

from __future__ import annotations

from typing import Final

from api.cloudformation.arguments import Arguments, QueryFault
from api.dependencies import caller, dependencies
from orchestrator.json_types import JsonObject
from orchestrator.store.stacks import stacks
from orchestrator.store.stacks.stacks import StackRow

ARN: Final = "arn:openstack:heat::"


class NoSuchStack(QueryFault):
    """The stack does not exist for this caller; clients that wait for a delete rely on this error."""

    def __init__(self, identifier: str) -> None:
        """Use Amazon's message."""
        super().__init__("ValidationError", f"Stack with id {identifier} does not exist")


def arn(stack: StackRow) -> str:
    """Return the stack's id for callers."""
    return f"{ARN}{stack.project_id}:stacks/{stack.name}/{stack.uuid}"


def find_stack(arguments: Arguments, name: str = "StackName") -> StackRow:
    """Return the stack of a query: a live stack by name, any stack by id or ARN.

    Raises:
        QueryFault: the query is invalid, or the stack does not exist.
    """
    reference = arguments.required(name)
    arguments.check()
    database, project_id = dependencies().database, caller().project_id
    if reference.startswith(ARN):
        head, _, path = reference.partition(":stacks/")
        stack_name, _, uuid = path.rpartition("/")
        is_own_arn = head == f"{ARN}{project_id}"
        stack = stacks.get(database, project_id, stack_name, uuid) if is_own_arn else None
    else:
        stack = stacks.find(database, project_id, reference)
    if stack is None:
        raise NoSuchStack(reference)
    return stack


def live_stack(arguments: Arguments) -> StackRow:
    """Return the live stack of a query.

    Raises:
        QueryFault: the query is invalid, or the stack does not exist.
    """
    stack = find_stack(arguments)
    if stack.deleted_at is not None:
        raise NoSuchStack(arguments.required("StackName"))
    return stack


def state(action: str, status: str, *, back: bool) -> str:
    """Return the stack's state in CloudFormation's words; `back` means a rollback to an earlier template, not
    to an empty stack.
    """
    return f"UPDATE_{action}_{status}" if action == "ROLLBACK" and back else f"{action}_{status}"


def relatives(stack: StackRow) -> JsonObject:
    """Return the ids of the ancestors of a nested stack."""
    parents = []
    above = stack.parent_uuid
    while above is not None:
        parent = stacks.find(dependencies().database, stack.project_id, str(above))
        if parent is None:
            break
        parents.append(arn(parent))
        above = parent.parent_uuid
    return {"ParentId": parents[0], "RootId": parents[-1]} if parents else {}
