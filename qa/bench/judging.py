"""Bars, the measurements that they need, and the verdicts on the results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from qa.bench.results import Results, middle
from qa.bench.shapes import OPERATIONS


@dataclass(frozen=True, slots=True)
class Expected:
    """A measurement that the bars need."""

    shape: str
    size: int
    operations: tuple[str, ...] = ("create",)
    times: int = 1
    rows: bool = False
    listing: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """A figure and its bar; `value` is None if the measurement failed."""

    name: str
    value: float | None
    unit: str
    bar: float
    at_least: bool = False  # else at most

    @property
    def ok(self) -> bool:
        """Whether the bar is reached."""
        if self.value is None:
            return False
        return self.value >= self.bar if self.at_least else self.value <= self.bar

    def __str__(self) -> str:
        """Return the verdict as a line of text."""
        result = "not measured" if self.value is None else f"{self.value:,.2f}{self.unit}"
        bound = "at least" if self.at_least else "at most"
        return (
            f"{'ok   ' if self.ok else 'SHORT'} {self.name:52} {result:>14}  {bound} {self.bar:,g}{self.unit}"
        )


@dataclass(frozen=True, slots=True)
class Bar:
    """A promised figure, and the measurements it needs."""

    judge: Callable[[Results], Verdict]
    needs: tuple[Expected, ...] = ()
    parsing: bool = False
    crowd: bool = False
    api: bool = False
    observing: bool = False


BARS: dict[str, Bar] = {}


def bar(
    *needs: Expected,
    parsing: bool = False,
    crowd: bool = False,
    api: bool = False,
    observing: bool = False,
) -> Callable[[Callable[[Results], Verdict]], Callable[[Results], Verdict]]:
    """Register a figure under its function's name."""

    def register(judge: Callable[[Results], Verdict]) -> Callable[[Results], Verdict]:
        BARS[judge.__name__.replace("_", "-")] = Bar(judge, needs, parsing, crowd, api, observing)
        return judge

    return register


def doing(expected: Expected, *operations: str) -> Expected:
    """Return a measurement with these operations after the create."""
    return replace(expected, operations=("create", *operations))


def plan(bars: Iterable[Bar]) -> list[Expected]:
    """Return the measurements that these bars need: each stack once, with the union of its operations."""
    result: dict[tuple[str, int], Expected] = {}
    for need in (need for item in bars for need in item.needs):
        recorded = result.get((need.shape, need.size), need)
        result[need.shape, need.size] = Expected(
            need.shape,
            need.size,
            tuple(name for name in OPERATIONS if name in recorded.operations + need.operations),
            max(recorded.times, need.times),
            recorded.rows or need.rows,
            recorded.listing or need.listing,
        )
    return list(result.values())


def judge(results: Results, names: Iterable[str] = BARS) -> list[Verdict]:
    """Return figures with their bars."""
    return [BARS[name].judge(results) for name in names]


def circumstances(results: Results) -> str:
    """Say how far wall clock figures can be trusted."""
    shares = [run.foreign_share for run in results.runs] + [run.foreign_share for run in results.yardsticks]
    foreign_share = middle(share for share in shares if share is not None)
    return (
        ""
        if foreign_share is None
        else f"Other processes used {foreign_share:.0%} of the machine during the runs (median)."
    )


def short(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return those that fall short."""
    return [verdict for verdict in verdicts if not verdict.ok]
