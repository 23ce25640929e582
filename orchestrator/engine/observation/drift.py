"""Drift states: what is known about a resource between two rounds of the observation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, get_args

from orchestrator.json_types import JsonObject

# A state that an observation has proven; UNKNOWN states why there is no newer one.
ProvenState = Literal["IN_SYNC", "MODIFIED", "MISSING", "FAILED"]
PROVEN_STATES: Final = get_args(ProvenState)
DriftState = Literal["IN_SYNC", "MODIFIED", "MISSING", "FAILED", "UNKNOWN"]
DRIFT_STATES: Final = get_args(DriftState)
DRIFTED: Final = ("MODIFIED", "MISSING", "FAILED")

# `notified` observes single objects of any service, after notifications.
GroupKind = Literal["discovery", "notified", "lists", "single"]
GROUP_KINDS: Final = get_args(GroupKind)
OF_PROJECT: Final = ("discovery", "notified")  # groups that belong to no service


class Difference(NamedTuple):
    """A property, or a member of one, that differs; secret values are masked."""

    property: str  # a path: metadata.role
    expected: object
    found: object

    def as_json(self) -> JsonObject:
        """Return the difference as it is stored and shown."""
        return {"property": self.property, "expected": self.expected, "found": self.found}


@dataclass(frozen=True, slots=True)
class Drift:
    """The last proven state of a resource, and why there is no newer one.

    An unconfirmed failure, or absence after an outage, was observed once. With `unknown` the state stays:
    nothing is concluded from a provider that gives no answer.
    """

    state: ProvenState = "IN_SYNC"
    reason: str = ""
    differences: tuple[Difference, ...] = ()
    confirmed: bool = True
    unknown: str = ""

    @property
    def verdict(self) -> DriftState:
        """The drift state that users see."""
        if self.unknown:
            return "UNKNOWN"
        return self.state if self.confirmed else "IN_SYNC"


IN_SYNC: Final = Drift()
