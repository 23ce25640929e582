"""Sets of integers as ranges: compact sets of group members."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

LIMIT: Final = 10**18  # of the numbers: their text has 18 digits, and Python counts elements up to 2**63
_RANGE: Final = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")


@dataclass(frozen=True, slots=True)
class Ordinals:
    """A set of non-negative integers.

    Its size is proportional to the number of ranges: a million consecutive members are a single pair.
    Iteration is in ascending order.
    """

    ranges: tuple[tuple[int, int], ...] = ()  # (first, beyond the last), going up, with room between them

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Ordinals:
        """Return the set of these numbers."""
        return cls(_joined((number, number + 1) for number in sorted(set(numbers))))

    @classmethod
    def span(cls, start: int, stop: int) -> Ordinals:
        """Return the numbers from `start` to before `stop`, without those of `LIMIT` and above."""
        stop = min(stop, LIMIT)
        return cls(((start, stop),) if start < stop else ())

    @classmethod
    def parse(cls, text: str) -> Ordinals:
        """Parse the result of `text()`: ``0-2,7`` for 0, 1, 2 and 7.

        Raises:
            ValueError: another form.
        """
        ranges = []
        for part in text.split(",") if text else ():
            match = _RANGE.fullmatch(part)
            if match is None:
                raise ValueError(f"{part!r} is not a range of numbers")
            first = int(match[1])
            ranges.append((first, int(match[2] or first) + 1))
        if any(first >= beyond for first, beyond in ranges) or sorted(ranges) != ranges:
            raise ValueError("the ranges are not ascending")
        return cls(_joined(ranges))

    def text(self) -> str:
        """Return it in as few characters as its ranges take."""
        return ",".join(
            str(first) if beyond == first + 1 else f"{first}-{beyond - 1}" for first, beyond in self.ranges
        )

    def __len__(self) -> int:
        """Return the number of elements."""
        return sum(beyond - first for first, beyond in self.ranges)

    def __bool__(self) -> bool:
        """Return whether the set is not empty."""
        return bool(self.ranges)

    def __iter__(self) -> Iterator[int]:
        """Iterate in ascending order."""
        for first, beyond in self.ranges:
            yield from range(first, beyond)

    def __contains__(self, number: object) -> bool:
        """Whether a number is among them."""
        if not isinstance(number, int):
            return False
        place = bisect_right(self.ranges, (number, float("inf"))) - 1
        return place >= 0 and number < self.ranges[place][1]

    def __or__(self, other: Ordinals) -> Ordinals:
        """Return the union."""
        return Ordinals(_joined(sorted([*self.ranges, *other.ranges])))

    def __sub__(self, other: Ordinals) -> Ordinals:
        """Return the difference."""
        made: list[tuple[int, int]] = []
        cuts, cut = other.ranges, 0
        for start, beyond in self.ranges:
            first = start
            while cut < len(cuts) and cuts[cut][1] <= first:
                cut += 1
            at = cut
            while at < len(cuts) and cuts[at][0] < beyond:
                if cuts[at][0] > first:
                    made.append((first, cuts[at][0]))
                first = max(first, cuts[at][1])
                at += 1
            if first < beyond:
                made.append((first, beyond))
        return Ordinals(tuple(made))

    def __and__(self, other: Ordinals) -> Ordinals:
        """Return the numbers in both."""
        return self - (self - other)

    def head(self, count: int) -> Ordinals:
        """Return the `count` lowest elements, all if the set is smaller."""
        made = []
        for first, beyond in self.ranges:
            if count <= 0:
                break
            made.append((first, min(beyond, first + count)))
            count -= beyond - first
        return Ordinals(tuple(made))

    def tail(self, count: int) -> Ordinals:
        """Return the `count` highest elements, all if the set is smaller."""
        return self - self.head(len(self) - count)

    @property
    def beyond(self) -> int:
        """Return the first number above all of them."""
        return self.ranges[-1][1] if self.ranges else 0


def _joined(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return ascending ranges with adjacent ranges merged."""
    made: list[tuple[int, int]] = []
    for first, beyond in ranges:
        if made and first <= made[-1][1]:
            made[-1] = (made[-1][0], max(made[-1][1], beyond))
        else:
            made.append((first, beyond))
    return tuple(made)
