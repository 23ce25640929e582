"""The benchmark measures the quantities that it names, and computes its figures correctly."""

from __future__ import annotations

import io
import time

import orjson
import pytest
from rich.console import Console

from orchestrator.graph.build import Graph, build
from orchestrator.template.parse import Limits
from orchestrator.template.template import load
from qa.bench import shapes
from qa.bench.__main__ import asked_for
from qa.bench.judging import judge
from qa.bench.measure import percentile
from qa.bench.parse import measure_parse, yaml_text
from qa.bench.processes import ProcessSample, Watch, family
from qa.bench.results import COLUMNS, Results, line, show, write
from qa.bench.shapes import CHILD, FILES, OPERATIONS, SHAPES, UPDATES, template
from qa.bench.yardstick import Yardstick
from tests.unit.harness.bench_results import good_results, run_of


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


def test_the_text_that_is_parsed_is_a_template_of_five_megabytes() -> None:
    assert len(load(yaml_text(100), Limits()).resources) == 100
    assert 4.9e6 < len(yaml_text(20_000)) < 5.5e6


def test_parsing_is_measured_in_a_process_of_its_own() -> None:
    run = measure_parse(2_000)
    assert run.text_bytes == len(yaml_text(2_000))
    assert 0 < run.times_events < 100  # a ratio of two times: below 1 on a loaded machine
    assert run.times_text is None or 1 < run.times_text < 100


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
