"""Stack documents: export, and abandon with all nested stacks (docs/internals/rest-api.md §11.3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Final

from flask import Blueprint, Response

from api.dependencies import dependencies, operation_context
from api.request.stack_lookup import get_stack
from api.v1.stack_documents import read_first_slice
from orchestrator.operations.adoption import adopt_abandon as operations

adoption = Blueprint("adoption", __name__)

CHUNK: Final = 1 << 16


@adoption.get("/<project_id>/stacks/<stack_name>/<stack_id>/export")
def export(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """Return the stack as a document."""
    stack = get_stack(stack_name, stack_id)
    document = operations.exported(operation_context(), stack)
    return Response(read_first_slice(document), mimetype="application/json")


@adoption.delete("/<project_id>/stacks/<stack_name>/<stack_id>/abandon")
def abandon(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - as above
    """Abandon the stack and return it as a document."""
    stack = get_stack(stack_name, stack_id)
    abandoned = operations.abandon(operation_context(), stack)
    dependencies().publish(abandoned.messages)
    response = Response(_read(abandoned.document), mimetype="application/json")
    response.call_on_close(abandoned.document.close)  # even if the client disconnects
    return response


def _read(document: IO[bytes]) -> Iterator[bytes]:
    with document:
        while chunk := document.read(CHUNK):
            yield chunk
