"""Snapshots of a stack: create, list, show, delete, restore (docs/internals/rest-api.md §11)."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
from flask import Blueprint, Response, request

from api.dependencies import Dependencies, dependencies, operation_context
from api.request import query_params
from api.request.body import read_body
from api.request.stack_lookup import get_stack
from api.response.serialization import NextPage, link, time
from api.v1.stack_documents import read_first_slice
from orchestrator.errors import NotFound
from orchestrator.operations import offload
from orchestrator.operations.adoption import export
from orchestrator.operations.snapshots import snapshots as operations
from orchestrator.store.snapshots import SnapshotRow, of_stack
from orchestrator.store.stacks.stacks import StackRow

snapshots = Blueprint("snapshots", __name__)


@snapshots.post("/<project_id>/stacks/<stack_name>/<stack_id>/snapshots")
def create(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """Start a snapshot; workers complete it later. With `wait` it is queued during another action."""
    stack, context = get_stack(stack_name, stack_id), operation_context()
    wait = query_params.boolean("wait")
    with read_body(request, context.settings, small=True) as body:
        accepted = operations.take(context, stack, body, wait=wait)
    dependencies().publish(accepted.messages)
    return _json(_body(accepted.snapshot, stack, dependencies()))


@snapshots.get("/<project_id>/stacks/<stack_name>/<stack_id>/snapshots")
def index(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - as above
    """List the snapshots, oldest first."""
    stack, deps, next_page = get_stack(stack_name, stack_id), dependencies(), NextPage()
    marker, limit = query_params.text("marker"), query_params.integer("limit")

    def listed() -> Iterator[bytes]:
        yield b'{"snapshots":['
        number, last = 0, ""
        for row in of_stack(deps.database, stack, marker=marker, limit=limit):
            if number:
                yield b","
            yield from _body(row, stack, deps)
            number, last = number + 1, str(row.uuid)
        if limit is not None and 0 < limit == number:
            yield b'],"links":' + orjson.dumps([link("next", next_page.after(last))]) + b"}"
        else:
            yield b"]}"

    return _json(listed())


@snapshots.get("/<project_id>/stacks/<stack_name>/<stack_id>/snapshots/<snapshot_id>")
def show(project_id: str, stack_name: str, stack_id: str, snapshot_id: str) -> Response:  # noqa: ARG001 - as above
    """Return a snapshot."""
    stack = get_stack(stack_name, stack_id)
    body = _body(operations.find(operation_context(), stack, snapshot_id), stack, dependencies())
    return _json(piece for pieces in ((b'{"snapshot":',), body, (b"}",)) for piece in pieces)


@snapshots.delete("/<project_id>/stacks/<stack_name>/<stack_id>/snapshots/<snapshot_id>")
def delete(project_id: str, stack_name: str, stack_id: str, snapshot_id: str) -> Response:  # noqa: ARG001 - as above
    """Delete a snapshot with its resource snapshots."""
    stack, context = _live(stack_name, stack_id), operation_context()
    operations.remove(context, stack, snapshot_id)
    return Response(status=204)


@snapshots.post("/<project_id>/stacks/<stack_name>/<stack_id>/snapshots/<snapshot_id>/restore")
def restore(project_id: str, stack_name: str, stack_id: str, snapshot_id: str) -> Response:  # noqa: ARG001 - as above
    """Start to restore the stack from a snapshot."""
    stack, context = _live(stack_name, stack_id), operation_context()
    dependencies().publish(offload.restore(context, stack, snapshot_id))
    return Response(status=202)


def _live(name: str, id_: str) -> StackRow:
    stack = get_stack(name, id_)
    if stack.deleted_at is not None:
        raise NotFound("Stack", name)
    return stack


def _body(row: SnapshotRow, stack: StackRow, has: Dependencies) -> Iterator[bytes]:
    """Yield a snapshot, including the stack in the format of an export."""
    head = {
        "id": str(row.uuid),
        "name": row.name,
        "action": row.action,
        "status": row.status,
        "status_reason": row.status_reason,
        "creation_time": time(row.created_at),
    }
    yield orjson.dumps(head)[:-1] + b',"data":'
    yield from export.export_snapshot(has.database, has.cipher, stack, row)
    yield b"}"


def _json(slices: Iterator[bytes]) -> Response:
    return Response(read_first_slice(slices), mimetype="application/json")
