"""Explanations of an unfinished stack and its progress; an extension of Heat's API (docs/diagnosis.md)."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlencode

from flask import Blueprint, Response, request

from api.dependencies import dependencies, operation_context
from api.request import query_params
from api.request.stack_lookup import get_stack
from api.response.serialization import json_response, link, time
from api.streaming.shared_responses import shared
from orchestrator.errors import InvalidRequest, ResourceNotFound
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.operations.diagnosis.explain import Summary, explain, summarize
from orchestrator.operations.stacks.resources import get_resource
from orchestrator.store.observation import repairs as stored_repairs
from orchestrator.store.stacks import blockers as stored
from orchestrator.store.stacks import progress as stored_progress
from orchestrator.store.stacks.blockers import Marker, OfResource, StackState, Unfinished
from orchestrator.store.stacks.progress import Progress
from orchestrator.store.stacks.stacks import StackRow

why = Blueprint("why", __name__)

LIMIT: Final = 50  # default page size in nodes
MAX_CAUSES: Final = 200
MAX_REPAIRS: Final = 50


@why.get("/<project_id>/stacks/<stack_name>/<stack_id>/why")
@shared
def of_stack(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """Return the unfinished nodes of a stack, those that block further nodes first."""
    stack = get_stack(stack_name, stack_id)
    query_params.require_known("marker", "limit")
    limit = query_params.integer("limit")
    limit = LIMIT if limit is None else max(1, min(limit, MAX_CAUSES))
    page = stored.unfinished(dependencies().database, stack, _marker(query_params.text("marker")), limit)
    result = _diagnosis(stack) | {
        "waiting": [_node(node, stack) for node in page.nodes],
        "repairs": _unrepaired(stack),
    }
    answer: JsonObject = {"why": result}
    if page.marker is not None:
        values = request.args.to_dict(flat=False) | {"marker": [".".join(map(str, page.marker))]}
        answer["links"] = [link("next", f"{request.base_url}?{urlencode(values, doseq=True)}")]
    return json_response(answer)


@why.get("/<project_id>/stacks/<stack_name>/<stack_id>/resources/<resource_name>/why")
def of_resource(project_id: str, stack_name: str, stack_id: str, resource_name: str) -> Response:  # noqa: ARG001
    """Return the explanation of a resource; empty if it has no pending visit."""
    stack = get_stack(stack_name, stack_id)
    database, accepted = dependencies().database, None
    blocker = stored.of_resource(database, stack, resource_name)
    if blocker is None:
        accepted = get_resource(operation_context(), stack, resource_name)
        blocker = None if accepted is None else stored.of_resource(database, stack, resource_name)
    if blocker is None and accepted is not None:  # it waits for the plan
        nodes = stored.unfinished(database, stack, None, 1).nodes
        blocker = OfResource(accepted.action, accepted.status, accepted.status_reason, nodes)
    if blocker is None:
        raise ResourceNotFound(resource_name, stack.name)
    result = _diagnosis(stack) | {
        "resource_name": resource_name,
        "resource_status": f"{blocker.action}_{blocker.status}",
        "resource_status_reason": blocker.status_reason,
        "waiting": [_node(node, stack) for node in blocker.nodes],
    }
    return json_response({"why": result})


@why.get("/<project_id>/stacks/<stack_name>/<stack_id>/progress")
def progress(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - as above
    """Return the progress counts of a stack's action."""
    stack = get_stack(stack_name, stack_id)
    summary = _summary(stack, stored.standing(dependencies().database, stack))
    result = progress_body(stored_progress.read(dependencies().database, stack)) | _summarized(stack, summary)
    return json_response({"progress": result})


def _unrepaired(stack: StackRow) -> list[JsonObject]:
    """Return the faults that the observation found and that are not repaired, with the reasons."""
    with dependencies().database.borrow(hot=False) as db:
        rows = stored_repairs.undone(db, stack.project_id, stack.id, MAX_REPAIRS)
    return [
        {
            "id": str(row.uuid),
            "resource_name": row.name,
            "verdict": row.verdict,
            "action": row.action,
            "status": row.status,
            "reason": row.reason,
            "next_decision_at": time(row.due_at),
        }
        for row in rows
    ]


def progress_body(status: Progress) -> JsonObject:
    """Return the counts in the response format. Nodes in none of them were abandoned after a failure."""
    return {
        "total": status.total,
        "ready": status.of("ready"),
        "failed": status.of("failed"),
        "running": status.of("checking", "waiting"),
        "waiting": status.of("queued", "paused"),
        "blocked": status.of("blocked"),
        "counted_at": time(status.counted_at),
        "rollouts": [
            {
                "resource_name": rollout.resource_name,
                "stack_name": rollout.stack_name,
                "stack_id": rollout.stack_id,
                "batch": rollout.batch,
                "batches": rollout.batches,
                "updated": rollout.updated,
                "total": rollout.total,
            }
            for rollout in status.rollouts
        ],
    }


def _summary(stack: StackRow, state: StackState) -> Summary:
    return summarize(stack, state, dependencies().settings.stack_action_timeout)


def _summarized(stack: StackRow, summary: Summary) -> JsonObject:
    return {
        "stack_name": stack.name,
        "stack_status": stack.state,
        "stack_status_reason": stack.status_reason,
        "word": summary.word,
        "text": summary.text,
        "since": time(summary.since),
        "timeout_at": time(summary.timeout_at),
    }


def _diagnosis(stack: StackRow) -> JsonObject:
    state = stored.standing(dependencies().database, stack)
    summary = _summary(stack, state)
    return _summarized(stack, summary) | {
        "progress": progress_body(stored_progress.read(dependencies().database, stack)),
        "running": state.running,
        "causes": [
            {"resource_name": cause.name, "reason": cause.reason, "at": time(cause.at)}
            for cause in state.causes
        ],
        "causes_count": state.cause_count,
        "accepts": list(summary.accepts),
        "desired_revision": {
            "number": state.desired_number,
            "reached": stack.reached,
            "last_reached": state.good_number,
        },
        "queued_action": queued_action_body(stack),
    }


def queued_action_body(stack: StackRow) -> JsonObject | None:
    """Return the queued action of a stack, None if it has none."""
    if stack.queued_action is None:
        return None
    return {"action": stack.queued_action, "since": time(stack.queued_at)}


def _node(node: Unfinished, stack: StackRow) -> JsonMapping:
    retry_limit = dependencies().settings.action_retry_limit
    because = explain(node, stack, retry_limit)
    return {
        "resource_name": node.name,
        "resource_type": node.type,
        "physical_resource_id": node.physical_id,
        "visit": node.kind,
        "traversal": node.traversal,
        "word": because.word,
        "text": because.text,
        "since": time(because.since),
        "waits_for": [blocker.name for blocker in node.waits_for],
        "waits_for_count": node.waits_for_count,
        "holds_up": list(node.holds_up),
        "holds_up_count": node.holds_up_count,
        "nested_stack": _child(node),
        "lease_until": time(node.leased_until or node.held_until),
        "operation": node.op,
        "operation_since": time(node.op_started_at),
        "next_attempt_at": time(node.due_at),
        "retry_count": node.retry_count,
        "retry_limit": retry_limit,
        "lost_workers": node.lost_leases,
        "last_error": node.last_error,
        "hook": node.hook if node.state == "paused" else None,
    }


def _child(node: Unfinished) -> JsonMapping | None:
    """Return the nested stack that a node waits for, which can be queried in the same way."""
    if node.child_uuid is None:
        return None
    return {"id": node.child_uuid, "stack_name": node.child_name, "stack_status": node.child_state}


def _marker(text: str | None) -> Marker | None:
    """Return the position where the previous page ended.

    Raises:
        InvalidRequest: the marker is invalid.
    """
    if text is None:
        return None
    match = re.fullmatch(r"(active|update|cleanup)\.(\d{1,18})\.(\d{1,18})", text)
    largest = re.fullmatch(r"update\.9223372036854775807\.0", text)
    if largest is not None:
        return Marker("update", (1 << 63) - 1, 0)
    if match is None:
        raise InvalidRequest(f"Invalid marker '{text}': take it from the link of the page before.")
    group, resource, node = match.groups()
    return Marker(group, int(resource), int(node))  # type: ignore[arg-type]  # one of the groups, by the pattern
