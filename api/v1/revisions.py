"""Revisions of a stack: list, show, diff, rollback, and causes of failure.

An extension: Heat keeps only the previous template and reports only the first cause.
"""

from __future__ import annotations

import re
from typing import Final

from flask import Blueprint, Response

from api.dependencies import dependencies, operation_context
from api.request import query_params
from api.request.stack_lookup import get_stack
from api.response.failures import cause_body, failure_body
from api.response.serialization import Links, below, json_list, json_response, link, time
from api.v1.stack_documents import environment_of, files_of, template_of
from api.v1.stacks import NO_DESCRIPTION, parameters_of
from orchestrator.errors import NotFound
from orchestrator.json_types import JsonObject
from orchestrator.operations.diagnosis.failure_tree import tree
from orchestrator.store.stacks import history
from orchestrator.store.stacks.history import RevisionHistory
from orchestrator.store.stacks.revisions import RevisionRow
from orchestrator.store.stacks.stacks import StackRow

revisions = Blueprint("revisions", __name__)

DIGITS: Final = re.compile(r"[0-9]{1,18}")
STACK: Final = "/<project_id>/stacks/<stack_name>/<stack_id>"


@revisions.get(f"{STACK}/revisions")
def index(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """List the revisions, newest first; the marker is a revision number."""
    stack, links = get_stack(stack_name, stack_id), Links()
    query_params.require_known("marker", "limit")
    marker, limit = query_params.integer("marker"), query_params.integer("limit")
    rows = history.list_revisions(dependencies().database, stack, before=marker, limit=limit)
    return json_list("revisions", (_body(row, stack, links) for row in rows))


@revisions.get(f"{STACK}/revisions/<number>")
def show(project_id: str, stack_name: str, stack_id: str, number: str) -> Response:  # noqa: ARG001 - as above
    """Return a revision with its effects and parameters."""
    stack = get_stack(stack_name, stack_id)
    row, revision = _chapter(stack, number), _revision(stack, number)
    did = history.revision_effects(dependencies().database, stack, row)
    counted = ("created", "updated", "replaced", "deleted", "failed")
    traversals = [row.traversal] if row.traversal is not None else []
    visible = {
        **_body(row, stack, Links()),
        "reason": did.reason if did is not None else None,
        "resources": {name: getattr(did, name) for name in counted} if did is not None else None,
        "failures": history.count_failures(dependencies().database, stack, traversals),
        "description": revision.outline.get("description") or NO_DESCRIPTION,
        "parameters": parameters_of(stack, revision),
        "files": sorted(revision.files),
    }
    return json_response({"revision": visible})


@revisions.get(f"{STACK}/revisions/<number>/template")
def template(project_id: str, stack_name: str, stack_id: str, number: str) -> Response:  # noqa: ARG001 - as above
    """Return a revision's template as stored."""
    return template_of(_revision(get_stack(stack_name, stack_id), number))


@revisions.get(f"{STACK}/revisions/<number>/environment")
def environment(project_id: str, stack_name: str, stack_id: str, number: str) -> Response:  # noqa: ARG001
    """Return a revision's environment with the values of hidden parameters masked."""
    return environment_of(_revision(get_stack(stack_name, stack_id), number))


@revisions.get(f"{STACK}/revisions/<number>/files")
def files(project_id: str, stack_name: str, stack_id: str, number: str) -> Response:  # noqa: ARG001 - as above
    """Return a revision's files, name to content."""
    return files_of(_revision(get_stack(stack_name, stack_id), number))


@revisions.get(f"{STACK}/revisions/<before>/diff/<after>")
def diff(project_id: str, stack_name: str, stack_id: str, before: str, after: str) -> Response:  # noqa: ARG001
    """Return the differences between two revisions."""
    stack, context = get_stack(stack_name, stack_id), operation_context()
    item, other = _chapter(stack, before), _chapter(stack, after)
    differences = dependencies().operations.diff_revisions(context, stack, item.number, other.number)
    compared = {"before": item.number, "after": other.number, "reached": stack.reached}
    return json_response({"diff": {**compared, "sections": differences}})


@revisions.post(f"{STACK}/revisions/<number>/rollback")
def rollback(project_id: str, stack_name: str, stack_id: str, number: str) -> Response:  # noqa: ARG001 - as above
    """Roll the stack back to a revision, also during another action."""
    stack = get_stack(stack_name, stack_id)
    messages = dependencies().operations.roll_back(operation_context(), stack, _chapter(stack, number).number)
    dependencies().publish(messages)
    return Response(status=202)


@revisions.get(f"{STACK}/failures")
def failures(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - as above
    """List all causes of a failure of the stack or of a revision, in chronological order.

    After a rollback these are the causes of the rolled back action; after a delete, of the last failed action
    before it. With `nested_depth` each cause includes the causes in its nested stack.
    """
    stack, links = get_stack(stack_name, stack_id), Links()
    query_params.require_known("revision", "nested_depth", "marker", "limit")
    chosen = query_params.text("revision")
    if chosen is not None:
        traversal = _chapter(stack, chosen).traversal
        traversals = [] if traversal is None else [traversal]
    else:
        traversals = history.failures_of(dependencies().database, stack)
    if levels := query_params.levels():
        causes, has_more = tree(dependencies().database, stack, traversals, levels)
        return json_response({"failures": [cause_body(node, links) for node in causes], "more": has_more})
    marker, limit = query_params.text("marker") or "", query_params.integer("limit")
    after = int(marker) if DIGITS.fullmatch(marker) else None
    rows = history.list_failures(dependencies().database, stack, traversals, after=after, limit=limit)
    return json_list("failures", (failure_body(row, stack, links) for row in rows))


def _chapter(stack: StackRow, number: str) -> RevisionHistory:
    row = history.revision_history(dependencies().database, stack, _number(number))
    if row is None:
        raise NotFound("Revision", number)
    return row


def _revision(stack: StackRow, number: str) -> RevisionRow:
    row = history.numbered(dependencies().database, stack, _number(number))
    if row is None:
        raise NotFound("Revision", number)
    return row


def _number(text: str) -> int:
    """Return the revision number in a path or a query.

    Raises:
        NotFound: the value is not a number, so no such revision exists.
    """
    if not DIGITS.fullmatch(text):
        raise NotFound("Revision", text)
    return int(text)


def _body(row: RevisionHistory, stack: StackRow, links: Links) -> JsonObject:
    """Return the summary of a revision; a revision in progress has no outcome."""
    ended = row.ended_at
    return {
        "number": row.number,
        "action": row.action,
        "outcome": row.outcome,
        "is_desired": row.is_desired,
        "is_last_good": row.is_last_good,
        "copy_of": row.copy_of,
        "created_by": row.created_by or None,
        "creation_time": time(row.created_at),
        "ended_time": time(ended),
        "seconds": round((ended - row.created_at).total_seconds(), 3) if ended is not None else None,
        "links": [
            link("self", below(links.of(stack), "revisions", str(row.number))),
            link("stack", links.of(stack)),
        ],
    }
