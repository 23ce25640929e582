"""What is known about a resource between two rounds of the observation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, get_args

from orchestrator.json_types import JsonObject

# `unknown` is no fact: it states why there is no newer one.
Fact = Literal["in_step", "changed", "missing", "failed"]
FACTS: Final = get_args(Fact)
Verdict = Literal["in_step", "changed", "missing", "failed", "unknown"]
VERDICTS: Final = get_args(Verdict)
DRIFT: Final = ("changed", "missing", "failed")

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
class Standing:
    """The last fact about a resource, and why there is no newer one.

    An unconfirmed failure, or absence after an outage, was observed once. With `unknown` the fact stays:
    nothing is concluded from a provider that gives no answer.
    """

    fact: Fact = "in_step"
    reason: str = ""
    differences: tuple[Difference, ...] = ()
    confirmed: bool = True
    unknown: str = ""

    @property
    def verdict(self) -> Verdict:
        """The verdict that users see."""
        if self.unknown:
            return "unknown"
        return self.fact if self.confirmed else "in_step"


IN_STEP: Final = Standing()
