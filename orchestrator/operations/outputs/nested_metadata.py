"""The metadata of a nested stack, evaluated against the current parent stack.

A signal that resizes a group changes no other resource of the group's stack, although the metadata of a
sibling may list the group's members. Heat evaluates the metadata of nested stacks after each signal. Here it
is evaluated when it is read, and stored by the next update.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.errors import OrchestratorError
from orchestrator.operations.context import OperationContext
from orchestrator.operations.outputs.outputs import EXPRESSIONS_SECONDS, OutputInputs, proxies
from orchestrator.operations.resource_context.state import GIVEN_METADATA
from orchestrator.operations.runtime.file_cache import FileCache
from orchestrator.operations.runtime.parameter_cache import pseudo_parameters, stored_values
from orchestrator.store.stacks import output_inputs
from orchestrator.template.definition import NO_ATTRIBUTES, StackDefinition
from orchestrator.template.functions.time_budget import time_budget


@time_budget(EXPRESSIONS_SECONDS)
def live_metadata(
    context: OperationContext, stack: OutputInputs, resource_id: int
) -> tuple[Mapping[str, Any], bool] | None:
    """Return the metadata, and whether it contains a secret.

    None if the stored metadata is current: it requires no other resource, was set by a signal, or cannot be
    evaluated.
    """
    found = output_inputs.metadata(context.database, resource_id, stack.revision_id)
    if found is None or not found.body.get("metadata") or not found.requires:
        return None
    data = context.cipher.open(found.sealed).get("data") if found.sealed else found.data
    if GIVEN_METADATA in (data or {}):
        return None
    body, given = found.body, pseudo_parameters(str(stack.uuid), stack.name, stack.project_id)
    view = StackDefinition(
        body["version"],
        stored_values(found.parameters, found.sealed_parameters, context.cipher, given),
        proxies(context.database, context.cipher, stack, set(found.requires)),
        FileCache(context.database).reader(body.get("files", NO_ATTRIBUTES)),
        mappings=body.get("mappings", NO_ATTRIBUTES),
    )
    try:
        made = view.resolve(body["metadata"], f"resources.{found.name}.metadata")
    except OrchestratorError:
        return None
    return (made, view.used_secret) if isinstance(made, Mapping) else None
