"""Which repair a fault gets, and when: pure (operations/adr/0019).

A repair is an update of the stack over the damaged resources. It is chosen by the verdict; policy, pauses,
the state of the stack and earlier repairs decide whether it starts now.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple, get_args

from orchestrator.engine.observation.drift import ProvenState
from orchestrator.engine.observation.policies import Mode
from orchestrator.json_types import JsonMapping, JsonObject

Action = Literal["update", "recover", "recreate", "replace"]
ACTIONS: Final = get_args(Action)
IN_PLACE: Final = ("update", "recover")  # actions that keep the object
# `reported`, `waiting` and `pending` are decided again at a later time; `pending` waits for an approval.
RepairStatus = Literal[
    "reported",
    "waiting",
    "pending",
    "approved",
    "started",
    "done",
    "failed",
    "superseded",
    "declined",
    "given_up",
]
REPAIR_STATUSES: Final = get_args(RepairStatus)
Verb = Literal["repair", "report", "wait", "ask", "give_up"]

MAX_TRIES: Final = 5  # of a resource in a row, until a person is needed
MAX_PER_HOUR: Final = 10  # of a resource
FIRST_PAUSE: Final = dt.timedelta(seconds=30)  # after the first failed repair; doubled after each further one
HOUR: Final = dt.timedelta(hours=1)
MEMORY: Final = dt.timedelta(days=1)  # earlier repairs are forgotten


class Fault(NamedTuple):
    """A confirmed verdict, without the accepted differences."""

    state: ProvenState
    properties: tuple[str, ...] = ()  # first names of the paths that differ
    holds_data: bool = False
    fixed: frozenset[str] = frozenset()  # properties that the type cannot update in place
    unset: frozenset[str] = frozenset()  # of those, without a value in the template: no update corrects them
    external: bool = False
    recoverable: bool = False  # its type can repair the object, and has not tried it for this failure
    restricted: frozenset[str] = frozenset()  # `update`, `replace`: forbidden by the environment


class Mark(NamedTuple):
    """The repair that the next visit of a resource carries out (`resource.repair`)."""

    cause: ProvenState
    action: Action
    properties: frozenset[str] = frozenset()  # to be corrected

    @classmethod
    def of(cls, stored: JsonMapping) -> Mark:
        """Return the mark in a row."""
        return cls(stored["cause"], stored["action"], frozenset(stored["properties"]))

    def as_json(self) -> JsonObject:
        """Return the mark as it is stored."""
        return {"cause": self.cause, "action": self.action, "properties": sorted(self.properties)}


class Circumstances(NamedTuple):
    """What surrounds a fault. Texts are reasons; empty: there is none."""

    mode: Mode
    paused: str = ""
    loss: str = ""  # so many objects are missing that the provider may be wrong
    stack: str = ""  # an operation, a suspended or failed stack
    approved: bool = False


class Attempt(NamedTuple):
    """An earlier repair of the same resource."""

    at: dt.datetime
    status: RepairStatus
    action: Action | None = None


class Decision(NamedTuple):
    """The decision about a fault, with its reason for users."""

    verb: Verb
    action: Action | None = None
    reason: str = ""
    due_at: dt.datetime | None = None  # when it is decided again at the latest; None: after other events


def action_for(fault: Fault) -> Action | None:
    """Return the smallest action that ends a fault; None if there is none."""
    match fault.state:
        case "MISSING":
            return "recreate"
        case "FAILED":
            return "recover" if fault.recoverable else "replace"
        case "MODIFIED":
            names = corrected(fault)
            if not names:
                return None
            return "replace" if names & fault.fixed else "update"
    return None


def is_worth_recovering(attempts: Sequence[Attempt]) -> bool:
    """Whether the type may repair a failed object: unless the last repair was that, without effect."""
    last = max(attempts, key=lambda attempt: attempt.at, default=None)
    return last is None or (last.action, last.status) != ("recover", "failed")


def corrected(fault: Fault) -> frozenset[str]:
    """Return the properties that a repair corrects."""
    return frozenset(fault.properties) - fault.unset


def decide(fault: Fault, around: Circumstances, attempts: Sequence[Attempt], now: dt.datetime) -> Decision:
    """Return the decision about a fault.

    The order: what is never repaired; what a person has to do; what needs an approval; what has to wait.
    """
    action = action_for(fault)
    if refusal := _refusal(fault, around, action):
        return Decision("report", action, refusal)
    if exhausted := _exhausted(attempts, now):
        return Decision("give_up", action, exhausted)
    if not around.approved and (question := _question(fault, around, action)):
        return Decision("ask", action, question)
    if any(attempt.status == "started" for attempt in attempts):
        return Decision("wait", action, "the result of a repair has not been observed yet")
    if around.paused:
        return Decision("wait", action, around.paused)
    if around.stack:
        return Decision("wait", action, around.stack)
    if (start := _not_before(attempts)) > now:
        return Decision(
            "wait", action, "an earlier repair had no effect; the pause doubles with each try", start
        )
    return Decision("repair", action)


def _refusal(fault: Fault, around: Circumstances, action: Action | None) -> str:
    if around.mode in ("off", "report"):
        return f"the policy is {around.mode}"
    return obstacle(fault, action)


def obstacle(fault: Fault, action: Action | None) -> str:
    """Return why no update repairs a fault, whoever requests it; empty: nothing is in the way."""
    if not fault.properties and fault.state == "MODIFIED":
        return "all differences are accepted"
    if action is None:
        return "the template sets none of the changed properties, and the type cannot change them"
    if fault.external:
        return "the resource is external: it is managed by others"
    if is_restricted(fault, action):
        return f"the environment restricts the action {_restriction(action)}"
    return ""


def is_restricted(fault: Fault, action: Action | None) -> bool:
    """Whether the environment forbids the action."""
    return action is not None and _restriction(action) in fault.restricted


def _restriction(action: Action) -> str:
    return "update" if action in IN_PLACE else "replace"


def _question(fault: Fault, around: Circumstances, action: Action | None) -> str:
    if around.loss:
        return around.loss
    if fault.holds_data and action not in IN_PLACE:
        return "the resource holds data, which a new object would not have"
    if around.mode == "ask":
        return "the policy is ask"
    return ""


def _exhausted(attempts: Sequence[Attempt], now: dt.datetime) -> str:
    recent = [attempt for attempt in attempts if now - attempt.at < HOUR]
    tries = _failures(attempts)
    if tries >= MAX_TRIES:
        return (
            f"{tries} repairs in a row had no effect. Correct the cause, then update the stack, or accept "
            "the difference"
        )
    if len(recent) >= MAX_PER_HOUR:
        return (
            f"the resource was repaired {len(recent)} times within an hour: something keeps changing it. "
            "Find it, or accept the difference"
        )
    return ""


def _failures(attempts: Iterable[Attempt]) -> int:
    """Return the number of repairs without effect since the last success."""
    count = 0
    for attempt in sorted(attempts, key=lambda attempt: attempt.at):
        if attempt.status == "done":
            count = 0
        elif attempt.status == "failed":
            count += 1
    return count


def _not_before(attempts: Sequence[Attempt]) -> dt.datetime:
    """Return the time before which no further repair starts."""
    tries = _failures(attempts)
    if not tries:
        return dt.datetime.min.replace(tzinfo=dt.UTC)
    return max(attempt.at for attempt in attempts) + 2.0 ** (tries - 1) * FIRST_PAUSE
