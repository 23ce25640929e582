"""What this installation knows: its resource types, its build (spec/rest-api.md §10.2, §13)."""

from __future__ import annotations

from flask import Blueprint, Response

from api import queries
from api.formats import json_response
from api.parts import parts
from orchestrator.operations.offered import OfferedTypes
from orchestrator.resources import catalogue as types

catalogue = Blueprint("catalogue", __name__)


@catalogue.get("/<project_id>/resource_types")
def type_index(project_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """List the types."""
    listed = types.list_types(
        _offered(),
        support_status=queries.text("support_status"),
        name=queries.text("name"),
        version=queries.text("version"),
        with_description=queries.boolean("with_description"),
    )
    return json_response({"resource_types": listed})


@catalogue.get("/<project_id>/resource_types/<type_name>")
def type_schema(project_id: str, type_name: str) -> Response:  # noqa: ARG001 - as above
    """Show a type's properties and attributes."""
    described = queries.boolean("with_description")
    return json_response(types.type_schema(_offered(), type_name, with_description=described))


@catalogue.get("/<project_id>/resource_types/<type_name>/template")
def type_template(project_id: str, type_name: str) -> Response:  # noqa: ARG001 - as above
    """Show a template of one such resource."""
    return json_response(types.type_template(_offered(), type_name, queries.text("template_type") or "cfn"))


def _offered() -> OfferedTypes:
    return OfferedTypes(parts().types, parts().settings)


@catalogue.get("/<project_id>/build_info")
def build_info(project_id: str) -> Response:  # noqa: ARG001 - as above
    """Say which builds answer."""
    return json_response({"api": {"revision": "unknown"}, "engine": {"revision": "unknown"}})
