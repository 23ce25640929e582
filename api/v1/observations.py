"""Verdicts of the continuous observation; an extension of Heat's API (docs/drift.md)."""

from __future__ import annotations

from typing import Any, Final

from flask import Blueprint, Response, request

from api.dependencies import caller, dependencies, operation_context
from api.request import query_params, signed_notifications
from api.request.body import read_body
from api.request.stack_lookup import get_stack
from api.response.serialization import NextPage, json_response, link
from orchestrator.bodies.observations import Deviation, ObservedService, PastVerdict
from orchestrator.engine.observation.drift import DRIFT_STATES
from orchestrator.errors import InvalidRequest
from orchestrator.json_types import JsonObject
from orchestrator.operations.observation import notified
from orchestrator.store.observation import counts, reads
from orchestrator.store.stacks.stacks import StackRow

observations = Blueprint("observations", __name__)

PAGE: Final = 100
OF_STACK: Final = "/<project_id>/stacks/<stack_name>/<stack_id>/observations"


@observations.get("/<project_id>/observations")
def index(project_id: str) -> Response:
    """List the resources of the project that are not in sync, and the observed services."""
    return _deviations(_scope(project_id), None)


@observations.post("/<project_id>/observations")
def notify(project_id: str) -> Response:
    """Observe some objects of the project next; nothing else of a notification is believed."""
    if signed_notifications.is_signed(request):
        dependencies().publish(signed_notifications.notify(request, project_id))
        return Response(status=202)
    context = operation_context()
    with read_body(request, context.settings, small=True) as body:
        messages = notified.notify(context, body)
    dependencies().publish(messages)
    return Response(status=202)


@observations.get("/<project_id>/observations/history")
def history(project_id: str) -> Response:
    """List the ended verdicts of the project, the latest first."""
    return _history(_scope(project_id), None)


@observations.get(OF_STACK)
def of_stack(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """List the resources of a stack and of the stacks below it that are not in sync."""
    stack = get_stack(stack_name, stack_id)
    return _deviations(stack.project_id, stack)


@observations.get(f"{OF_STACK}/history")
def history_of_stack(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - as above
    """List the ended verdicts of a stack and of the stacks below it, the latest first."""
    stack = get_stack(stack_name, stack_id)
    return _history(stack.project_id, stack)


def _scope(project_id: str) -> str:
    return caller().project_id or project_id


def _deviations(project_id: str, stack: StackRow | None) -> Response:
    filters, limit, marker = _query()
    database, page = dependencies().database, NextPage()
    rows = list(reads.deviations(database, project_id, filters, stack=stack, after=marker, limit=limit))
    body: JsonObject = {
        "observations": [Deviation.shown(row) for row in rows],
        "services": [ObservedService.shown(row) for row in reads.services(database, project_id)],
    }
    if stack is not None:
        body["counts"] = counts.all_verdicts(database, stack, counts.deviating(database, stack))
    return _paged(body, page, rows[-1].resource_id if len(rows) == limit else None)


def _history(project_id: str, stack: StackRow | None) -> Response:
    filters, limit, marker = _query()
    page = NextPage()
    rows = reads.history(
        dependencies().database, project_id, filters, stack=stack, before=marker, limit=limit
    )
    body: JsonObject = {"history": [PastVerdict.shown(row) for row in rows]}
    return _paged(body, page, rows[-1].id if len(rows) == limit else None)


def _paged(body: JsonObject, page: NextPage, marker: int | None) -> Response:
    if marker is not None:
        body["links"] = [link("next", page.after(str(marker)))]
    return json_response(body)


def _query() -> tuple[dict[str, list[str]], int, int | None]:
    """Return filters, page size and marker.

    Raises:
        InvalidRequest: an unknown filter or verdict, or an invalid marker.
    """
    query_params.require_known(*reads.FILTERS, "limit", "marker")
    filters: dict[str, Any] = query_params.filters(reads.FILTERS)
    unknown = sorted(set(filters.get("verdict", ())) - set(DRIFT_STATES))
    if unknown:
        raise InvalidRequest(f"Unknown verdict: {', '.join(unknown)}. Known: {', '.join(DRIFT_STATES)}.")
    limit, text = query_params.integer("limit"), query_params.text("marker")
    if text is not None and not (text.isdecimal() and len(text) <= 18):
        raise InvalidRequest(f"Invalid marker '{text}': take it from the link of the page before.")
    size = PAGE if limit is None else max(1, min(limit, reads.MAX_PAGE))
    return filters, size, None if text is None else int(text)
