"""The outputs of an object that exists and is not ready, for dependents that need no more
(operations/adr/0015).
"""

from __future__ import annotations

from typing import Final

from orchestrator.engine.check.outcome import EarlyRelease, Outcome, PreviousOperationEnded, Ready, Replaced
from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.engine.output_digests import is_current_input, is_early
from orchestrator.operations.resource_context.operation import (
    ResourceOperation,
    hide_secret_attributes,
    is_current,
)
from orchestrator.operations.resource_context.state import ResourceState, early_digest
from orchestrator.resources.base import Observation

FIRST_ATTEMPT: Final = 1
POST_CREATE: Final = "post-create"


def record_early_outputs(operation: ResourceOperation, observation: Observation) -> EarlyRelease | None:
    """Record the outputs of an object that is being created, if its early dependents may use them; return
    which dependents may.

    They wait if the object may not be the one they will find when it is ready: its predecessor was discarded,
    or it was requested for an older definition or other inputs. They also wait for a hook after the create.

    Raises:
        LimitExceeded: stack or project have no space for the attributes.
    """
    visit, state, early = operation.visit, operation.state, operation.resource_type.early_attributes
    if state.op != "CREATE" or state.attempt != FIRST_ATTEMPT or visit.halted:
        return None
    if POST_CREATE in visit.hooks or not (state.opened or is_current(operation)):
        return None
    recorded = state.attributes if is_early(state.value_digest) else {}
    attributes = {name: value for name, value in observation.attributes.items() if name in early}
    attributes = {**recorded, **attributes}
    has_all = attributes.keys() == early
    operation.reserve("attributes", attributes, state.attributes)
    state.attributes, state.reference_id = attributes, observation.reference_id
    state.value_digest = early_digest(state, early if has_all else None)
    hide_secret_attributes(state, operation.resource_type, attributes)
    return EarlyRelease.ATTRIBUTES if has_all else EarlyRelease.IDS


def misled_dependents(visit: ResourceVisit, outcome: Outcome, state: ResourceState) -> bool:
    """Whether early dependents that were released have seen another object than `outcome` leaves, or other
    values.
    """
    if not visit.early_released:
        return False
    if isinstance(outcome, Ready | PreviousOperationEnded):
        seen = visit.resource.value_digest
        return is_early(seen) and not is_current_input(seen, state.value_digest)
    return isinstance(outcome, Replaced)
