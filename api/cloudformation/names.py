"""What CloudFormation's callers call a stack and its states."""

from __future__ import annotations

from typing import Any, Final

from api.cloudformation.arguments import Arguments, QueryFault
from api.dependencies import caller, dependencies
from orchestrator.store.stacks import stacks
from orchestrator.store.stacks.stacks import StackRow

ARN: Final = "arn:openstack:heat::"


class NoSuchStack(QueryFault):
    """There is no such stack for this caller; who waits for its end takes this for it."""

    def __init__(self, asked: str) -> None:
        """Say so as Amazon does."""
        super().__init__("ValidationError", f"Stack with id {asked} does not exist")


def arn(stack: StackRow) -> str:
    """Return the id that callers know a stack by."""
    return f"{ARN}{stack.project_id}:stacks/{stack.name}/{stack.uuid}"


def find_stack(arguments: Arguments, name: str = "StackName") -> StackRow:
    """Return the caller's stack that a query names: by name a live one, by id or ARN also one that is gone.

    Raises:
        QueryFault: something was wrong with the query, or there is no such stack.
    """
    asked = arguments.required(name)
    arguments.check()
    database, project_id = dependencies().database, caller().project_id
    if asked.startswith(ARN):
        head, _, path = asked.partition(":stacks/")
        stack_name, _, uuid = path.rpartition("/")
        own = head == f"{ARN}{project_id}"
        found = stacks.get(database, project_id, stack_name, uuid) if own else None
    else:
        found = stacks.find(database, project_id, asked)
    if found is None:
        raise NoSuchStack(asked)
    return found


def live_stack(arguments: Arguments) -> StackRow:
    """Return the caller's stack that a query names, one that is there.

    Raises:
        QueryFault: something was wrong with the query, or there is no such stack.
    """
    stack = find_stack(arguments)
    if stack.deleted_at is not None:
        raise NoSuchStack(arguments.required("StackName"))
    return stack


def state(action: str, status: str, *, back: bool) -> str:
    """Return a stack's state in CloudFormation's words; `back` says of a rollback that it led to an earlier
    template and not to nothing.
    """
    return f"UPDATE_{action}_{status}" if action == "ROLLBACK" and back else f"{action}_{status}"


def relatives(stack: StackRow) -> dict[str, Any]:
    """Return the ids of the stacks that a nested one is in."""
    parents = []
    above = stack.parent_uuid
    while above is not None:
        parent = stacks.find(dependencies().database, stack.project_id, str(above))
        if parent is None:
            break
        parents.append(arn(parent))
        above = parent.parent_uuid
    return {"ParentId": parents[0], "RootId": parents[-1]} if parents else {}
