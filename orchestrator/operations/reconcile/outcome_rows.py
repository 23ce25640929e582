"""The row that an outcome writes, and its statement: pure."""

from __future__ import annotations

from typing import Any, Final

from orchestrator.engine.check.outcome import (
    Deleted,
    EarlyRelease,
    Failed,
    Outcome,
    Postponed,
    PreviousOperationEnded,
    Ready,
    Refreshed,
    Replaced,
    Restricted,
    Unchanged,
    Unhealthy,
    Wait,
)
from orchestrator.engine.check.property_diff import needs_other_type
from orchestrator.engine.check.refusals import UNREACHABLE
from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.engine.states import ACTS
from orchestrator.json_types import JsonObject
from orchestrator.operations.resource_context.state import StepResult, sealed_columns, to_columns
from orchestrator.resources.base import Observation
from orchestrator.security.encryption import Cipher
from orchestrator.store.nodes import action_sql
from orchestrator.store.nodes import outcome_sql as ending
from orchestrator.store.nodes.outcome_builder import OutcomeStatement

REFUSED_SECONDS: Final = 86_400.0  # in place of a request that is to be sent again: it does not arrive late


def outcome_statement(
    visit: ResourceVisit, result: StepResult, outcome: Outcome
) -> tuple[OutcomeStatement, JsonObject]:
    """Return the statement that writes an outcome, and its own columns."""
    statement, row = ending.SETTLE, dict[str, Any]()
    match outcome:
        case Ready(observation=seen) | PreviousOperationEnded(observation=seen) | Refreshed(observation=seen):
            if isinstance(outcome, PreviousOperationEnded):
                statement = ending.SETTLE_PREVIOUS_OPERATION
            elif isinstance(outcome, Refreshed):
                statement = action_sql.SETTLE_REFRESHED
            elif visit.stack.action in ACTS and visit.kind == "update":
                statement = action_sql.SETTLE_ACTION
            row |= ready_columns(seen)
            if isinstance(outcome, PreviousOperationEnded) and outcome.failure:
                row |= {"status": "FAILED", "reason": outcome.failure, "observed": "failed"}
            row["changed"] = result.state.value_digest != visit.resource.value_digest
        case Unchanged():
            statement = ending.SETTLE_UNCHANGED if visit.kind == "update" else ending.SETTLE_CLEANUP_KEPT
        case Replaced():
            assert visit.definition is not None
            statement = ending.REPLACE
            row["definition_id"] = visit.definition.id
            row["started"] = was_healthy(visit)
        case Deleted(silent=silent, detached_child=detached):
            statement = ending.SETTLE_DELETED
            row |= {"status": "COMPLETE", "reason": "state changed", "changed": True}
            row["detached_child"] = detached
            if silent:
                row["action"] = None
        case Postponed() | Wait():
            statement = _waiting_statement(outcome)
            row |= _waiting_columns(visit, outcome, result)
        case Unhealthy(reason=reason, left_alone=left_alone, refusal=refusal):
            row["unreachable"] = refusal is UNREACHABLE
            statement = action_sql.CHECK_FAILED if visit.act == "CHECK" else action_sql.FAIL_INVALID_STATE
            row |= {"status": None if left_alone else "FAILED", "reason": reason}
            row["observed"] = None if left_alone else "failed"
        case Restricted(action=action):
            statement = action_sql.RESTRICT
            row |= {"action": "UPDATE", "status": None, "reason": f"{action} is restricted for resource."}
        case Failed(reason=reason, causes=causes):
            statement = ending.FAIL
            row |= {"status": "FAILED", "reason": reason}
            if causes:
                row["causes"] = causes
            row["action"] = result.state.action if result.state.action != "INIT" else "CREATE"
    return statement, row


def _waiting_statement(outcome: Postponed | Wait) -> OutcomeStatement:
    if isinstance(outcome, Postponed):
        return ending.POSTPONE
    return ending.WAIT_EARLY if outcome.early else ending.WAIT


def _waiting_columns(visit: ResourceVisit, outcome: Postponed | Wait, result: StepResult) -> JsonObject:
    row: JsonObject = {
        "wait_seconds": outcome.seconds,
        "reason": outcome.reason,
    }
    if (refusal := outcome.refusal) is not None:
        row |= {"refusal": refusal.kind, "outage": refusal.is_outage, "unreachable": refusal is UNREACHABLE}
    if isinstance(outcome, Wait):
        row["retried"] = outcome.retried
        row["op"] = "DISCARD" if outcome.discard else result.state.op
        row["has_early_attributes"] = outcome.early is EarlyRelease.ATTRIBUTES
        if outcome.aborted:
            row |= _aborted_columns(visit, outcome, result.state.action)
    return row


def _aborted_columns(visit: ResourceVisit, outcome: Wait, action: str) -> JsonObject:
    """Return the status of a resource whose operation is still open although its stack has failed."""
    reason = f"{action} aborted: the stack has failed. Still in progress: {outcome.reason}"
    return {"status": "FAILED", "reason": reason, "aborted": visit.resource.status != "FAILED"}


def outcome_row(visit: ResourceVisit, result: StepResult, cipher: Cipher, *, claimed: bool) -> JsonObject:
    """Return the columns that every outcome writes."""
    resource, state, definition = visit.resource, result.state, visit.definition
    row: JsonObject = {
        "node_id": visit.node_id,
        "resource_id": resource.id,
        "stack_id": visit.stack.id,
        "name": resource.name,
        "type": resource.type,
        "runs_as": resource.runs_as,
        "action": state.action,
        "started": result.started,
        "changed": False,
        "physical_id": state.physical_id,
        "attempt": state.attempt,
        "requires": state.requires,
        "input_digests": state.input_digests,
        "value_digest": state.value_digest,
        "retried": False,
        "refusal": None,
        "outage": False,
        "unreachable": False,
        "absent": state.absent,
        "lost_seconds": (REFUSED_SECONDS if state.refused else 0.0) if state.unanswered else None,
        "requested": state.requested,
    }
    if visit.stack.automatic:
        row["automatic"] = True
    if not claimed:
        row |= {"continued": resource.op is not None, "status_read": resource.status}
    if visit.kind == "update" and definition is not None:
        row |= {"definition_id": state.definition_id, "digest": definition.digest}
        body = definition.body
        if not needs_other_type(resource.resource_type, body.get("runs_as") or body["type"]):
            row |= {"type": body["type"], "runs_as": body.get("runs_as")}  # the same type, perhaps renamed
    values = to_columns(state)
    if (sealed := sealed_columns(state, values, cipher)) is not None:
        row["sealed"] = sealed
        if state.secrets is not None:
            row["shown"] = state.secrets.masked(state.properties)
    else:
        row |= values
    return row


def ready_columns(observation: Observation) -> JsonObject:
    """Return the columns of a ready resource."""
    return {"status": "COMPLETE", "reason": observation.reason or "state changed", "observed": "ready"}


def was_healthy(visit: ResourceVisit) -> bool:
    """Whether a replaced resource was complete, and keeps its type."""
    resource, definition = visit.resource, visit.definition
    assert definition is not None
    created = resource.physical_id is not None and resource.status == "COMPLETE" and resource.op is None
    return created and definition.body["type"] == resource.type
