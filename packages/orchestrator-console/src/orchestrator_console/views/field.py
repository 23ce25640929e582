"""The field of a stack: its page, and the data that its script reads."""

from __future__ import annotations

from typing import Final

import orjson
from flask import Blueprint, Response, request, url_for

from orchestrator_console.api_client import ApiError
from orchestrator_console.context import api, draft_query, page, stack_path

field = Blueprint("field", __name__)

PLACE: Final = "/<project>/stacks/<name>/<stack_id>/field"
# Key of the counts, its label, and the query of the list of resources; empty if the list has no such filter.
STATES: Final = (
    ("planned", "Planned", "action=INIT"),
    ("in_progress", "In progress", "status=IN_PROGRESS"),
    ("complete", "Complete", "status=COMPLETE"),
    ("failed", "Failed", "status=FAILED"),
    ("deleting", "To be deleted", "action=DELETE"),
    ("deleted", "Deleted", ""),
    ("suspended", "Suspended", "action=SUSPEND"),
)


@field.get(PLACE)
def show(project: str, name: str, stack_id: str) -> str:
    """Show the field, and the counts by state."""
    summary = api().get(stack_path(project, name, stack_id, "field", "summary"), draft_query())["field"]
    return page("field.html", section="stacks", name=name, stack_id=stack_id, field=summary, states=STATES)


@field.get(f"{PLACE}/data")
def data(project: str, name: str, stack_id: str) -> Response:
    """Return the field as the API does."""
    return _passed_on(project, name, stack_id)


@field.get(f"{PLACE}/changes")
def changes(project: str, name: str, stack_id: str) -> Response:
    """Return the changes of the field as the API does."""
    return _passed_on(project, name, stack_id, "changes")


@field.get(f"{PLACE}/names")
def names(project: str, name: str, stack_id: str) -> Response:
    """Return the names of a range, each with the address of its page."""
    query = {key: request.args.get(key, "") for key in ("start", "count")}
    body = api().get(stack_path(project, name, stack_id, "field", "names"), query)
    for item in body["resources"]:
        if item is not None:
            stack = url_for(".show", project=project, name=item["stack_name"], stack_id=item["stack_id"])
            item["url"] = f"{stack.removesuffix('/field')}/resources/{item['resource_name']}"
    return Response(orjson.dumps(body), mimetype="application/json")


def _passed_on(project: str, name: str, stack_id: str, *parts: str) -> Response:
    headers = {
        key: request.headers[header]
        for key, header in (
            ("HTTP_IF_NONE_MATCH", "If-None-Match"),
            ("HTTP_ACCEPT_ENCODING", "Accept-Encoding"),
        )
        if header in request.headers
    }
    query = {key: request.args.get(key, "") for key in (("order", "cursor") if parts else ("at", "draft"))}
    path = stack_path(project, name, stack_id, "field", *parts)
    chunks, status, found = api().open(path, query, headers=headers)
    body = b"".join(chunks)
    if status >= 400:
        raise ApiError(status, orjson.loads(body) if body else {})
    response = Response(body, status, mimetype=found.get("Content-Type"))
    for header in ("ETag", "Cache-Control", "Content-Encoding", "Vary"):
        if header in found:
            response.headers[header] = found[header]
    return response
