"""Repairs as users see them: list, show, approve and decline (operations/adr/0019)."""

from __future__ import annotations

import uuid as uuid_
from typing import Final

from orchestrator.bodies.repairs import Repair, RepairAnswer
from orchestrator.engine.observation.repairs import REPAIR_STATUSES, RepairStatus
from orchestrator.errors import Conflict, InvalidRequest, NotFound
from orchestrator.json_types import JsonObject
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.request_body import read_object
from orchestrator.store.observation import repairs
from orchestrator.store.observation.repairs import RepairRow
from orchestrator.store.stacks import stacks

ANSWERS: Final[dict[str, RepairStatus]] = {"approve": "approved", "decline": "declined"}


class RepairNotFound(NotFound):
    """The project has no such repair."""

    def __init__(self, id_: str) -> None:
        """Name it."""
        super().__init__("Repair", id_)


class OutdatedRepair(Conflict):
    """The repair is not the one that was shown."""

    def __init__(self, id_: str, status: str) -> None:
        """Name it, with its status."""
        super().__init__(
            f"Repair {id_} is {status}, or its fault or its effect has changed. Nothing was done: "
            "read it again."
        )


def listed(
    context: OperationContext,
    *,
    status: str | None = None,
    stack: str | None = None,
    marker: str | None = None,
    limit: int | None = None,
) -> list[JsonObject]:
    """Return the repairs of the project, the oldest first; of a stack and its nested stacks, if given.

    Raises:
        InvalidRequest: the status is unknown.
        NotFound: the project has no such stack.
    """
    if status is not None and status not in REPAIR_STATUSES:
        raise InvalidRequest(f"Unknown status '{status}', must be one of: {', '.join(REPAIR_STATUSES)}.")
    project_id = context.caller.project_id
    found = stacks.find(context.database, project_id, stack) if stack is not None else None
    if stack is not None and (found is None or found.project_id != project_id):
        raise NotFound("Stack", stack)
    with context.database.borrow(hot=False) as db:
        rows = repairs.listed(
            db, project_id, statuses=[status] if status else [], stack_ids=[found.id] if found else [],
            marker=marker, limit=limit,
        )  # fmt: skip
    return [Repair.shown(row) for row in rows]


def show(context: OperationContext, id_: str) -> JsonObject:
    """Return a repair.

    Raises:
        RepairNotFound: it does not exist.
    """
    return Repair.shown(_row(context, id_))


def answer(context: OperationContext, id_: str, body: Body, verb: str) -> JsonObject:
    """Approve or decline a pending repair; return it.

    Raises:
        RepairNotFound: it does not exist.
        InvalidTemplate: the body has unknown keys or values.
        OutdatedRepair: it is not pending, or its fault or its effect has changed.
    """
    requested = RepairAnswer.read(read_object(body.read()))
    row = _row(context, id_)
    project_id = context.caller.project_id
    with context.database.borrow(hot=False) as db:
        outdated = requested.effect is not None and requested.effect != row.effect
        if outdated or not repairs.answer(
            db, project_id, row, ANSWERS[verb], context.caller.user, requested.reason
        ):
            raise OutdatedRepair(id_, row.status)
    return show(context, id_)


def _row(context: OperationContext, id_: str) -> RepairRow:
    try:
        uuid = uuid_.UUID(id_)
    except ValueError:
        raise RepairNotFound(id_) from None
    with context.database.borrow(hot=False) as db:
        rows = repairs.listed(db, context.caller.project_id, uuid=uuid)
    if not rows:
        raise RepairNotFound(id_)
    return rows[0]
