"""Templates as such: validation, the versions of the language and their functions (spec/rest-api.md §10)."""

from __future__ import annotations

from typing import Final

from flask import Blueprint, Response, request

from api import queries
from api.body import received
from api.faults import TemplateVersionNotFound
from api.formats import json_response
from api.parts import operation_context, parts
from orchestrator.errors import InvalidRequest
from orchestrator.template import versions
from orchestrator.template.functions import callable_functions

IGNORABLE: Final = frozenset({"99001"})  # a type whose service is not there: none needs one yet

templates = Blueprint("templates", __name__)


@templates.post("/<project_id>/validate")
def validate(project_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """Check a template without making anything of it; every fault is a 400."""
    queries.boolean("show_nested")  # nothing is nested yet
    unknown = [code for code in queries.words("ignore_errors") if code not in IGNORABLE]
    if unknown:
        raise InvalidRequest(f"Invalid codes in ignore_errors : {unknown}")
    context = operation_context()
    with received(request, context.settings) as body:
        return json_response(parts().operations.validate(context, body))


@templates.get("/<project_id>/template_versions")
def version_index(project_id: str) -> Response:  # noqa: ARG001 - as above
    """List the versions of the language, each under its date with the names it also has."""
    listed = [
        {
            "version": f"{versions.HOT_KEY}.{version}",
            "type": "hot",
            "aliases": [
                f"{versions.HOT_KEY}.{alias}" for alias, date in versions.ALIASES.items() if date == version
            ],
        }
        for version in versions.VERSIONS
    ]
    return json_response({"template_versions": listed})


@templates.get("/<project_id>/template_versions/<version>/functions")
def function_index(project_id: str, version: str) -> Response:  # noqa: ARG001 - as above
    """List the functions that a template of this version can call here."""
    queries.boolean("with_condition_func")  # no function is for conditions only yet
    key, _, value = version.partition(".")
    date = versions.ALIASES.get(value, value)
    if key != versions.HOT_KEY or date not in versions.VERSIONS:
        raise TemplateVersionNotFound(f"Template with version {version} not found")
    listed = [
        {"functions": name, "description": _first_line(function.call.__doc__)}
        for name, function in sorted(callable_functions(date).items())
    ]
    return json_response({"template_functions": listed})


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]
