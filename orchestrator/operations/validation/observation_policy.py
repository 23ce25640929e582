"""The policy of the observation to which an environment refers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orchestrator.errors import Diagnostic
from orchestrator.json_types import JsonMapping
from orchestrator.operations.context import OperationContext
from orchestrator.operations.request_body import StackRequest
from orchestrator.store.observation import rules
from orchestrator.template.environment import NAME, Environment
from orchestrator.template.fault_locations import placed
from orchestrator.template.parse import Limits, parse

SECTION = "observation_policy"


def policy_faults(
    context: OperationContext, request: StackRequest, environment: Environment
) -> list[Diagnostic]:
    """Return the fault of an environment whose policy the project does not have, with its location."""
    name = environment.observation_policy
    if not name or _exists(context, name):
        return []
    message = f"The project has no observation policy named '{name}'"
    fault = Diagnostic("unknown-observation-policy", message, SECTION, heat_type="HTTPBadRequest")
    limits = Limits.of(context.settings)
    for file, source in reversed(_sources(request)):
        if not isinstance(source, str | bytes):
            continue
        document = parse(source, limits, NAME)
        if isinstance(document, Mapping) and document.get(SECTION) == name:
            return [replace(found, file=file) for found in placed([fault], source, document)]
    return [replace(fault, file=NAME)]


def kept_policy(context: OperationContext, stored: JsonMapping) -> str:
    """Return the policy of a stored environment, unless it was removed since."""
    name = stored.get(SECTION)
    return name if isinstance(name, str) and _exists(context, name) else ""


def _exists(context: OperationContext, name: str) -> bool:
    with context.database.borrow(hot=False) as db:
        return rules.is_named(db, context.caller.project_id, name)


def _sources(request: StackRequest) -> list[tuple[str, Any]]:
    """Return the texts of environments, the first to be overridden first."""
    names = request.environment_files
    return [(name, request.files.get(name)) for name in names] or [(NAME, request.environment)]
