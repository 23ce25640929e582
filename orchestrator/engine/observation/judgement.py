"""The verdict on a resource, from an observation and the previous verdict: pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from orchestrator.engine.observation.differences import Recorded, differences
from orchestrator.engine.observation.drift import IN_SYNC, Drift
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
    recorded: Recorded, evidence: Evidence, before: Drift = IN_SYNC, *, after_outage: bool = False
) -> Drift:
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
            known = before.state == "MISSING" and before.confirmed
            after = Drift("MISSING", MISSING, confirmed=known or not after_outage)
            return before if before == after else after
        case Observation(error=error) if error:
            return _after_error(evidence, before)
        case Observation(ready=False):
            return _in_transition(before)
        case _:
            return _compared(recorded, evidence, before)


def unobserved(before: Drift, reason: str) -> Drift:
    """Return what is known about a resource that could not be observed: the first reason is kept."""
    return before if before.unknown else replace(before, unknown=_text(reason))


def without_accepted(drift: Drift, is_accepted: Callable[[str], bool]) -> Drift:
    """Return a drift without the differences of properties that are accepted."""
    left = tuple(item for item in drift.differences if not is_accepted(item.property))
    if len(left) == len(drift.differences):
        return drift
    return replace(drift, differences=left) if left else replace(IN_SYNC, unknown=drift.unknown)


def _after_error(observation: Observation, before: Drift) -> Drift:
    """An error counts in the second observation in a row, and not while the provider works on the object."""
    if observation.busy:
        return _in_transition(before)
    if before.state == "FAILED":
        return Drift("FAILED", before.reason)
    return Drift("FAILED", _text(observation.error), confirmed=False)


def _in_transition(before: Drift) -> Drift:
    """The object exists and is in transition: a proven state stays until the end of that."""
    if before.state == "MISSING" or not before.confirmed:
        return IN_SYNC
    return replace(before, unknown="")


def _compared(recorded: Recorded, observation: Observation, before: Drift) -> Drift:
    if not recorded.settled:
        return IN_SYNC
    found = differences(recorded, observation.properties or {})
    if not found:
        return IN_SYNC
    return before if before == Drift("MODIFIED", "", found) else Drift("MODIFIED", "", found)


def _text(reason: str) -> str:
    return reason[:MAX_REASON] or "no reason was given"
