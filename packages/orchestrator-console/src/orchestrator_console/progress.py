"""Progress of a stack as the pages show it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator_console.formats import moment
from orchestrator_console.json_types import JsonMapping

LEAST_SHARE: Final = 0.05  # finished before a remaining time is estimated
LEAST_READY: Final = 3
RANGE: Final = (0.7, 1.6)  # of the estimate: later resources may be slower


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts of the visits of an action."""

    total: int
    ready: int
    failed: int
    running: int
    waiting: int
    blocked: int
    rollouts: Sequence[JsonMapping] = ()  # groups that are updated in batches

    @classmethod
    def of(cls, body: JsonMapping) -> Progress:
        """Read the counts of the API."""
        names = (name for name in cls.__slots__ if name != "rollouts")
        counts = {name: int(body.get(name) or 0) for name in names}
        return cls(**counts, rollouts=body.get("rollouts") or ())

    @property
    def percent(self) -> int:
        """Return the finished share; 100 only if nothing is left."""
        return (
            0
            if not self.total
            else min(99 if self.ready < self.total else 100, self.ready * 100 // self.total)
        )


def remaining(
    progress: Progress, since: str | None, now: dt.datetime | None = None
) -> tuple[float, float] | None:
    """Return the shortest and the longest expected remaining time in seconds, None if too little is known.

    The rest is expected to take as long per resource as the finished part.
    """
    begun, rest = moment(since), progress.total - progress.ready
    if begun is None or rest <= 0 or progress.ready < max(LEAST_READY, progress.total * LEAST_SHARE):
        return None
    elapsed = ((now or dt.datetime.now(dt.UTC)) - begun).total_seconds()
    expected = elapsed / progress.ready * rest
    shortest, longest = RANGE
    return round(expected * shortest, 1), round(expected * longest, 1)
