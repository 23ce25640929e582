"""Outputs of a stack (docs/internals/rest-api.md §9). Values are not masked, since the template's author
asked for them, except in the list. An output whose value contains a secret is marked as `secret`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from flask import Blueprint, Response, g

from api.dependencies import caller, dependencies, outputs_of
from api.middleware import audit_records
from api.request import query_params
from api.request.stack_lookup import get_stack
from api.response.errors import OutputNotFound
from api.response.serialization import json_response
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.operations.outputs.outputs import Output
from orchestrator.store.stacks import revisions
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.template.parameters import MASK

outputs = Blueprint("outputs", __name__)

NO_DESCRIPTION: Final = "No description given"


@outputs.get("/<project_id>/stacks/<stack_name>/<stack_id>/outputs")
def index(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """List the outputs; `with_values` (extension) adds the values, secret ones masked."""
    with_values, stack = query_params.boolean("with_values"), get_stack(stack_name, stack_id)
    declared = _outline(stack).get("outputs") or {}
    resolved = outputs_of(stack, live=with_values) if declared else ()
    if with_values:
        return json_response({"outputs": [_masked(output) for output in resolved]})
    marks = {output.key: _mark(output) for output in resolved}
    listed = [
        {"output_key": key, "description": _description(output), **marks.get(key, {})}
        for key, output in declared.items()
    ]
    return json_response({"outputs": listed})


@outputs.get("/<project_id>/stacks/<stack_name>/<stack_id>/outputs/<path:key>")
def show(project_id: str, stack_name: str, stack_id: str, key: str) -> Response:  # noqa: ARG001 - as above
    """Return an output with its value."""
    stack = get_stack(stack_name, stack_id)
    outline = _outline(stack)
    if key in (
        unwanted := outline.get("unwanted_outputs") or {}
    ):  # a deleted stack has no outputs, but their names are known
        body = {"output_key": key, "description": unwanted[key], "output_value": None}
        return json_response({"output": body})
    if key not in (outline.get("outputs") or {}):
        raise OutputNotFound(f"Specified output key {key} not found.")
    resolved = outputs_of(stack, [key])
    return json_response({"output": output_body(resolved[0])})


def output_body(output: Output) -> JsonObject:
    """Return an output with its value; a failed output has an error instead.

    Raises:
        Unavailable: the value contains a secret, and the required audit record cannot be written.
    """
    note_secret(output)
    return _body(output)


def _body(output: Output) -> JsonObject:
    body = {
        "output_key": output.key,
        "description": output.description or NO_DESCRIPTION,
        "output_value": output.value if output.error is None else None,
        **_mark(output),
    }
    return body if output.error is None else {**body, "output_error": output.error}


def _masked(output: Output) -> JsonObject:
    """Return an output with its value, which is masked as a whole if it contains a secret."""
    return _body(output) | ({"output_value": MASK} if _mark(output) else {})


def _mark(output: Output) -> JsonObject:
    """Return the mark of an output whose value contains a secret; nothing for other outputs."""
    return {"secret": True} if output.secret and output.error is None else {}


def note_secret(output: Output) -> None:
    """Audit an output whose value contains a secret.

    Raises:
        Unavailable: the required audit record cannot be written.
    """
    if _mark(output):
        audit_records.secret_read(g.get("policy_name", ""), caller())


def _outline(stack: StackRow) -> JsonMapping:
    revision = revisions.desired(dependencies().database, stack)
    outline: JsonMapping = revision.outline if revision else {}
    return outline


def _description(output: object) -> str:
    described = output.get("description") if isinstance(output, Mapping) else None
    return str(described) if described else NO_DESCRIPTION
