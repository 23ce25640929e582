"""Judge what a visit saw: pure. `store/nodes/repository.py` writes each outcome."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.backoff import backoff_seconds
from orchestrator.engine.check.child_status import ChildStep
from orchestrator.errors import InvalidTemplate, OrchestratorError, ProviderBusy, ProviderError
from orchestrator.resources.base import Observation


@dataclass(frozen=True, slots=True)
class Ready:
    """Observed as wanted."""

    observation: Observation


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Nothing was to do."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """The provider confirmed absence; `silent` when there never was anything to tell of. `let_go` is the
    child that is a stack of its own from then on.
    """

    silent: bool = False
    let_go: int | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """Not yet: look again in `seconds` (None: only when told to). `retried` counts as a try."""

    seconds: float | None
    reason: str = "state changed"
    retried: bool = False
    discard: bool = False  # what was made is to be removed first


@dataclass(frozen=True, slots=True)
class PreviousOperationEnded:
    """An operation that an older traversal began has ended: compare again with what is wanted now.

    `failure` says why it failed, which is no failure of what is wanted now.
    """

    observation: Observation
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Replaced:
    """It cannot become what is wanted: another is to be made, and this one removed in the end."""


@dataclass(frozen=True, slots=True)
class Refreshed:
    """As wanted, and its row is to say so: it had not been COMPLETE, or it hands on something else by now."""

    observation: Observation


@dataclass(frozen=True, slots=True)
class Unhealthy:
    """It is not as it should be (CHECK), or is in no state for what the stack does: then it is left alone."""

    reason: str
    left_alone: bool = False


@dataclass(frozen=True, slots=True)
class Restricted:
    """The environment forbids what is to be done, `update` or `replace`: the resource is left as it is."""

    action: str


@dataclass(frozen=True, slots=True)
class Failed:
    """Final for this traversal. `causes` are those of a child stack, in full; none: the reason is the one."""

    reason: str
    causes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChildTransition:
    """The resource's child stack is to be moved, and its end waited for."""

    step: ChildStep


Outcome = (
    Ready
    | Unchanged
    | Refreshed
    | PreviousOperationEnded
    | Replaced
    | Deleted
    | Wait
    | ChildTransition
    | Unhealthy
    | Restricted
    | Failed
)


def retry_seconds(retry_count: int) -> float:
    """Return the pause before the next try of an operation (docs/internals/engine-semantics.md §5)."""
    return backoff_seconds(retry_count, 60.0, extra_jitter=2.0)


def judge_observation(
    seen: Observation, *, name: str, deleting: bool, retries_left: int, retry_count: int
) -> Outcome:
    """Return what an observation means for the open operation."""
    if deleting:
        if not seen.exists:
            return Deleted()
        if seen.error:
            return Failed(failure_reason(seen.error_kind, name, seen.error))
        return Wait(seen.retry_after, seen.reason or "state changed")
    if seen.error or not seen.exists:
        error = seen.error or "it disappeared while it was being made"
        if (seen.replaceable or not seen.exists) and retries_left > 0:
            return Wait(retry_seconds(retry_count), f"{seen.error_kind}: {error}", retried=True, discard=True)
        return Failed(failure_reason(seen.error_kind, name, error))
    if not seen.ready:
        return Wait(seen.retry_after, seen.reason or "state changed")
    return Ready(seen)


def judge_act(seen: Observation, *, name: str, physical_id: str) -> Outcome:
    """Return what an observation means while something is checked, suspended, resumed or copied."""
    if seen.error or not seen.exists:
        error = seen.error or f"There is no {physical_id} any more."
        return Failed(failure_reason(seen.error_kind if seen.error else "NotFound", name, error))
    return Ready(seen) if seen.ready else Wait(seen.retry_after, seen.reason or "state changed")


def judge_error(error: Exception, *, name: str, retries_left: int, retry_count: int) -> Outcome:
    """Return what an error out of a verb means."""
    if isinstance(error, ProviderBusy) and retries_left > 0:
        return Wait(retry_seconds(retry_count), f"{error.kind}: {error}", retried=True)
    if isinstance(error, ProviderError):
        return Failed(failure_reason(error.kind, name, str(error)))
    if isinstance(error, InvalidTemplate):
        return Failed(f"StackValidationFailed: {error}")
    if isinstance(error, OrchestratorError):
        return Failed(failure_reason(error.heat_type, name, str(error)))
    return Failed(failure_reason(type(error).__name__, name, str(error)))


def failure_reason(kind: str, name: str, message: str) -> str:
    """Return `ValueError: resources.a: message`, as docs/internals/engine-semantics.md §1 has it."""
    return f"{kind}: resources.{name}: {message}"
