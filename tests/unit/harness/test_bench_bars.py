"""The bars of the benchmark: missed figures are named, and each bar has its measurements."""

from __future__ import annotations

from dataclasses import replace

import pytest

from qa.bench.bars import BARS
from qa.bench.crowd import CrowdRun
from qa.bench.judging import Expected, judge, plan, short
from qa.bench.parse import ParseRun
from qa.bench.resolving import measure_resolving
from qa.bench.results import COLUMNS, Results, line
from qa.bench.shapes import OPERATIONS
from tests.unit.harness.bench_results import PLAN, good_results, run_of


def failing(results: Results) -> set[str]:
    """Return the names of the missed bars."""
    return {verdict.name for verdict in short(judge(results))}


def test_figures_that_reach_every_bar_fall_short_of_none() -> None:
    assert failing(good_results()) == set()


def test_without_figures_every_bar_falls_short() -> None:
    verdicts = judge(Results())
    assert len(short(verdicts)) == len(BARS)
    assert all("not measured" in str(verdict) for verdict in verdicts)


@pytest.mark.parametrize(
    ("shape", "size", "seconds", "more", "name"),
    [
        ("layered", 10_000, 20.1, {}, "create layered 10,000"),
        ("flat", 10_000, 25.1, {}, "create flat 10,000"),
        ("fan-in", 10_000, 25.1, {}, "create fan-in 10,000"),
        ("fan-out", 10_000, 25.1, {}, "create fan-out 10,000"),
        ("chain", 10_000, 100.1, {}, "a link of chain 10,000"),
        ("layered", 100_000, 261.0, {}, "cost of a resource, 100,000 over 10,000"),
        ("layered", 100_000, 200.0, {"reads": {"resource": 3.5}}, "rows read by a check, 100,000 over 1,000"),
        (
            *("layered", 100_000, 200.0),
            *({"writes": {"resource": 2.0, "stack": 1.0}}, "rows written by a check, 100,000 over 1,000"),
        ),
        ("flat", 1_000, 2.0, {"request_seconds": 1.1}, "POST of 1,000 resources"),
        ("flat", 20_000, 40.0, {"request_seconds": 5.1}, "POST of 20,000 resources"),
        ("flat", 20_000, 40.0, {"list_p99_seconds": 0.11}, "list p99 during that POST"),
        ("flat", 20_000, 40.0, {"peak_mb": {"worker": 151.0}}, "memory of a worker"),
        ("flat", 20_000, 40.0, {"peak_mb": {"api": 201.0}}, "memory of the API"),
        (
            *("layered", 100_000, 200.0),
            *({"peak_mb": {"planner": 1_025.0}}, "memory of the planner at 100,000"),
        ),
    ],
)
def test_a_figure_beyond_its_bar_is_named(
    shape: str, size: int, seconds: float, more: dict[str, object], name: str
) -> None:
    results = good_results()
    results.runs = [
        run_of(shape, size, seconds, **more)
        if (run.shape, run.size, run.operation) == (shape, size, "create")
        else run
        for run in results.runs
    ]
    assert failing(results) == {name}


@pytest.mark.parametrize(("by_index", "short_of"), [(20.0, False), (23.5, True)])
def test_counting_how_far_a_stack_is_counts_for_no_check(by_index: float, short_of: bool) -> None:
    results = good_results()
    additional = {
        "reads": {"resource": 3.0, "graph_node": by_index},
        "writes": {"resource": 2.0, "progress": 20 / 100_000},  # twenty counts, of all nodes each
        "index_entries": {"ix_graph_node_visit": by_index},
    }
    results.runs = [
        run_of(run.shape, run.size, 200.0, **additional)
        if run.size == 100_000 and run.shape == "layered"
        else run
        for run in results.runs
        if run.operation == "create"
    ]
    assert ("rows read by a check, 100,000 over 1,000" in failing(results)) is short_of


@pytest.mark.parametrize(
    ("run", "name"),
    [
        (ParseRun(5_000_000, 0.5, 1.6, 39_000_000.0), "parse YAML of 20,000 resources"),
        (ParseRun(5_000_000, 0.5, 1.4, 41_000_000.0), "memory to parse it"),
        (ParseRun(5_000_000, 0.5, 1.4, None), "memory to parse it"),
    ],
)
def test_parsing_beyond_its_bar_is_named(run: ParseRun, name: str) -> None:
    results = good_results()
    results.parses = [run] * 3
    assert failing(results) == {name}


def test_resolving_beyond_its_bar_is_named() -> None:
    results = good_results()
    results.resolve_ms = [0.1, 0.21, 0.3]
    assert failing(results) == {"resolve a resource's properties"}
    assert 0 < measure_resolving() < 50


def test_a_single_slow_run_of_three_does_not_decide() -> None:
    results = good_results()
    first = next(run for run in results.runs if (run.shape, run.size) == ("flat", 10_000))
    results.runs[results.runs.index(first)] = run_of("flat", 10_000, 500.0)
    assert failing(results) == set()


def test_every_bar_finds_its_figures_among_the_measurements() -> None:
    results = good_results()
    assert all(verdict.value is not None for verdict in judge(results))
    assert any(expected.listing and expected.size == 20_000 for expected in PLAN)
    assert {expected.size for expected in PLAN if expected.rows} == {1_000, 100_000}
    assert Expected("layered", 10_000, OPERATIONS, times=3) in PLAN


@pytest.mark.parametrize(
    ("operation", "size", "seconds", "more", "name"),
    [
        ("change-all", 10_000, 20.1, {}, "change-all layered 10,000"),
        ("replace-all", 10_000, 40.1, {}, "replace-all layered 10,000"),
        ("delete", 10_000, 20.1, {}, "delete layered 10,000"),
        (
            *("no-change", 100_000, 4.0),
            *({"reading_seconds": 0.0, "request_seconds": 1.1}, "no-change layered 100,000, beyond parsing"),
        ),
        ("change-one", 100_000, 5.1, {}, "change-one layered 100,000, beyond parsing"),
        ("no-change", 100_000, 4.0, {"writes": {"graph_node": 0.001}}, "no-change layered 100,000"),
        ("change-one", 100_000, 4.0, {"writes": {"graph_node": 0.001}}, "change-one layered 100,000"),
        ("no-change", 10_000, 0.3, {}, "no-change by resource, 100,000 over 10,000"),
        ("change-one", 10_000, 0.3, {}, "change-one by resource, 100,000 over 10,000"),
    ],
)
def test_an_update_beyond_its_bar_is_named(
    operation: str, size: int, seconds: float, more: dict[str, object], name: str
) -> None:
    results = good_results()
    supplied = {"reading_seconds": 0.1, "writes": {"event": 8 / size}, **more}
    results.runs = [
        run_of("layered", size, seconds, operation, **supplied)
        if (run.shape, run.size, run.operation) == ("layered", size, operation)
        else run
        for run in results.runs
    ]
    assert failing(results) == {name}


def test_a_run_is_compared_with_the_empty_task_of_its_own_moment() -> None:
    """The machine was half as fast while the large stack was made: its resources cost no more for that."""
    results = good_results()
    large = results.of("layered", 100_000, "create")
    results.runs = [
        replace(run, seconds=run.seconds * 2, empty_per_second=500.0) if run in large else run
        for run in results.runs
    ]
    assert failing(results) == set()
    [shown] = {line(run, results)[COLUMNS.index("x 10k")] for run in results.of("layered", 100_000, "create")}
    assert shown == "1.00"


def test_small_stacks_that_wait_for_a_large_stack_are_named() -> None:
    results = good_results()
    results.crowds = [CrowdRun(6.0, 18.1)]
    assert failing(results) == {"small stacks beside 100,000"}


def test_a_bar_can_be_measured_alone_with_only_its_measurements() -> None:
    assert plan([BARS["delete"]]) == [Expected("layered", 10_000, ("create", "delete"), times=3)]
    assert plan([BARS["crowd"]]) == plan([BARS["parse-time"]]) == []
    assert [verdict.name for verdict in judge(good_results(), ["growth"])] == [
        "cost of a resource, 100,000 over 10,000"
    ]
