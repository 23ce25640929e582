"""Observe the objects of several visits with a list that they share, before the visits (adr/0022).

A visit that needs anything else is left to its own task: it would delay the others.
"""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.clients.provider_calls import ListBatch
from orchestrator.engine.check.decide import Delete, Observe, Step
from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.operations.resource_context.operation import (
    ResourceOperation,
    is_current,
    used_live_attributes,
)
from orchestrator.resources.base import Observation
from orchestrator.store.connections.database import UNREACHABLE


def only_observes(visit: ResourceVisit, step: Step) -> bool:
    """Whether a visit observes an operation whose request was answered. A node that perhaps has ended its
    worker is visited alone.
    """
    if visit.lost_leases or visit.hooks or visit.resource.released is not None:
        return False
    return isinstance(step, Observe) or (isinstance(step, Delete) and not (step.request or step.find_first))


def observe_listed(
    operation: ResourceOperation, step: Step, together: ListBatch
) -> Callable[[], Observation] | None:
    """Observe an object with a shared list. Return the answer to the first observation of the visit; None:
    the object needs a separate request, or its visit a further request.
    """
    visit, type_, state = operation.visit, operation.resource_type, operation.state
    deletes = isinstance(step, Delete)
    if (visit.halted and type_.can_cancel) or not (deletes or is_current(operation)):
        return None
    action = "DELETE" if deletes else "UPDATE" if state.op == "UPDATE" else "CREATE"
    provider = operation.calls.provider
    provider.batch, failure = together, None
    try:
        operation.calls.permit()
        seen = type_.observe(operation.context(action), state.physical_id or "")
    except UNREACHABLE:
        raise
    except Exception as error:
        failure = error
    finally:
        provider.batch = None
    if provider.needs_request:
        return None
    if failure is not None:
        return lambda: _raise(failure)
    return None if _needs_request(operation, seen, deletes=deletes) else lambda: seen


def _needs_request(operation: ResourceOperation, seen: Observation, *, deletes: bool) -> bool:
    """Whether the visit sends a request after this observation."""
    type_ = operation.resource_type
    if not seen.exists:
        return False
    if deletes:
        seconds, stalled = operation.resource.requested_seconds or 0.0, type_.delete_stalled_seconds
        return bool(seen.step or seen.error) or 0 < stalled <= seconds
    if seen.error:
        return operation.is_recovering
    used = type_.live_attributes & used_live_attributes(operation.visit)
    return bool(seen.step or (seen.ready and used))


def _raise(error: Exception) -> Observation:
    raise error
