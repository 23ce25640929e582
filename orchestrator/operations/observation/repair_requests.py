"""Repairs as users see them: list, show, approve and decline (operations/adr/0019)."""

from __future__ import annotations

import datetime as dt
import hashlib
import uuid as uuid_
from typing import Final

import orjson

from orchestrator.engine.observation.repairs import REPAIR_STATUSES, RepairStatus
from orchestrator.errors import Conflict, InvalidRequest, NotFound
from orchestrator.json_types import JsonObject
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.request_body import read_object
from orchestrator.store.observation import repairs
from orchestrator.store.observation.repairs import RepairRow
from orchestrator.store.stacks import stacks

MAX_TEXT: Final = 1_000  # characters
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
    return [repair_body(row) for row in rows]


def show(context: OperationContext, id_: str) -> JsonObject:
    """Return a repair.

    Raises:
        RepairNotFound: it does not exist.
    """
    return repair_body(_row(context, id_))


def answer(context: OperationContext, id_: str, body: Body, verb: str) -> JsonObject:
    """Approve or decline a pending repair; return it.

    Raises:
        RepairNotFound: it does not exist.
        InvalidRequest: the body has unknown keys or values.
        OutdatedRepair: it is not pending, or its fault or its effect has changed.
    """
    requested = read_object(body.read())
    unknown = sorted(requested.keys() - {"effect", "reason"})
    if unknown:
        raise InvalidRequest(f"Unknown keys {', '.join(unknown)}, must be among: effect, reason.")
    for key, value in requested.items():
        if value is not None and (not isinstance(value, str) or len(value) > MAX_TEXT):
            raise InvalidRequest(f"{key} must be a text of at most {MAX_TEXT} characters.")
    row = _row(context, id_)
    effect = requested.get("effect")
    project_id = context.caller.project_id
    with context.database.borrow(hot=False) as db:
        outdated = effect is not None and effect != effect_of(row)
        if outdated or not repairs.answer(
            db, project_id, row, ANSWERS[verb], context.caller.user, requested.get("reason")
        ):
            raise OutdatedRepair(id_, row.status)
    return show(context, id_)


def effect_of(row: RepairRow) -> str:
    """Return a digest of the fault and the action: an approval names what was shown."""
    facts = [row.fault_id, row.action, row.verdict, row.fault_reason, row.differences]
    return hashlib.sha256(orjson.dumps(facts, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


def repair_body(row: RepairRow) -> JsonObject:
    """Return a repair as shown to its project."""
    return {
        "id": str(row.uuid),
        "stack_id": str(row.stack_uuid),
        "stack_name": row.stack_name,
        "root_stack_id": str(row.root_uuid),
        "root_stack_name": row.root_name,
        "resource_name": row.name,
        "resource_type": row.type,
        "physical_resource_id": row.physical_id,
        "verdict": row.verdict,
        "verdict_reason": row.fault_reason or None,
        "differences": row.differences,
        "action": row.action,
        "status": row.status,
        "status_reason": row.reason or None,
        "effect": effect_of(row),
        "automatic": True,
        "next_decision_at": _shown(row.due_at),
        "creation_time": _shown(row.created_at),
        "started_at": _shown(row.started_at),
        "ended_at": _shown(row.ended_at),
        "decided_by": row.decided_by,
        "decided_at": _shown(row.decided_at),
        "decision_reason": row.comment,
    }


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


def _shown(value: dt.datetime | None) -> str | None:
    return value.astimezone(dt.UTC).isoformat()[:19] + "Z" if value is not None else None
