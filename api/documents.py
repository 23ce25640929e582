"""What a stack was made from: template, environment, files (spec/rest-api.md §9); also of a deleted one."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from flask import Blueprint, Response

from api.formats import MASK, json_response
from api.identity import canonical
from api.parts import parts
from orchestrator.errors import NotFound
from orchestrator.store.database import Database
from orchestrator.store.revisions import RevisionRow, desired, read_content
from orchestrator.template.template import Template

documents = Blueprint("documents", __name__)


@documents.get("/<project_id>/stacks/<stack_name>/<stack_id>/template")
def template(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """Send the template as it is stored."""
    return template_of(_revision(stack_name, stack_id))


@documents.get("/<project_id>/stacks/<stack_name>/<stack_id>/environment")
def environment(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - as above
    """Show the user's environment, values of hidden parameters masked."""
    return environment_of(_revision(stack_name, stack_id))


@documents.get("/<project_id>/stacks/<stack_name>/<stack_id>/files")
def files(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - as above
    """Send the files, name to content."""
    return files_of(_revision(stack_name, stack_id))


def template_of(revision: RevisionRow) -> Response:
    """Send a revision's template in slices: it may be larger than this process should be."""
    slices = read_content(parts().database, revision.template_hash)
    return Response(_begun(slices), mimetype="application/json")


def environment_of(revision: RevisionRow) -> Response:
    """Show a revision's environment, values of hidden parameters masked."""
    shown: dict[str, Any] = {
        "parameters": {},
        "parameter_defaults": {},
        "resource_registry": {"resources": {}},
        "encrypted_param_names": [],
        "event_sinks": [],
        **revision.environment,
    }
    schemas = Template.from_outline(revision.outline).parameters
    hidden = {name for name, schema in schemas.items() if schema.hidden}
    hidden.update(shown["encrypted_param_names"] or ())
    for section in ("parameters", "parameter_defaults"):
        values: Mapping[str, Any] = shown[section] or {}
        shown[section] = {name: MASK if name in hidden else value for name, value in values.items()}
    shown["resource_registry"] = {"resources": {}, **(shown["resource_registry"] or {})}
    return json_response(shown)


def files_of(revision: RevisionRow) -> Response:
    """Send a revision's files, name to content, in slices."""
    return Response(_begun(_map_of_files(parts().database, revision.files)), mimetype="application/json")


def _revision(stack_name: str, stack_id: str) -> RevisionRow:
    revision = desired(parts().database, canonical(stack_name, stack_id))
    if revision is None:
        raise NotFound("Stack", stack_name)
    return revision


def _map_of_files(database: Database, hashes: Mapping[str, str]) -> Iterator[bytes]:
    yield b"{"
    for number, (name, digest) in enumerate(hashes.items()):
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        yield (b"," if number else b"") + orjson.dumps(name) + b':"'
        for slice_ in read_content(database, bytes.fromhex(digest)):
            yield orjson.dumps(decode(slice_))[1:-1]  # a character cut in two waits for its other half
        yield orjson.dumps(decode(b"", final=True))[1:-1] + b'"'
    yield b"}"


def _begun(slices: Iterator[bytes]) -> Iterator[bytes]:
    """Read the first slice now, so that what fails at once fails with a status."""
    first = next(slices, b"null")

    def rest() -> Iterator[bytes]:
        yield first
        yield from slices

    return rest()
