"""The number of simultaneous requests that a service processes well.

It increases additively and decreases multiplicatively (AIMD). Pure: times are arguments. The limit grows by
one per answer at first, after a decrease by one per round of requests, while it is in use and the service is
about as fast as usual. It shrinks when answers take a multiple of their usual time, and is halved by 429, 503
and silence.

The usual time is the shortest that was seen, measured with few requests in progress. While the limit has to
shrink, the usual time is measured again once a minute.
"""

from __future__ import annotations

from typing import Final

LEAST: Final = 2.0  # also the start: few enough to measure the usual duration
SLOW: Final = 2.5  # times the usual duration
QUICK_SECONDS: Final = 0.1  # durations below this are never slow
SLOW_FACTOR: Final = 0.85
BUSY_FACTOR: Final = 0.5
CUT_SECONDS: Final = 1.0  # between two decreases: the effect of one must be visible before the next
SMOOTHING: Final = 0.2  # share of the newest answer in the current slowness
MEASURE_SECONDS: Final = 60.0  # between two measurements of the usual duration
MAX_KINDS: Final = 200


class ConcurrencyLimit:
    """The limit of a service."""

    def __init__(self, most: int, least: float = LEAST) -> None:
        """Begin with `least` requests at a time; never exceed `most`."""
        self._most = float(max(1, most))
        self._least = self._value = min(least, self._most)
        self._usual: dict[str, float] = {}
        self._slowness = 1.0
        self._cut_at: float | None = None  # the last decrease since the usual duration was measured
        self._measured_at: float | None = None

    @property
    def value(self) -> int:
        """The number of simultaneous requests."""
        return int(self._value)

    def record_answer(self, kind: str, seconds: float, *, full: bool, now: float) -> None:
        """Adapt to an answer. `kind` are requests of similar duration; `full`: the limit was in use."""
        if self._cut_at is not None and now - (self._measured_at or 0.0) > MEASURE_SECONDS:
            self._measure()
        if self._measured_at is None:
            self._measured_at = now
        seconds = max(seconds, QUICK_SECONDS)
        self._slowness += (seconds / self._usual_seconds(kind, seconds) - self._slowness) * SMOOTHING
        if self._slowness > SLOW:
            self._cut(SLOW_FACTOR, max(CUT_SECONDS, seconds), now)
        elif full:
            step = 1.0 if self._cut_at is None else 1.0 / self._value
            self._value = min(self._most, self._value + step)

    def record_busy(self, now: float) -> None:
        """Adapt to a refusal for lack of capacity, or to silence."""
        self._cut(BUSY_FACTOR, CUT_SECONDS, now)

    def _measure(self) -> None:
        """Measure the usual durations again, with few requests in progress."""
        self._usual.clear()
        self._value, self._slowness, self._cut_at, self._measured_at = self._least, 1.0, None, None

    def _usual_seconds(self, kind: str, seconds: float) -> float:
        if kind not in self._usual and len(self._usual) >= MAX_KINDS:
            self._usual.clear()
        usual = self._usual[kind] = min(seconds, self._usual.get(kind, seconds))
        return usual

    def _cut(self, factor: float, pause: float, now: float) -> None:
        if self._cut_at is not None and now - self._cut_at < pause:
            return
        self._value, self._cut_at, self._slowness = max(self._least, self._value * factor), now, 1.0
