"""Preview an update, without side effects (docs/internals/rest-api.md §5.7).

The request is validated like an update; `stack.py` compares, `nested.py` previews nested stacks.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Final

import orjson

from orchestrator.errors import InvalidTemplate
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.preview import nested as nested_preview
from orchestrator.operations.preview.stack import DesiredStack, Preview, ResourceChange, UpdatePreview
from orchestrator.operations.quotas.room import RESOURCES
from orchestrator.operations.runtime.parameter_cache import pseudo_parameters, stored_values
from orchestrator.operations.size_budget import size_budget
from orchestrator.operations.stacks.update import propose
from orchestrator.operations.validation.fault_places import shown_faults
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.template.fault_locations import placed

__all__ = ["ResourceChange", "UpdatePreview", "preview_update"]

MAX_FAULTS: Final = 1_000


@size_budget("the preview")
def preview_update(
    context: OperationContext,
    stack: StackRow,
    body: Body,
    *,
    patch: bool = False,
    show_nested: bool = False,
) -> UpdatePreview:
    """Return the effect of an update on the current stack; with `show_nested`, on its nested stacks too.

    A suspended stack is compared like any other.

    Raises:
        NotFound: the stack is deleted.
        InvalidRequest, InvalidTemplate, LimitExceeded: the update would be refused, or would fail, possibly
        in a nested stack.
    """
    proposal = propose(context, stack, body, patch=patch)
    desired, validated = proposal.desired, proposal.validated
    context.require_room(RESOURCES, desired.resource_count, stack_uuid=str(stack.uuid), reserve=False)
    pseudo = pseudo_parameters(str(stack.uuid), stack.name, stack.project_id)
    parameters = orjson.loads(orjson.dumps(desired.parameters))
    values = stored_values(parameters, desired.sealed, context.cipher, pseudo)
    hashes = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in desired.files.items()}
    intent = DesiredStack(validated.template, values, validated.kinds, hashes, proposal.requested.converge)
    preview = Preview(context, stack, intent)
    try:
        result = preview.run()
        nested, faults = nested_preview.preview_descendants(preview, whole=show_nested)
        if faults:
            raise InvalidTemplate(faults)
    except InvalidTemplate as error:
        reported = error.diagnostics[:MAX_FAULTS]
        raise InvalidTemplate(placed(reported, proposal.request.template, validated.document)) from None
    warnings = shown_faults(validated.warnings)
    return replace(result, nested=nested if show_nested else (), warnings=warnings)
