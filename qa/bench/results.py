"""Results of a benchmark run, printed as a table and written as JSON."""

from __future__ import annotations

import datetime as dt
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from statistics import median

import orjson
from rich.console import Console
from rich.table import Table

from qa.bench.api_rate import ApiRun
from qa.bench.crowd import CrowdRun
from qa.bench.measure import Run
from qa.bench.observing import ObserveRuns
from qa.bench.parse import ParseRun
from qa.bench.yardstick import Yardstick

FOLDER = Path("bench-results")
BASE = 10_000  # resources of the reference stack
WIDE = 210  # columns, if the terminal reports no width
COLUMNS = (
    *("shape", "resources", "operation", "request s", "s", "per s"),
    *("x empty", "x by CPU", "ms each", "x 10k"),
    *("worker CPU ms", "database CPU ms", "broker CPU ms"),
    *("worker MB", "api MB", "planner MB", "bytes each", "rows read", "written", "others"),
)


@dataclass(slots=True)
class Results:
    """All measurements of a run."""

    yardsticks: list[Yardstick] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    parses: list[ParseRun] = field(default_factory=list)
    resolve_ms: list[float] = field(default_factory=list)  # of the properties of a resource, in each round
    crowds: list[CrowdRun] = field(default_factory=list)
    api: list[ApiRun] = field(default_factory=list)
    observed: ObserveRuns = field(default_factory=ObserveRuns)
    failures: list[str] = field(default_factory=list)

    def of(self, shape: str, size: int, operation: str) -> list[Run]:
        """Return the runs of a shape, size and operation."""
        return [run for run in self.runs if (run.shape, run.size, run.operation) == (shape, size, operation)]


def middle(values: Iterable[float]) -> float | None:
    """Return the median, or None of nothing."""
    recorded = list(values)
    return median(recorded) if recorded else None


def show(results: Results, console: Console | None = None) -> None:
    """Print the parsing cost, the yardstick, a line for each run, and the failures."""
    console = console or _console()
    for parsing in results.parses:
        console.print(str(parsing), highlight=False)
    if results.yardsticks:
        console.print(_summary(results.yardsticks), highlight=False)
    if results.runs:
        table = Table(*COLUMNS, box=None, header_style="bold", pad_edge=False)
        for column in table.columns[3:]:
            column.justify = "right"
        table.columns[1].justify = "right"
        for run in results.runs:
            table.add_row(*line(run, results))
        console.print(table)
        console.print(
            "x empty: resources per second divided by empty tasks per second, measured before and "
            "after the run; x by CPU: the same ratio in processor time, which other load affects "
            "less; x 10k: cost of a resource divided by that in a stack of 10,000; others: share of "
            "the machine that other processes used during the run.",
            style="dim",
        )
    for crowd in results.crowds:
        console.print(str(crowd), highlight=False)
    for item in results.api:
        console.print(str(item), highlight=False)
    if results.observed.rounds:
        console.print(str(results.observed), highlight=False)
    for failure in results.failures:
        console.print(f"failed: {failure}", style="red", highlight=False)


def line(run: Run, results: Results) -> Sequence[str]:
    """Return a run as COLUMNS; unknown figures are a dash."""
    by_cpu = run.empty_cpu_ms / run.total_cpu_ms if run.empty_cpu_ms and run.total_cpu_ms else None
    return (
        *(run.shape, f"{run.size:,}", run.operation),
        *(_number(run.request_seconds, 2), _number(run.seconds, 2), _number(run.per_second, 0)),
        *(_number(run.times_empty, 2), _number(by_cpu, 2)),
        *(_number(run.ms_each, 2), _number(grown(run, results), 2)),
        *(_number(run.cpu_ms.get(name), 3) for name in ("worker", "postgres", "valkey")),
        *(_number(run.peak_mb.get(name), 0) for name in ("worker", "api", "planner")),
        _number(run.bytes_per_resource, 0),
        *(_number(None if rows is None else sum(rows.values()), 1) for rows in (run.reads, run.writes)),
        _share(run.foreign_share),
    )


def grown(run: Run, results: Results) -> float | None:
    """Return the cost of a resource over that in a stack of BASE, if measured."""
    base = cost(results.of(run.shape, BASE, run.operation))
    return None if base is None or run.size <= BASE or run.empties_each is None else run.empties_each / base


def cost(runs: Iterable[Run]) -> float | None:
    """Return the cost of a resource in empty tasks: the median of the runs."""
    return middle(run.empties_each for run in runs if run.empties_each is not None)


def _summary(yardsticks: Sequence[Yardstick]) -> str:
    rates = [yardstick.tasks_per_second for yardstick in yardsticks]
    worker, broker = (
        median(getattr(yardstick, name) for yardstick in yardsticks)
        for name in ("worker_cpu_ms", "broker_cpu_ms")
    )
    foreign_share = middle(
        yardstick.foreign_share for yardstick in yardsticks if yardstick.foreign_share is not None
    )
    return (
        f"empty Celery task: {median(rates):,.0f}/s with {yardsticks[0].workers} workers, {min(rates):,.0f} "
        f"to {max(rates):,.0f} in {len(rates)} runs of {yardsticks[0].tasks:,} tasks (CPU ms a task: worker "
        f"{worker:.3f}, broker {broker:.3f}; others {_share(foreign_share)})"
    )


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def write(results: Results, path: Path | None, verdicts: Sequence[object] = ()) -> Path:
    """Write everything as JSON, below FOLDER and named by the time when no path is given; return where."""
    now = dt.datetime.now(dt.UTC)
    path = path or FOLDER / f"{now:%Y%m%d-%H%M%S}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "at": now.isoformat(timespec="seconds"),
        "machine": {
            "cores": os.cpu_count(),
            "load": os.getloadavg(),
            "system": platform.platform(terse=True),
            "python": platform.python_version(),
            "celery": version("celery"),
            "kombu": version("kombu"),
        },
        **asdict(results),
        "bars": [asdict(verdict) for verdict in verdicts],  # type: ignore[call-overload]
    }
    path.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS) + b"\n")
    return path


def _console() -> Console:
    return Console() if sys.stdout.isatty() else Console(width=WIDE)
