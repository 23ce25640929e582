"""Resource types, build and workers of this installation (docs/internals/rest-api.md §10.2, §13)."""

from __future__ import annotations

import datetime as dt
from typing import Final

from flask import Blueprint, Response

import orchestrator
from api.dependencies import caller, dependencies
from api.middleware.authorization import require_named
from api.request import query_params
from api.response.errors import fault
from api.response.serialization import json_response
from orchestrator.json_types import JsonObject
from orchestrator.operations.validation.available_types import AvailableTypes
from orchestrator.operations.validation.cloud_services import services_of_caller
from orchestrator.resources import type_schema as types
from orchestrator.security.policy import policy_of, type_policy
from orchestrator.store.maintenance import workers
from orchestrator.store.maintenance.workers import WorkerRow

catalogue = Blueprint("catalogue", __name__)

BINARY: Final = "orchestrator-worker"


@catalogue.get("/<project_id>/resource_types")
def type_index(project_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """List the resource types."""
    listed = types.list_types(
        _offered(),
        support_status=query_params.text("support_status"),
        name=query_params.text("name"),
        version=query_params.text("version"),
        with_description=query_params.boolean("with_description"),
    )
    return json_response({"resource_types": listed})


@catalogue.get("/<project_id>/resource_types/<type_name>")
def type_schema(project_id: str, type_name: str) -> Response:  # noqa: ARG001 - as above
    """Return the properties and attributes of a type."""
    described = query_params.boolean("with_description")
    return json_response(types.type_schema(_offered(), type_name, with_description=described))


@catalogue.get("/<project_id>/resource_types/<type_name>/template")
def type_template(project_id: str, type_name: str) -> Response:  # noqa: ARG001 - as above
    """Return a template with a single resource of the type."""
    return json_response(
        types.type_template(_offered(), type_name, query_params.text("template_type") or "cfn")
    )


def _offered() -> AvailableTypes:
    deps = dependencies()
    enter = type_policy(policy_of(deps.settings), caller())
    return AvailableTypes(deps.types, deps.settings, enter, services_of_caller(deps.settings, caller()))


@catalogue.get("/<project_id>/build_info")
def build_info(project_id: str) -> Response:  # noqa: ARG001 - as above
    """Return the versions of the API and the engine."""
    build = {"revision": orchestrator.__version__}  # API and workers are the same package
    return json_response({"api": build, "engine": build})


@catalogue.get("/<project_id>/services")
def services(project_id: str) -> Response:  # noqa: ARG001 - as above
    """List the workers, which Heat's clients know as engines; for operators."""
    if dependencies().settings.auth != "none":  # without authentication every caller is the operator
        require_named("service:index")
    rows = workers.list_workers(dependencies().database)
    if not any(worker.is_up for worker in rows):
        return fault(503, "HTTPServiceUnavailable", "All heat engines are down.")
    return json_response({"services": [_service(worker) for worker in rows]})


def _service(worker: WorkerRow) -> JsonObject:
    return {
        "id": str(worker.uuid),
        "engine_id": str(worker.uuid),
        "binary": BINARY,
        "host": worker.name,
        "hostname": worker.hostname,
        "topic": worker.queues,
        "report_interval": worker.report_interval,
        "created_at": _time_with_microseconds(worker.created_at),
        "updated_at": _time_with_microseconds(worker.updated_at),
        "deleted_at": None,
        "status": "up" if worker.is_up else "down",
    }


def _time_with_microseconds(value: dt.datetime) -> str:
    """Return a time in the format of this endpoint: microseconds, UTC without a zone."""
    return value.astimezone(dt.UTC).replace(tzinfo=None).isoformat(timespec="microseconds")
