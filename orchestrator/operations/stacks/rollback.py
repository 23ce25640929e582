"""Roll a stack back to any of its revisions, as a new revision, superseding an operation in progress
(docs/internals/engine-semantics.md §8, §17).
"""

from __future__ import annotations

from orchestrator.engine.messages import CheckMessage
from orchestrator.errors import NotFound, NotSupported
from orchestrator.operations.context import OperationContext
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.store.traversals import children, traversals
from orchestrator.store.traversals.accept import accept_rollback, revision_of_number


def roll_back(context: OperationContext, stack: StackRow, number: int) -> list[CheckMessage]:
    """Start the rollback of a stack to the revision of that number.

    Raises:
        NotFound: the stack is deleted, or has no such revision.
        NotSupported: it is suspended.
    """
    with context.database.connect() as db, db.transaction():
        now = traversals.lock(db, stack.id)
        if now is None:
            raise NotFound("Stack", stack.name)
        if now.action == "SUSPEND":
            raise NotSupported("Rolling back a stack when it is suspended")
        revision_id = revision_of_number(db, stack.id, number)
        if revision_id is None:
            raise NotFound("Revision", str(number))
        opened = accept_rollback(db, stack.id, revision_id, created_by=context.caller.user)
        children.mark_stale(db, stack.id)
    assert opened is not None  # it exists: it is locked
    return [opened.message]
