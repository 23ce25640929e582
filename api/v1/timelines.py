"""Timeline of a stack's action; an extension of Heat's API."""

from __future__ import annotations

import datetime as dt
from typing import Final

from flask import Blueprint, Response

from api.dependencies import dependencies
from api.request import query_params
from api.request.stack_lookup import get_stack
from api.response.serialization import instant, json_response
from api.streaming.timelines import timelines as timelines_of
from orchestrator.engine.pictures.timeline import Bar, Step
from orchestrator.errors import InvalidRequest, NotFound
from orchestrator.json_types import JsonObject
from orchestrator.operations.pictures import timeline as built
from orchestrator.operations.pictures.timeline import Timeline

timelines = Blueprint("timelines", __name__)

MAX_LIMIT: Final = 100_000  # bars of a response


@timelines.get("/<project_id>/stacks/<stack_name>/<stack_id>/timeline")
def show(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """Return the operations of the last action, or of a revision, with their phases and the critical path."""
    query_params.require_known("revision", "limit", "draft")
    number, limit = query_params.integer("revision"), query_params.integer("limit")
    if limit is not None and limit > MAX_LIMIT:
        raise InvalidRequest(f"'limit' is at most {MAX_LIMIT}.")
    stack = get_stack(stack_name, stack_id)
    newer_in = None
    if limit is None:
        found, newer_in = timelines_of().read(stack, number, is_draft=query_params.boolean("draft"))
    else:
        found = built.build(dependencies().database, stack, number, limit)
    if found is None:
        raise NotFound("Action", "last") if number is None else NotFound("Revision", str(number))
    return json_response({"timeline": {"stack_status": stack.state, **_body(found, newer_in)}})


def _body(picture: Timeline, newer_in: float | None) -> JsonObject:
    critical = {step.name for step in picture.path}
    return {
        "draft": picture.is_draft,
        "newer_in_seconds": newer_in,
        "action": picture.action,
        "revision": picture.revision,
        "begun_at": _time(picture.begun_at),
        "ended_at": _time(picture.ended_at),
        "in_progress": picture.in_progress,
        "count": picture.count,
        "throughput": {"in_progress": picture.throughput.in_progress, "ended": picture.throughput.ended},
        "bars": [_bar(bar, bar.name in critical) for bar in picture.bars],
        "lanes": [
            {
                "resource_type": lane.type,
                "count": lane.count,
                "failed": lane.failed,
                "in_progress": lane.open,
                "density": lane.density,
            }
            for lane in picture.lanes
        ],
        "critical_path": [_step(step) for step in picture.path],
        "idle": [
            {"begun_at": _time(fold.begun_at), "ended_at": _time(fold.ended_at)} for fold in picture.folds
        ],
    }


def _bar(bar: Bar, is_critical: bool) -> JsonObject:
    return {
        "resource_name": bar.name,
        "resource_type": bar.type,
        "queued_at": _time(bar.queued_at),
        "started_at": _time(bar.started_at),
        "waiting_at": _time(bar.waiting_at),
        "ended_at": _time(bar.ended_at),
        "failed": bar.failed,
        "critical": is_critical,
    }


def _step(step: Step) -> JsonObject:
    return {
        "resource_name": step.name,
        "resource_type": step.type,
        "begun_at": _time(step.begun_at),
        "ended_at": _time(step.ended_at),
    }


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else instant(dt.datetime.fromtimestamp(seconds, dt.UTC))
