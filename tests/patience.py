"""Time limits of waits, independent of the speed and the load of the machine."""

from __future__ import annotations

import time
from typing import Final

NOMINAL_SECONDS: Final = 0.04  # of the computation in `slowness` on an idle core of a recent machine
MAX_SLOWNESS: Final = 10.0


def slowness() -> float:
    """Return the time that a computation takes now, relative to an idle recent machine: 1 to 10."""
    began = time.monotonic()
    sum(range(2_000_000))
    return min(MAX_SLOWNESS, max(1.0, (time.monotonic() - began) / NOMINAL_SECONDS))


class Patience:
    """A time limit. When it has passed, it is extended by the slowness of the machine at that time."""

    def __init__(self, seconds: float) -> None:
        """Start now."""
        self._began, self._seconds, self._extended = time.monotonic(), seconds, False

    def left(self) -> float:
        """Return the rest of the limit in seconds; 0 when it has passed."""
        rest = self._began + self._seconds - time.monotonic()
        if rest <= 0 and not self._extended:
            self._extended = True
            self._seconds *= slowness()
            rest = self._began + self._seconds - time.monotonic()
        return max(0.0, rest)


def took_at_most(began: float, seconds: float) -> bool:
    """Whether at most `seconds` have passed since `began` (monotonic clock), or more on a slow machine."""
    passed = time.monotonic() - began
    return passed < seconds or passed < seconds * slowness()


def pause(seconds: float) -> None:
    """Let another process act, where no event shows that it did: longer on a slow machine."""
    time.sleep(seconds * slowness())
