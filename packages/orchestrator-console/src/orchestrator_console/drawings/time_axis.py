"""The axis of a timeline, with folded idle times. Pure; times are seconds since the epoch."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

FOLDED_SHARE: Final = 0.015  # of the width, for a folded time


class Fold(NamedTuple):
    """A time without any operation."""

    begun_at: float
    ended_at: float


class Axis:
    """Positions between 0 and 1 for times; folded times have a fixed width."""

    def __init__(self, begun_at: float, ended_at: float, folded: Sequence[Fold] = ()) -> None:
        """Take the whole time and its folded parts."""
        shown = max(1e-6, ended_at - begun_at - sum(fold.ended_at - fold.begun_at for fold in folded))
        scale = max(0.1, 1.0 - FOLDED_SHARE * len(folded)) / shown
        width = (1.0 - scale * shown) / len(folded) if folded else 0.0
        self._times, self._places, at, place = [begun_at], [0.0], begun_at, 0.0
        for fold in folded:
            place += (fold.begun_at - at) * scale
            self._times += [fold.begun_at, fold.ended_at]
            self._places += [place, place + width]
            at, place = fold.ended_at, place + width
        self._times.append(max(ended_at, at + 1e-6))
        self._places.append(1.0)

    def place(self, time: float) -> float:
        """Return the position of a time."""
        nth = min(max(bisect_right(self._times, time) - 1, 0), len(self._times) - 2)
        start, end = self._times[nth], self._times[nth + 1]
        share = (min(max(time, start), end) - start) / (end - start) if end > start else 0.0
        return self._places[nth] + share * (self._places[nth + 1] - self._places[nth])
