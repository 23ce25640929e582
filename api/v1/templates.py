"""Template validation, template versions and their functions (docs/internals/rest-api.md §10)."""

from __future__ import annotations

from typing import Final

from flask import Blueprint, Response, request

from api.dependencies import dependencies, operation_context
from api.request import query_params
from api.request.body import read_body
from api.response.errors import TemplateVersionNotFound
from api.response.function_descriptions import description_of
from api.response.serialization import json_response
from orchestrator.errors import InvalidRequest
from orchestrator.template.formats import all_formats, find_format
from orchestrator.template.functions import Function

UNAVAILABLE: Final = "99001"  # code of a known type whose service is not installed
IGNORABLE: Final = frozenset({UNAVAILABLE})

templates = Blueprint("templates", __name__)


@templates.post("/<project_id>/validate")
def validate(project_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """Validate a template; every fault is a 400."""
    requested = {name: query_params.boolean(name) for name in ("show_nested", "with_warnings")}
    ignored = query_params.comma_separated("ignore_errors")
    unknown = [code for code in ignored if code not in IGNORABLE]
    if unknown:
        raise InvalidRequest(f"Invalid codes in ignore_errors : {unknown}")
    context = operation_context()
    with read_body(request, context.settings) as body:
        result = dependencies().operations.validate(
            context, body, overlook=UNAVAILABLE in ignored, **requested
        )
        return json_response(result)


@templates.get("/<project_id>/template_versions")
def version_index(project_id: str) -> Response:  # noqa: ARG001 - as above
    """List the template versions by date, with their aliases."""
    listed = [
        {
            "version": f"{form.key}.{form.version}",
            "type": form.family,
            "aliases": [f"{form.key}.{alias}" for alias in form.aliases],
        }
        for form in sorted(all_formats().values(), key=lambda form: (form.key, form.version))
    ]
    return json_response({"template_versions": listed})


@templates.get("/<project_id>/template_versions/<version>/functions")
def function_index(project_id: str, version: str) -> Response:  # noqa: ARG001 - as above
    """List the functions of a template version."""
    with_conditions = query_params.boolean("with_condition_func")
    key, _, value = version.partition(".")
    form = find_format(key, value)
    if form is None:
        raise TemplateVersionNotFound(f"Template with version {version} not found")
    functions: dict[str, Function] = dict(form.callable)
    if with_conditions:
        functions |= form.condition_functions
    listed = [
        {"functions": name, "description": description_of(name, function, form)}
        for name, function in sorted(functions.items())
    ]
    return json_response({"template_functions": listed})
