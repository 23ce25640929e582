"""Timelines: queues, the critical path, folded times, and traces."""

from __future__ import annotations

from typing import Any

from orchestrator.cli.output.trace import trace_document
from orchestrator.engine.pictures.timeline import (
    Bar,
    Fold,
    critical_path,
    folds,
    lanes_density,
    throughput,
    with_queues,
)


def bar(name: str, start: float, end: float | None, waiting: float | None = None) -> Bar:
    return Bar(name, "A", start, start, waiting, end, False)


def test_a_resource_is_queued_since_its_last_requirement_ended() -> None:
    bars = with_queues([bar("c", 9, 12), bar("a", 1, 3), bar("b", 2, 5)], {"c": ["a", "b"]}, 0.0)
    assert [(item.name, item.queued_at) for item in bars] == [("a", 0.0), ("b", 0.0), ("c", 5.0)]


def test_a_requirement_that_ended_later_does_not_count_for_the_queue() -> None:
    [_, late] = with_queues([bar("a", 0, 9), bar("b", 4, 6)], {"b": ["a"]}, 0.0)
    assert (late.name, late.queued_at) == ("b", 0.0)


def test_the_critical_path_follows_the_requirement_that_ended_last() -> None:
    bars = [bar("a", 0, 3), bar("b", 0, 5), bar("c", 5, 8), bar("d", 0, 7)]
    requires = {"c": ["a", "b", "unknown"], "a": ["c"]}
    assert [step.name for step in critical_path(bars, requires)] == ["b", "c"]
    assert critical_path([], {}) == []


def test_an_operation_in_progress_ends_last() -> None:
    assert [step.name for step in critical_path([bar("a", 0, 9), bar("b", 0, None)], {})] == ["b"]


def test_long_idle_times_are_folded() -> None:
    found = folds([(0, 1), (50, 60), (55, 61), (99, 100)], 0, 100)
    assert found == [Fold(1, 50), Fold(61, 99)]
    assert folds([], 5, 5) == []


def test_the_density_counts_operations_in_progress() -> None:
    assert lanes_density([2, 1, 0], [0, 2, 1]) == [2, 3, 1]


def test_the_throughput_has_the_operations_of_each_part_of_the_time() -> None:
    found = throughput([(0, 4), (1, 9), (5, 5), (8, None)], 0, 10, 5)
    assert found.in_progress == [2, 2, 3, 1, 2]
    assert found.ended == [0, 0, 2, 0, 1]
    assert throughput([], 5, 5, 2).in_progress == [0, 0]


def test_a_trace_has_a_slice_per_operation_and_phase() -> None:
    def operation(name: str, queued: int, start: int, waiting: int | None, end: int | None) -> dict[str, Any]:
        def at(second: int | None) -> str | None:
            return None if second is None else f"2026-01-01T12:00:{second:02}.000Z"

        return {
            "resource_name": name,
            "resource_type": "A",
            "queued_at": at(queued),
            "started_at": at(start),
            "waiting_at": at(waiting),
            "ended_at": at(end),
            "failed": False,
            "critical": name == "b",
        }

    document = trace_document(
        {
            "ended_at": "2026-01-01T12:00:09.000Z",
            "bars": [
                operation("a", 0, 1, 2, 4),
                operation("b", 2, 2, None, None),
                operation("c", 5, 5, None, 6),
            ],
            "critical_path": [
                {"resource_name": "b", "begun_at": "2026-01-01T12:00:02.000Z", "ended_at": None}
            ],
        }
    )
    slices = [event for event in document["traceEvents"] if event["ph"] == "X"]
    of = {event["name"]: event for event in slices if event["pid"] == 2}
    assert [event["name"] for event in slices if event["pid"] == 2 and event["tid"] == of["a"]["tid"]] == [
        "a",
        "queued",
        "provider",
        "waiting",
        "c",
        "provider",
    ]
    assert of["b"]["tid"] != of["a"]["tid"]
    assert of["b"]["dur"] == 7_000_000
    assert of["b"]["args"] == {"state": "in progress", "critical": True}
    assert [event["name"] for event in slices if event["pid"] == 1] == ["b"]


def test_nested_stacks_are_processes_of_a_trace() -> None:
    bar = {"resource_name": "x", "resource_type": "A", "failed": False, "critical": False}
    times = {"queued_at": 0, "started_at": 1, "waiting_at": None, "ended_at": 2}
    bar |= {
        key: None if second is None else f"2026-01-01T12:00:0{second}.000Z" for key, second in times.items()
    }
    timeline = {"ended_at": "2026-01-01T12:00:09.000Z", "bars": [bar], "critical_path": []}
    document = trace_document(timeline, [("web-group", timeline), ("web-group-0", timeline)])
    names = {
        event["pid"]: event["args"]["name"]
        for event in document["traceEvents"]
        if event["name"] == "process_name"
    }
    assert names == {1: "Critical path", 2: "A", 3: "stack web-group", 4: "stack web-group-0"}
    assert [event["pid"] for event in document["traceEvents"] if event["name"] == "x"] == [2, 3, 4]
