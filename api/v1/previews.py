"""Previews of creates and updates (docs/internals/rest-api.md §5.5, §5.7).

Resources have the format of Heat's engine: separate action and status, identities instead of links.
`because`, `certain`, `changed_properties` and `unknown_properties` are extensions.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import orjson
from flask import Blueprint, Response, request

from api.dependencies import caller, dependencies, operation_context
from api.request import query_params
from api.request.body import read_body
from api.request.stack_lookup import get_stack
from api.response.serialization import Links, json_slices, link, streamed_response, time
from api.v1.outputs import output_body
from api.v1.resources import shown_attributes, shown_metadata
from api.v1.stacks import NO_DESCRIPTION, warnings_of
from orchestrator.json_types import JsonObject
from orchestrator.operations.preview.create import PlannedResource
from orchestrator.operations.preview.update import ResourceChange, UpdatePreview
from orchestrator.operations.runtime.turns import pass_on
from orchestrator.store.connections.streaming import ROWS_WITH_VALUES
from orchestrator.store.stacks.resources import ResourceRow, get_incarnations, list_resources
from orchestrator.store.stacks.stacks import StackRow

previews = Blueprint("previews", __name__)

UNTOUCHED: Final = {"unchanged": True}
TURNS: Final = ("unchanged", "updated", "replaced", "added", "deleted")
Form = JsonObject


@previews.post("/<project_id>/stacks/preview")
def create(project_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """Return the stack that a create would make."""
    context = operation_context()
    with read_body(request, context.settings) as body:
        preview = dependencies().operations.preview_create(context, body)
    identity = _EngineFormat(context.caller.project_id, preview.name, "None")
    described = preview.description or NO_DESCRIPTION
    visible = {
        "id": "None",
        "links": [link("self", Links().stack(context.caller.project_id, preview.name, "None"))],
        "stack_name": preview.name,
        "creation_time": time(dt.datetime.now(dt.UTC)),
        "updated_time": None,
        "deletion_time": None,
        "description": described,
        "template_description": described,
        "parameters": preview.parameters,
        "outputs": [output_body(output) for output in preview.outputs],
        "disable_rollback": preview.disable_rollback,
        "timeout_mins": preview.timeout_mins,
        "stack_owner": caller().user or None,
        "parent": None,
        "stack_user_project_id": None,
        "tags": list(preview.tags),
        "capabilities": [],
        "notification_topics": [],
    }
    resources = (_created(identity, item) for item in preview.resources)
    return streamed_response(_created_chunks(visible, resources, warnings_of(preview)))


def _created_chunks(stack: Form, resources: Iterator[Form | list[Any]], further: Form) -> Iterator[bytes]:
    """Yield the response as it is made, the resources as the last field of the stack."""
    yield b'{"stack":' + orjson.dumps(stack, default=str).removesuffix(b"}") + b',"resources":['
    yield from json_slices(resources)
    yield b"]}"
    yield from _fields(further)
    yield b"}"


def _created(identity: _EngineFormat, resource: PlannedResource) -> Form | list[Any]:
    """Return a planned resource; a nested stack is the list of its resources."""
    if resource.nested is not None:
        pass_on()
        inner = _EngineFormat(identity.stack["tenant"], resource.nested.name, "None", parent=resource.name)
        return [_created(inner, two) for two in resource.nested.resources]
    form = identity.planned(
        resource.name,
        resource.type,
        resource.required_by,
        resource.description,
        resource.attributes,
        resource.metadata,
    )
    unknown = {"unknown_properties": list(resource.unknown)} if resource.unknown else {}
    return form | {"properties": resource.properties} | unknown


@previews.route("/<project_id>/stacks/<stack_name>/<stack_id>/preview", methods=["PUT", "PATCH"])
def update(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """Return the effect of an update on each resource."""
    nested, patch = query_params.boolean("show_nested"), request.method == "PATCH"
    stack, context = get_stack(stack_name, stack_id), operation_context()
    with read_body(request, context.settings) as body:
        preview = dependencies().operations.preview_update(
            context, stack, body, patch=patch, show_nested=nested
        )
    return streamed_response(_chunks(_lists(stack, preview), warnings_of(preview)))


class _EngineFormat:
    """Formats the resources of one stack as Heat's engine does."""

    def __init__(self, project_id: str, name: str, stack_id: str, parent: str | None = None) -> None:
        self.nested = {} if parent is None else {"parent_resource": parent}
        self.name, self.deps = name, dependencies()  # the request has ended when a long response is written
        self.stack = {"tenant": project_id, "stack_name": name, "stack_id": stack_id, "path": ""}

    def existing(self, row: ResourceRow, required_by: Sequence[str]) -> Form:
        """Return an existing resource."""
        existing_fields = {
            "creation_time": time(row.created_at),
            "updated_time": time(row.updated_at or row.created_at),
            "physical_resource_id": row.physical_id or "",
            "resource_action": row.action,
            "resource_status": row.status,
            "resource_status_reason": row.status_reason,
            "metadata": shown_metadata(row, self.deps.types, self.deps.cipher),
            "attributes": shown_attributes(row, self.deps.types, self.deps.cipher),
        }
        return self.planned(row.name, row.type, required_by, row.description, (), None) | existing_fields

    def planned(
        self,
        name: str,
        type_name: str,
        required_by: Sequence[str],
        description: str,
        attributes: Sequence[str],
        metadata: object,
    ) -> Form:
        """Return a resource that does not exist yet."""
        return {
            "resource_name": name,
            "resource_type": type_name,
            "physical_resource_id": "",
            "resource_action": "INIT",
            "resource_status": "COMPLETE",
            "resource_status_reason": "",
            "creation_time": None,
            "updated_time": None,
            "resource_identity": {**self.stack, "path": f"/resources/{name}"},
            "stack_identity": self.stack,
            "stack_name": self.name,
            "required_by": list(required_by),
            "description": description,
            "metadata": metadata or {},
            "attributes": dict.fromkeys(attributes),
            **self.nested,
        }


def _lists(stack: StackRow, preview: UpdatePreview) -> Mapping[str, Iterator[Form]]:
    """Return each list as a generator, so that memory does not grow with the number of unchanged resources.

    A nested stack is always listed under `updated`: Heat delegates to the nested stack in any case, and its
    clients rely on that. A nested stack without changes has `unchanged`.
    """
    every = [
        (entry, row, _identity(stack.project_id, entry, row))
        for entry, row in ((preview, stack), *((entry, entry.stack) for entry in preview.nested))
    ]

    def of(turn: str) -> Iterator[Form]:
        for entry, row, identity in every:
            result, same = entry.items.get("unchanged", ()), frozenset(entry.unchanged)
            if turn == "unchanged":
                yield from _unchanged(row, identity, same - frozenset(entry.stacks))
                result = [item for item in result if item.expected.name not in entry.stacks]
                yield from _touched(row, identity, result)
                continue
            yield from _touched(row, identity, entry.items.get(turn, ()))
            if turn == "updated":
                result = [item for item in result if item.expected.name in entry.stacks]
                quiet = _unchanged(row, identity, same & frozenset(entry.stacks))
                yield from (form | UNTOUCHED for form in chain(quiet, _touched(row, identity, result)))

    return {turn: of(turn) for turn in TURNS}


def _identity(project_id: str, preview: UpdatePreview, stack: StackRow | None) -> _EngineFormat:
    if stack is None:
        return _EngineFormat(project_id, preview.name, "None", parent=preview.parent)
    return _EngineFormat(project_id, stack.name, str(stack.uuid), parent=stack.parent_resource)


def _unchanged(stack: StackRow | None, identity: _EngineFormat, names: Collection[str]) -> Iterator[Form]:
    if names and stack is not None:
        for row in list_resources(identity.deps.database, stack, with_values=True):
            if row.name in names:
                yield identity.existing(row, row.required_by)


def _touched(
    stack: StackRow | None, identity: _EngineFormat, items: Sequence[ResourceChange]
) -> Iterator[Form]:
    for start in range(0, len(items), ROWS_WITH_VALUES):
        part = items[start : start + ROWS_WITH_VALUES]
        ids = [item.row_id for item in part if item.row_id is not None]
        rows = get_incarnations(identity.deps.database, stack, ids) if ids and stack is not None else {}
        for item in part:
            row = rows.get(item.row_id or 0)
            yield _touched_one(identity, item, row)


def _touched_one(identity: _EngineFormat, item: ResourceChange, row: ResourceRow | None) -> Form:
    expected = item.expected
    if row is None:
        form = identity.planned(
            expected.name, item.type, item.required_by, item.description, item.attributes, expected.metadata
        )
    else:
        form = identity.existing(row, item.required_by)
    if expected.turn != "deleted":
        form["resource_type"] = item.type
        form["description"] = item.description
    return form | {
        "because": expected.because,
        "certain": expected.certain,
        "restricted_action": expected.restricted or None,
        "changed_properties": {name: list(pair) for name, pair in expected.changed.items()},
        "unknown_properties": list(expected.unknown),
    }


def _chunks(lists: Mapping[str, Iterator[Form]], further: Form) -> Iterator[bytes]:
    """Yield the response as it is read, with `further` fields at the end."""
    started = b'{"resource_changes":{'
    for turn, forms in lists.items():
        yield started + orjson.dumps(turn) + b":["
        yield from json_slices(forms)
        started = b"],"
    yield b"]}"
    yield from _fields(further)
    yield b"}"


def _fields(further: Form) -> Iterator[bytes]:
    for name, value in further.items():
        yield b"," + orjson.dumps(name) + b":" + orjson.dumps(value)
