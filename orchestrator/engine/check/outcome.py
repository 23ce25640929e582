"""Judge the observations of a visit: pure. `store/nodes/repository.py` writes each outcome."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from orchestrator.backoff import backoff_seconds
from orchestrator.engine.check.absence import AbsenceInDoubt
from orchestrator.engine.check.child_status import ChildStep
from orchestrator.engine.check.refusals import Refusal, RefusalTimes, next_attempt, refusal_of
from orchestrator.errors import AwaitingBudget, InvalidTemplate, OrchestratorError, ProviderError
from orchestrator.resources.base import Observation

MAX_CHECK_RETRIES: Final = 3  # of a CHECK that cannot observe its resource
FIRST_DELETE_RETRY_SECONDS: Final = 10.0  # at most, until the delete of an object in error is repeated once


class EarlyRelease(Enum):
    """The early dependents that an object releases before it is ready (operations/adr/0015)."""

    IDS = "those that use no attributes of it"
    ATTRIBUTES = "all: it has all early attributes"


@dataclass(frozen=True, slots=True)
class Ready:
    """Observed in the desired state."""

    observation: Observation


@dataclass(frozen=True, slots=True)
class Unchanged:
    """No change was necessary."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """The provider confirmed absence; `silent` for a resource that was never created. `detached_child` is the
    id of a retained child, which becomes an independent stack.
    """

    silent: bool = False
    detached_child: int | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """Not yet: observe again in `seconds` (None: only when woken). `retried` counts as an attempt.

    `refusal`: the provider refused the request temporarily, or gave no answer. That does not count as an
    attempt, and nothing is concluded from it.
    """

    seconds: float | None
    reason: str = "state changed"
    retried: bool = False
    discard: bool = False  # the created object is deleted first
    refusal: Refusal | None = None
    aborted: bool = False  # the stack has failed: so has the resource, although its operation is followed
    early: EarlyRelease | None = None  # the object exists: dependents that need no more are released


@dataclass(frozen=True, slots=True)
class Postponed:
    """Nothing was changed and no operation is open: visit the node again in `seconds`. The row keeps its
    status.
    """

    seconds: float | None
    reason: str
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class PreviousOperationEnded:
    """An operation of an older traversal has ended: compare again with the current definition.

    `failure` is the reason of its failure, which does not fail this traversal.
    """

    observation: Observation
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Replaced:
    """The resource needs a replacement, and is deleted in the cleanup."""


@dataclass(frozen=True, slots=True)
class Refreshed:
    """In the desired state, but the row is stale: rewrite its status or its outputs."""

    observation: Observation


@dataclass(frozen=True, slots=True)
class Unhealthy:
    """A CHECK has failed, or the state does not permit the action: then the resource is `left_alone`.

    `refusal`: why the CHECK could not observe the resource. It is left alone as well.
    """

    reason: str
    left_alone: bool = False
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class Restricted:
    """The environment forbids the action, `update` or `replace`: the resource is unchanged."""

    action: str


@dataclass(frozen=True, slots=True)
class Failed:
    """Final for this traversal. `causes` are all failures in a child stack; empty: only the reason."""

    reason: str
    causes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChildTransition:
    """The resource's child stack starts a transition, and the resource waits for its end."""

    step: ChildStep


Outcome = (
    Ready
    | Unchanged
    | Refreshed
    | PreviousOperationEnded
    | Replaced
    | Deleted
    | Wait
    | Postponed
    | ChildTransition
    | Unhealthy
    | Restricted
    | Failed
)


class Attempts(NamedTuple):
    """The attempts of an operation so far."""

    failed: int  # objects in error
    left: int  # objects that may still be created
    max_seconds: float  # longest pause between two attempts
    refused: RefusalTimes = RefusalTimes()

    @property
    def pause(self) -> float:
        """The seconds before the next try (docs/internals/engine-semantics.md §5)."""
        return retry_seconds(self.failed, self.max_seconds)


class DeleteProgress(NamedTuple):
    """The requests of a delete so far."""

    seconds: float = 0.0  # since the last answered request
    retry_seconds: float = 0.0  # after which the delete of an object in error is repeated; 0: never
    repeated: bool = False  # by this visit, for an object in error
    stalled_seconds: float = 0.0  # after which a delete is repeated in any case; 0: never

    def is_due(self, observation: Observation, attempts: Attempts | None) -> bool:
        """Whether to repeat the request, as long as `attempts` are left. It would only disturb an object that
        is being deleted.
        """
        in_error = observation.exists and bool(observation.error)
        left = attempts is None or attempts.left > 0
        return in_error and left and self.seconds >= self.retry_seconds > 0

    def is_stalled(self, observation: Observation) -> bool:
        """Whether the provider may have lost the request: it neither ended nor failed for so long."""
        in_progress = observation.exists and not observation.error
        return in_progress and self.seconds >= self.stalled_seconds > 0


def retry_seconds(failed: int, max_seconds: float) -> float:
    """Return the pause after so many failed attempts."""
    return backoff_seconds(failed, max_seconds, extra_jitter=min(2.0, max_seconds))


def outcome_of_observation(observation: Observation, *, name: str, attempts: Attempts) -> Outcome:
    """Return the outcome of an observation during a create or update."""
    if observation.error or not observation.exists:
        error = observation.error or "it no longer exists at the provider"
        if (observation.replaceable or not observation.exists) and attempts.left > 0:
            return Wait(attempts.pause, f"{observation.error_kind}: {error}", retried=True, discard=True)
        return Failed(failure_reason(observation.error_kind, name, error))
    if not observation.ready:
        return Wait(observation.retry_after, observation.reason or "state changed")
    return Ready(observation)


def outcome_of_delete(observation: Observation, progress: DeleteProgress, *, name: str) -> Outcome:
    """Return the outcome of an observation during a delete. An object in error may still be deleted by the
    request; after `retry_seconds` the request is repeated, as long as attempts are left.
    """
    if not observation.exists:
        return Deleted()
    if not observation.error:
        return Wait(observation.retry_after, observation.reason or "state changed", progress.repeated)
    remaining = progress.retry_seconds - progress.seconds
    if remaining <= 0:
        return Failed(failure_reason(observation.error_kind, name, observation.error))
    seconds = remaining if observation.retry_after is None else min(observation.retry_after, remaining)
    return Wait(seconds, f"{observation.error_kind}: {observation.error}", progress.repeated)


def absence_reason(observation: Observation, physical_id: str | None) -> str:
    """Return the reason of an absence. A type whose physical id is the id of another object names the
    missing part in its observation.
    """
    return observation.reason or f"There is no {physical_id} any more."


def outcome_of_action(observation: Observation, *, name: str, physical_id: str) -> Outcome:
    """Return the outcome of an observation during a check, suspend, resume or snapshot."""
    if observation.error or not observation.exists:
        error = observation.error or absence_reason(observation, physical_id)
        return Failed(
            failure_reason(observation.error_kind if observation.error else "NotFound", name, error)
        )
    return (
        Ready(observation)
        if observation.ready
        else Wait(observation.retry_after, observation.reason or "state changed")
    )


def outcome_of_error(error: Exception, *, name: str, attempts: Attempts) -> Outcome:
    """Return the outcome of an error raised by a verb. A temporary refusal is repeated until its limit."""
    if isinstance(error, AwaitingBudget | AbsenceInDoubt):  # no refusal
        return Wait(error.retry_after, str(error))
    refusal = refusal_of(error)
    seconds = None if refusal is None else next_attempt(refusal, error, attempts.refused)
    if seconds is not None:
        return Wait(seconds, error_text(error), refusal=refusal)
    if isinstance(error, ProviderError):
        return Failed(failure_reason(error.kind, name, str(error)))
    if isinstance(error, InvalidTemplate):
        return Failed(f"StackValidationFailed: {error}")
    if isinstance(error, OrchestratorError):
        return Failed(failure_reason(error.heat_type, name, str(error)))
    return Failed(failure_reason(type(error).__name__, name, str(error)))


def error_text(error: Exception) -> str:
    """Return `Kind: message`, as shown where the path of the resource is known."""
    kind = error.kind if isinstance(error, ProviderError) else type(error).__name__
    return f"{kind}: {error}"


# The error types of failures that an observation of the object reports; `failure_reason` begins with them.
OBSERVED_ERRORS: Final = ("ResourceInError", "ResourceUnknownStatus")


def failure_reason(error_type: str, name: str, message: str) -> str:
    """Return `ValueError: resources.a: message`, as docs/internals/engine-semantics.md §1 has it."""
    return f"{error_type}: resources.{name}: {message}"
