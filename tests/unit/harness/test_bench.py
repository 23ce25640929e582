"""The benchmark measures the quantities that it names, and computes its figures correctly."""

from __future__ import annotations

import io
import time
from dataclasses import replace

import orjson
import pytest
from rich.console import Console

from orchestrator.graph.build import Graph, build
from orchestrator.template.parse import Limits
from orchestrator.template.template import load
from tests.bench import shapes
from tests.bench.__main__ import asked_for
from tests.bench.api_rate import ApiRun
from tests.bench.bars import BARS, Expected, judge, plan, short
from tests.bench.crowd import CrowdRun
from tests.bench.measure import Run, percentile
from tests.bench.parse import ParseRun, measure_parse, yaml_text
from tests.bench.processes import ProcessSample, Watch, family
from tests.bench.resolving import measure_resolving
from tests.bench.results import COLUMNS, Results, line, show, write
from tests.bench.shapes import CHILD, FILES, OPERATIONS, SHAPES, UPDATES, template
from tests.bench.yardstick import Yardstick

PLAN = plan(BARS.values())


def graph_of(shape: str, size: int, operation: str = "create") -> Graph:
    """Return the graph the engine finds in a shape's template; a cycle is an error."""
    resources = load(orjson.dumps(template(shape, size, operation)), Limits()).resources
    return build(list(resources), [resources[name].requires for name in resources])


def widths(graph: Graph) -> list[int]:
    """Return how many resources are at each depth."""
    depth: dict[int, int] = {}
    for node in graph.order:
        depth[node] = 1 + max((depth[required] for required in graph.requires[node]), default=-1)
    result = [0] * (max(depth.values()) + 1)
    for level in depth.values():
        result[level] += 1
    return result


@pytest.mark.parametrize("shape", sorted(SHAPES.keys() - FILES.keys() - {"group"}))
@pytest.mark.parametrize("size", [2, 3, 19, 200])
def test_every_shape_is_a_valid_template_of_the_size_asked_for(shape: str, size: int) -> None:
    assert len(graph_of(shape, size).order) == size


def test_nested_stacks_are_counted_with_their_contents() -> None:
    resources = template("nested", 11_000)["resources"]
    inside = orjson.loads(FILES["nested"][CHILD])["resources"]
    assert len(resources) * (1 + len(inside)) == 11_000


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("flat", [200]),
        ("chain", [1] * 200),
        ("layered", [20] * 10),
        ("fan-in", [199, 1]),
        ("fan-out", [1, 199]),
    ],
)
def test_each_shape_is_as_deep_and_as_wide_as_its_name_says(shape: str, expected: list[int]) -> None:
    assert widths(graph_of(shape, 200)) == expected


def test_layered_resources_have_two_parents_each_and_layers_of_a_thousand_at_most() -> None:
    graph = graph_of("layered", 12_000)
    assert widths(graph) == [1_000] * 12
    assert {len(requires) for requires in graph.requires} == {0, 2}
    assert [len(dependents) for dependents in graph.dependents()] == [2] * 11_000 + [0] * 1_000


@pytest.mark.parametrize("shape", SHAPES)
def test_the_template_of_a_resource_does_not_grow_with_the_stack(shape: str) -> None:
    small, large = (
        max(len(orjson.dumps(r["properties"])) for r in template(shape, size)["resources"].values())
        for size in (100, 10_000)
    )
    assert large <= small + 10  # longer names


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("operation", sorted(UPDATES))
def test_an_update_changes_as_many_resources_as_its_name_says_and_no_dependency(
    shape: str, operation: str
) -> None:
    before, after = template(shape, 50)["resources"], template(shape, 50, operation)["resources"]
    changed = {name for name in before if before[name] != after[name]}
    assert (
        len(changed)
        == {"no-change": 0, "change-one": 1, "change-all": len(before), "replace-all": len(before)}[operation]
    )
    assert list(graph_of(shape, 50).requires) == list(graph_of(shape, 50, operation).requires)


@pytest.mark.parametrize("shape", SHAPES)
def test_each_update_follows_its_predecessor(shape: str) -> None:
    snippets = {operation: template(shape, 50, operation)["resources"] for operation in OPERATIONS}
    last = next(reversed(snippets["create"]))
    assert all(last not in snippet.get("depends_on", ()) for snippet in snippets["create"].values())
    values = [snippets[item][last]["properties"] for item in ("create", "change-one", "change-all")]
    assert values[0] != values[1] != values[2] != values[0]
    made_from = [shapes._made_from(snippet) for snippet in snippets["replace-all"].values()]
    fixed = [properties["update_replace_value"] for properties in made_from]
    assert fixed == ["another"] * len(fixed)


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
    results.api = [ApiRun("show", 400.0, 50.0, {"api": 2.0}, 1.1, 0.0)]
    return results


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


def test_the_text_that_is_parsed_is_a_template_of_five_megabytes() -> None:
    assert len(load(yaml_text(100), Limits()).resources) == 100
    assert 4.9e6 < len(yaml_text(20_000)) < 5.5e6


def test_parsing_is_measured_in_a_process_of_its_own() -> None:
    run = measure_parse(2_000)
    assert run.text_bytes == len(yaml_text(2_000))
    assert 0 < run.times_events < 100  # a ratio of two times: below 1 on a loaded machine
    assert run.times_text is None or 1 < run.times_text < 100


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


def test_a_million_resources_get_fewer_measurements_and_a_comparison_at_ten_thousand() -> None:
    expected = asked_for([1_000_000], None, None, 1, rows=False)
    assert [(item.shape, item.size) for item in expected] == [("layered", 10_000), ("layered", 1_000_000)]
    assert {item.operations for item in expected} == {("create", "change-one", "delete")}
    assert {item.shape for item in asked_for([1_000], None, None, 1, rows=False)} == set(SHAPES)


def test_a_line_has_the_rates_and_a_dash_for_missing_figures() -> None:
    results = Results([Yardstick(1_000.0, 0.6, 0.15, 2, 5_000)])
    shown = dict(
        zip(COLUMNS, line(run_of("flat", 1_000, 4.0, reads=None, writes=None), results), strict=True)
    )
    assert (shown["per s"], shown["ms each"], shown["x empty"], shown["x by CPU"]) == (
        "250",
        "4.00",
        "0.25",
        "0.50",
    )
    assert (shown["rows read"], shown["bytes each"], shown["others"]) == ("-", "-", "-")


def test_the_table_names_failures_and_the_file_has_every_figure(tmp_path) -> None:
    results = good_results()
    results.failures.append("create chain-10: not complete")
    out = io.StringIO()
    show(results, Console(file=out, width=250))
    assert "empty Celery task: 1,000/s with 2 workers" in out.getvalue()
    assert "failed: create chain-10: not complete" in out.getvalue()
    written = orjson.loads(write(results, tmp_path / "deep" / "figures.json", judge(results)).read_bytes())
    assert len(written["runs"]) == len(results.runs)
    assert written["runs"][0]["cpu_ms"]["worker"] == 1.0
    assert {bar["name"] for bar in written["bars"]} == {verdict.name for verdict in judge(results)}


@pytest.mark.parametrize(
    ("count", "share", "expected"), [(100, 0.99, 99), (1_000, 0.99, 990), (10, 0.99, 10), (1, 0.5, 1)]
)
def test_a_percentile_is_a_value_that_was_seen(count: int, share: float, expected: int) -> None:
    assert percentile(list(range(count, 0, -1)), share) == expected


def test_processes_have_roles_by_command_and_parent() -> None:
    fork = "python -c from multiprocessing.forkserver import main"
    observed = {
        10: ProcessSample(1, "python -m orchestrator.cli.main up", 0.0),
        11: ProcessSample(10, "python -m celery -A tasks.app worker -n check1@%h", 0.0),
        12: ProcessSample(10, "python -m gunicorn api.app:create_app()", 0.0),
        13: ProcessSample(12, "python -m gunicorn api.app:create_app()", 0.0),
        14: ProcessSample(13, fork, 0.0),
        15: ProcessSample(14, fork, 0.0),
        16: ProcessSample(11, "python -m orchestrator.operations.planner_process 1 2 3", 0.0),
        20: ProcessSample(1, "postgres", 0.0),
        21: ProcessSample(20, "postgres: checkpointer", 0.0),
        30: ProcessSample(1, "a stranger's celery worker", 0.0),
    }
    assert family({10: "up", 20: "postgres", 99: "gone"}, observed) == {
        10: "up",
        11: "worker",
        12: "api",
        13: "api",
        14: "api",
        15: "planner",
        16: "planner",
        20: "postgres",
        21: "postgres",
    }


def test_a_watch_counts_our_own_processor_time() -> None:
    with Watch({}) as watch:
        until = time.process_time() + 0.05
        while time.process_time() < until:
            pass
    assert 0.05 <= watch.usage.cpu_seconds["bench"] < 5
    assert watch.usage.peak_mb == {}
