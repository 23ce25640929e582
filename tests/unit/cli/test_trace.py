"""`orchestrator trace`: the file of a tree of stacks, and its bounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.commands import trace
from tests.unit.cli.command_line import Run, run, stub
from tests.unit.cli.stub import Stub

__all__ = ["run", "stub"]


def timeline(second: int, *names: str, count: int | None = None) -> dict[str, Any]:
    """Return an action that began at a second; with `count` it is too large for bars."""

    def at(after: int) -> str:
        return f"2026-01-01T12:00:{second + after:02}.000Z"

    bars = [
        {
            "resource_name": name, "resource_type": "A", "queued_at": at(0), "started_at": at(1),
            "waiting_at": None, "ended_at": at(2), "failed": False, "critical": False,
        }
        for name in names
    ]  # fmt: skip
    lanes = [] if count is None else [{"resource_type": "A", "count": count}]
    return {
        "timeline": {
            "begun_at": at(0), "ended_at": at(5), "count": len(bars) if count is None else count,
            "bars": bars, "lanes": lanes, "critical_path": [],
        }
    }  # fmt: skip


@pytest.fixture
def tree(stub: Stub) -> dict[str, Any]:
    """A stack with nested stacks; the last action did not change `old`."""
    made = {name: stub.add(name) for name in ("web", "group", "old", "inner")}
    pages = [[made["group"], made["old"]], [made["inner"]], []]
    stub.answers["GET stacks"] = [{"stacks": [stack.shown(False) for stack in page]} for page in pages]
    for name, second in (("web", 10), ("group", 11), ("old", 3), ("inner", 12)):
        path = f"GET stacks/{name}/{made[name].id}/timeline"
        stub.answers[path] = timeline(second, f"of-{name}")
    return made


def names_in(path: Path) -> dict[str, set[str]]:
    """Return the operations in a file by process."""
    events = json.loads(path.read_text())["traceEvents"]
    processes = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    found: dict[str, set[str]] = {}
    for event in events:
        if event["ph"] == "X" and event["name"].startswith("of-"):
            found.setdefault(processes[event["pid"]], set()).add(event["name"])
    return found


def test_a_file_has_the_nested_stacks_that_took_part(
    stub: Stub, run: Run, tree: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    result = run("trace", "web", "-o", str(path))
    assert result.exit_code == 0, result.output
    assert "Wrote 3 operations" in result.output
    assert names_in(path) == {"A": {"of-web"}, "stack group": {"of-group"}, "stack inner": {"of-inner"}}
    owners = [query["owner_id"] for _, path, query, *_ in stub.requests if path.endswith("/stacks")]
    assert owners == [[tree["web"].id], [tree["group"].id, tree["old"].id], [tree["inner"].id]]


def test_a_revision_has_the_stack_only(stub: Stub, run: Run, tree: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    run("trace", "web", "--revision", "1", "-o", str(path))
    assert names_in(path) == {"A": {"of-web"}}


def test_a_full_file_leaves_nested_stacks_out(
    stub: Stub, run: Run, tree: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trace.json"
    stub.answers[f"GET stacks/group/{tree['group'].id}/timeline"] = timeline(11, count=200_000)
    result = run("trace", "web", "-o", str(path))
    assert "Some nested stacks are left out" in result.output
    assert names_in(path) == {"A": {"of-web"}, "stack inner": {"of-inner"}}
    pages = [[tree["group"], tree["old"]], [tree["inner"]], []]
    stub.answers["GET stacks"] = [{"stacks": [stack.shown(False) for stack in page]} for page in pages]
    monkeypatch.setattr(trace, "MAX_STACKS", 1)
    assert "left out" in run("trace", "web", "-o", str(path)).output
