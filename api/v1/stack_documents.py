"""Template, environment and files of a stack (docs/internals/rest-api.md §9), also of a deleted stack."""

from __future__ import annotations

from collections.abc import Iterator

from flask import Blueprint, Response

from api.dependencies import dependencies
from api.request.stack_lookup import get_stack
from api.response.serialization import json_response
from orchestrator.errors import NotFound
from orchestrator.operations.adoption.export import files_json, shown_environment, shown_template
from orchestrator.store.stacks.revisions import RevisionRow, desired

documents = Blueprint("documents", __name__)


@documents.get("/<project_id>/stacks/<stack_name>/<stack_id>/template")
def template(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """Return the template as stored; the child template of a group as HOT."""
    return template_of(_revision(stack_name, stack_id))


@documents.get("/<project_id>/stacks/<stack_name>/<stack_id>/environment")
def environment(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - as above
    """Return the user's environment with the values of hidden parameters masked."""
    return environment_of(_revision(stack_name, stack_id))


@documents.get("/<project_id>/stacks/<stack_name>/<stack_id>/files")
def files(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - as above
    """Return the files, name to content."""
    return files_of(_revision(stack_name, stack_id))


def template_of(revision: RevisionRow) -> Response:
    """Stream a revision's template, which may be too large for this process's memory."""
    return Response(
        read_first_slice(shown_template(dependencies().database, dependencies().cipher, revision)),
        mimetype="application/json",
    )


def environment_of(revision: RevisionRow) -> Response:
    """Return a revision's environment with the values of hidden parameters masked."""
    return json_response(shown_environment(revision))


def files_of(revision: RevisionRow) -> Response:
    """Stream a revision's files, name to content."""
    return Response(
        read_first_slice(files_json(dependencies().database, revision.files)), mimetype="application/json"
    )


def _revision(stack_name: str, stack_id: str) -> RevisionRow:
    revision = desired(dependencies().database, get_stack(stack_name, stack_id))
    if revision is None:
        raise NotFound("Stack", stack_name)
    return revision


def read_first_slice(slices: Iterator[bytes]) -> Iterator[bytes]:
    """Read the first slice now, so that an early error has an error status."""
    first = next(slices, b"null")

    def rest() -> Iterator[bytes]:
        yield first
        yield from slices

    return rest()
