"""Failures in the response format: a single cause, a tree of causes, or its leaves as diagnostics."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from api.dependencies import dependencies
from api.response.errors import diagnostic_body
from api.response.serialization import Links, below, link, time
from orchestrator.engine.check.outcome import OBSERVED_ERRORS
from orchestrator.engine.history.failure_kinds import FailureKind, classify
from orchestrator.errors import Diagnostic
from orchestrator.json_types import JsonObject
from orchestrator.operations.diagnosis.failure_locations import FailureLocator
from orchestrator.operations.diagnosis.failure_tree import FailureNode, tree
from orchestrator.resources.registry import Registry
from orchestrator.store.stacks import history
from orchestrator.store.stacks.history import FailureRow
from orchestrator.store.stacks.stacks import StackRow

MAX_LOCATED_BYTES: Final = 1 << 20  # bytes; line numbers are only computed for smaller templates


def failure_body(row: FailureRow, stack: StackRow, links: Links) -> JsonObject:
    """Return a cause: resource, location, time, reason and suggested next step."""
    url, reading = links.of(stack), classify(row.reason)
    return {
        "id": row.id,
        "resource_name": row.resource_name,
        "reason": row.reason,
        "failure_time": time(row.created_at),
        "revision": row.revision,
        "resource_type": row.resource_type,
        "physical_resource_id": row.physical_id,
        "action": row.action,
        "attempts": row.attempts,
        "class": reading.category,
        "error_type": reading.error_type,
        "service": reporting_service(dependencies().types, row.resource_type, reading),
        "request_id": reading.request_id,
        "next_step": reading.next_step,
        "links": [link("resource", below(url, "resources", row.resource_name)), link("stack", url)],
    }


def reporting_service(types: Registry, type_name: str | None, reading: FailureKind) -> str | None:
    """Return the service that reported the failure of a resource, None if it is unknown or none did."""
    if reading.service or reading.error_type not in OBSERVED_ERRORS:
        return reading.service
    resource_type = types.get(type_name or "")
    return (resource_type.service or None) if resource_type else None


def cause_body(node: FailureNode, links: Links) -> JsonObject:
    """Return a cause with the causes below it."""
    nested = None
    if node.nested is not None:
        nested = {"id": str(node.nested.uuid), "name": node.nested.name, "status": node.nested.state}
    return failure_body(node.row, node.stack, links) | {
        "path": list(node.path),
        "nested_stack": nested,
        "causes": [cause_body(cause, links) for cause in node.causes],
    }


def diagnostics(stack: StackRow, name: str | None = None) -> list[JsonObject]:
    """Return the failures of a stack, or of a resource in it, in the format of template faults.

    The line in the template of a nested stack is included if that template is a file.
    """
    database, levels = dependencies().database, dependencies().settings.max_nested_stack_depth
    failures, _ = tree(database, stack, history.failures_of(database, stack), levels)
    places = FailureLocator(database, MAX_LOCATED_BYTES)
    result = []
    for leaf, location in places.leaves([node for node in failures if name in (None, node.path[0])]):
        reading = classify(leaf.row.reason)
        fault = Diagnostic(
            code=reading.category,
            message=leaf.row.reason,
            path="resources." + ".resources.".join(leaf.path),
            hint=reading.next_step,
        )
        if location is not None:
            fault = replace(
                fault,
                file=location.file,
                line=location.line,
                column=location.column,
                excerpt=location.excerpt,
            )
        result.append(diagnostic_body(fault))
    return result
