"""Temporary refusals of a provider: their kinds, and how long each of them is repeated. Pure.

The time of a kind counts from its first refusal of an operation (`graph_node.refused_since`), across
visits and workers. It restarts with a new operation, and after an outage, in which no other kind
could end (docs/updates.md, "Handle failures").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from orchestrator.backoff import backoff_seconds, requested_seconds
from orchestrator.engine.check.absence import AbsenceInDoubt
from orchestrator.errors import (
    AwaitingBudget,
    ProviderBusy,
    ProviderChanging,
    ProviderFailed,
    ProviderGatewayFailed,
    ProviderInUse,
    ProviderQuotaExceeded,
    ProviderSilent,
    ProviderUnreachable,
    ServiceUnavailable,
)

QUOTA_SECONDS: Final = 600.0
PAUSE_SECONDS: Final = 15.0  # longest pause between two attempts
RETRY_AFTER_MAX_SECONDS: Final = 600.0  # longest pause that a provider may ask for
PAUSE_FRACTION: Final = 0.25  # of the time since the first refusal: the next pause
OUTAGE_TRIES: Final = 3  # attempts in a row, after which the time of the other kinds restarts


class Refusal(NamedTuple):
    """A kind of temporary refusal."""

    kind: str  # `graph_node.refusal`
    seconds: float | None  # from the first refusal to the failure; None: until the timeout of the stack
    is_outage: bool  # the service does not work: circuit breakers and absences depend on it
    text: str  # begins the explanation of a waiting resource; in an outage, its attempts precede it


UNREACHABLE: Final = Refusal("unreachable", None, True, "in a row got no answer")
PAUSED: Final = Refusal("paused", None, True, "in a row found the service unavailable")
FAILING: Final = Refusal("failing", None, True, "in a row were answered with an error")
BUSY: Final = Refusal("busy", None, True, "in a row were refused for the moment")
QUOTA: Final = Refusal("quota", QUOTA_SECONDS, False, "waits for quota")
CHANGING: Final = Refusal("changing", 1_800.0, False, "waits for the end of another change")
IN_USE: Final = Refusal("in-use", 120.0, False, "waits for an object or a value that is in use")
REFUSALS: Final = (UNREACHABLE, PAUSED, FAILING, BUSY, QUOTA, CHANGING, IN_USE)
BY_KIND: Final = {refusal.kind: refusal for refusal in REFUSALS}
# The first class that an error belongs to decides.
_KINDS: Final[tuple[tuple[type[Exception], Refusal | None], ...]] = (
    (AwaitingBudget, None),  # nothing was sent: the wait for a place
    (AbsenceInDoubt, None),  # an observation that is to be confirmed
    (ProviderQuotaExceeded, QUOTA),
    (ProviderChanging, CHANGING),
    (ProviderInUse, IN_USE),
    (ServiceUnavailable, PAUSED),
    (ProviderFailed, FAILING),
    (ProviderGatewayFailed, FAILING),
    (ProviderSilent, UNREACHABLE),
    (ProviderUnreachable, UNREACHABLE),
    (ProviderBusy, BUSY),
    (ConnectionError, UNREACHABLE),
    (TimeoutError, UNREACHABLE),
)


class RefusalTimes(NamedTuple):
    """The attempts of an operation that were refused so far."""

    outage_tries: int = 0  # in a row
    since: Mapping[str, float] = {}  # kind -> seconds since its first refusal
    quota_seconds: float = QUOTA_SECONDS
    max_seconds: float = PAUSE_SECONDS  # longest pause between two attempts


def refusal_of(error: Exception) -> Refusal | None:
    """Return the kind of a temporary refusal; None for every other error."""
    return next((refusal for class_, refusal in _KINDS if isinstance(error, class_)), None)


def limit_seconds(refusal: Refusal, quota_seconds: float) -> float | None:
    """Return for how long a refusal is repeated; None: until the timeout of the stack."""
    return quota_seconds if refusal is QUOTA else refusal.seconds


def next_attempt(refusal: Refusal, error: Exception, times: RefusalTimes) -> float | None:
    """Return the seconds until the request is repeated, None if the limit of its refusal has passed."""
    refused, limit = times.since.get(refusal.kind, 0.0), limit_seconds(refusal, times.quota_seconds)
    remaining = None if limit is None else limit - refused
    if remaining is not None and remaining <= 0:
        return None
    asked = error.retry_after if isinstance(error, ProviderBusy) else None
    longest = min(PAUSE_SECONDS, times.max_seconds)
    if asked is not None and asked >= 0:  # neither negative nor no number
        pause = requested_seconds(asked, RETRY_AFTER_MAX_SECONDS)
    elif refusal.is_outage:
        pause = backoff_seconds(times.outage_tries, longest, jitter_fraction=0.5)
    else:
        pause = min(longest, max(1.0, refused * PAUSE_FRACTION))
    return pause if remaining is None else min(pause, remaining)
