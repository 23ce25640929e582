"""The time within which a resource must become ready after the request to create or update it: pure.

The limit comes from the environment, else the type, else the stack's timeout. A stack timeout does not count
as declared: it applies to an operation that was already older when a later traversal found it open. Past the
limit the resource counts as in error: a new object is discarded and created again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from orchestrator.engine.check.hooks import ready_timeout
from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.resources.base import Observation, ResourceType

ERROR_KIND: Final = "ResourceNotReady"
# How long an update waits for a failed resource without a limit of its own, before it is replaced: at most
# this, and at most half of the stack's timeout.
FAILED_SECONDS: Final = 600.0


class ReadyLimit(NamedTuple):
    """A time limit in seconds; `declared` by the environment or the type, not only by the stack's timeout."""

    seconds: float
    declared: bool


def ready_limit(visit: ResourceVisit, type_: ResourceType, stack_timeout: float) -> ReadyLimit | None:
    """Return the limit for the open operation of a resource; None for a local type without a limit."""
    declared = ready_timeout(visit.hooks) if visit.hooks else None
    if declared is None:
        declared = type_.ready_timeout_seconds
    if declared is not None:
        return ReadyLimit(declared, True)
    return ReadyLimit(visit.stack.timeout_seconds or stack_timeout, False) if type_.calls_out else None


def failed_limit(visit: ResourceVisit, type_: ResourceType, stack_timeout: float) -> float:
    """Return for how many seconds to wait for a failed resource that exists and is not ready."""
    limit = ready_limit(visit, type_, stack_timeout)
    if limit is not None and limit.declared:
        return limit.seconds
    return min(FAILED_SECONDS, (visit.stack.timeout_seconds or stack_timeout) / 2)


def within_limit(
    observation: Observation, limit: ReadyLimit | None, elapsed: float, *, waited: float, halted: bool
) -> Observation:
    """Return an observation of an open operation; past its limit, an object that is not ready is in error.

    `elapsed` and `waited`: seconds since the start of the operation, and since this node began to wait for
    it. A halted traversal creates nothing: there the object is only in error if the limit was declared.
    """
    waits = observation.exists and not observation.error and not observation.ready
    if limit is None or not waits or (halted and not limit.declared):
        return observation
    remaining = limit.seconds - (elapsed if limit.declared else elapsed - waited)
    if remaining > 0:
        if not limit.declared:
            return observation
        after = observation.retry_after
        return replace(observation, retry_after=remaining if after is None else min(after, remaining))
    state = f": {observation.reason}" if observation.reason else ""
    error = f"not ready after {limit.seconds:g} seconds{state}"
    return replace(observation, error=error, error_kind=ERROR_KIND, replaceable=not halted)
