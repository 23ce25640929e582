"""Results of a benchmark in which every figure reaches its bar."""

from __future__ import annotations

from qa.bench.api_rate import ApiRun
from qa.bench.bars import BARS
from qa.bench.crowd import CrowdRun
from qa.bench.judging import plan
from qa.bench.measure import Run
from qa.bench.observing import ObserveRun, ObserveRuns
from qa.bench.parse import ParseRun
from qa.bench.results import Results
from qa.bench.yardstick import Yardstick

PLAN = plan(BARS.values())


def run_of(shape: str, size: int, seconds: float, operation: str = "create", **options: object) -> Run:
    """Return an operation that took so long, with everything else well within its bar."""
    supplied = {
        "request_seconds": 0.1,
        "cpu_ms": {"worker": 1.0, "postgres": 0.5, "bench": 3.0},
        "peak_mb": {"worker": 100.0, "api": 110.0, "planner": 500.0},
        "reads": {"resource": 3.0},
        "writes": {"resource": 2.0},
        "list_p99_seconds": 0.05,
        "empty_per_second": 1_000.0,
        "empty_cpu_ms": 0.75,
        **options,
    }
    return Run(shape, size, operation, seconds=seconds, **supplied)  # type: ignore[arg-type]


def good_results() -> Results:
    """Return results in which everything reaches its bar: half as fast as the empty task."""
    results = Results([Yardstick(1_000.0, 0.6, 0.15, 2, 10_000)])
    for expected in PLAN:
        seconds = expected.size * (0.009 if expected.shape == "chain" else 0.002)
        for operation in expected.operations:
            took, additional = seconds * (1 + (operation == "replace-all")), {}
            if operation in ("no-change", "change-one"):
                took, additional = (
                    0.5 if expected.shape == "group" else expected.size / 25_000,
                    {"reading_seconds": 0.1, "writes": {"event": 8 / expected.size}},
                )
            if operation == "create":
                additional = {"bytes_per_resource": 1_500.0}
            run = run_of(expected.shape, expected.size, took, operation, **additional)
            results.runs += [run] * expected.times
    results.crowds = [CrowdRun(6.0, 17.0)]
    results.parses = [ParseRun(5_000_000, 0.5, 1.4, 39_000_000.0)] * 3
    results.resolve_ms = [0.05, 0.19, 5.0]
    results.observed = ObserveRuns(
        [ObserveRun(size, 20.0, size / 50_000, 10.0, 0.0, 0.5) for size in (1_000, 10_000, 100_000)],
        {1_000: 0.1, 10_000: 0.12},
        500_000.0,
    )
    results.api = [ApiRun("show", 400.0, 50.0, {"api": 2.0}, 1.1, 0.0)]
    return results
