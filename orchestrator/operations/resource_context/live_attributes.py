"""The live attributes that a template uses: read when their resource is ready, and recorded for dependents.

They are no part of `value_digest`: dependents get the value that was read, and a later change wakes none of
them. The API reads live attributes at each request (`operations/outputs/live_attributes.py`).
"""

from __future__ import annotations

from orchestrator.engine.check.outcome import error_text
from orchestrator.errors import UNREACHABLE_ERRORS
from orchestrator.json_types import JsonMapping
from orchestrator.logs import logger
from orchestrator.operations.resource_context.operation import (
    ResourceOperation,
    hide_secret_attributes,
    used_live_attributes,
)
from orchestrator.store.connections.database import UNREACHABLE

log = logger()


def read_used_attributes(operation: ResourceOperation, *, missing_only: bool = False) -> bool:
    """Read and record the used live attributes; with `missing_only`, those without a recorded value. Drop
    recorded values that the template no longer uses. Return whether the recorded attributes have changed.

    Raises:
        LimitExceeded: stack or project have no space for the attributes.
        An error of UNREACHABLE_ERRORS: the provider gives no answer; the visit is repeated.
    """
    live, state = operation.resource_type.live_attributes, operation.state
    if not live or state.shadowed:
        return False
    used = used_live_attributes(operation.visit) & live
    kept = {name: value for name, value in state.attributes.items() if name not in live or name in used}
    wanted = used - kept.keys() if missing_only else used
    if wanted:
        kept |= _read(operation, wanted)
    if kept == state.attributes:
        return False
    operation.reserve("attributes", kept, state.attributes)
    state.attributes = kept
    hide_secret_attributes(state, operation.resource_type, {name: kept[name] for name in wanted})
    return True


def _read(operation: ResourceOperation, names: frozenset[str]) -> JsonMapping:
    """Return the values of live attributes: null where the type has none, or after a refusal."""
    context, physical_id = operation.context("CHECK", 0.0), operation.state.physical_id or ""
    try:
        values = operation.calls.run(operation.resource_type.read_attributes, context, physical_id, names)
    except (*UNREACHABLE_ERRORS, *UNREACHABLE):
        raise
    except Exception as error:
        log.warning("live_attributes_refused", resource=operation.resource.name, error=error_text(error))
        values = {}
    return {name: values.get(name) for name in names}
