"""The verdict on a resource, from an observation and the previous verdict: pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from orchestrator.engine.observation.differences import Recorded, differences
from orchestrator.engine.observation.verdicts import IN_STEP, Standing
from orchestrator.resources.base import Observation

MAX_REASON: Final = 1_000  # characters
MISSING: Final = "The object no longer exists."


@dataclass(frozen=True, slots=True)
class Unlisted:
    """The object was missing in a list, and was not looked up by its id: this proves nothing."""


@dataclass(frozen=True, slots=True)
class Unobserved:
    """The object could not be observed."""

    reason: str


Evidence = Observation | Unlisted | Unobserved


def judge(
    recorded: Recorded, evidence: Evidence, before: Standing = IN_STEP, *, after_outage: bool = False
) -> Standing:
    """Return what is known about a resource after an observation. It is equal to `before` without news.

    `after_outage`: the service gave no answer before. In its first second a Neutron server answers 404, and
    with empty lists, for objects that exist: an absence then counts in the second observation in a row.
    """
    match evidence:
        case Unlisted():
            return before
        case Unobserved(reason):
            return unobserved(before, reason)
        case Observation(exists=False):
            known = before.fact == "missing" and before.confirmed
            after = Standing("missing", MISSING, confirmed=known or not after_outage)
            return before if before == after else after
        case Observation(error=error) if error:
            return _after_error(evidence, before)
        case Observation(ready=False):
            return _in_transition(before)
        case _:
            return _compared(recorded, evidence, before)


def unobserved(before: Standing, reason: str) -> Standing:
    """Return what is known about a resource that could not be observed: the first reason is kept."""
    return before if before.unknown else replace(before, unknown=_text(reason))


def without_accepted(standing: Standing, is_accepted: Callable[[str], bool]) -> Standing:
    """Return a standing without the differences of properties that are accepted."""
    left = tuple(item for item in standing.differences if not is_accepted(item.property))
    if len(left) == len(standing.differences):
        return standing
    return replace(standing, differences=left) if left else replace(IN_STEP, unknown=standing.unknown)


def _after_error(observation: Observation, before: Standing) -> Standing:
    """An error counts in the second observation in a row, and not while the provider works on the object."""
    if observation.busy:
        return _in_transition(before)
    if before.fact == "failed":
        return Standing("failed", before.reason)
    return Standing("failed", _text(observation.error), confirmed=False)


def _in_transition(before: Standing) -> Standing:
    """The object exists, and its state will change: a fact stays until the end of that."""
    if before.fact == "missing" or not before.confirmed:
        return IN_STEP
    return replace(before, unknown="")


def _compared(recorded: Recorded, observation: Observation, before: Standing) -> Standing:
    if not recorded.settled:
        return IN_STEP
    found = differences(recorded, observation.properties or {})
    if not found:
        return IN_STEP
    return before if before == Standing("changed", "", found) else Standing("changed", "", found)


def _text(reason: str) -> str:
    return reason[:MAX_REASON] or "no reason was given"
