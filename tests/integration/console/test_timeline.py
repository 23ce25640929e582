"""The timeline of an action: phases, lanes of large actions, and its page."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import pytest

from api.streaming import timelines
from orchestrator.operations.pictures import timeline
from orchestrator.operations.pictures.timeline import Timeline
from orchestrator.store.tables.events import Event
from orchestrator.store.tables.graph import GraphNode, Resource, ResourceDefinition
from tests.integration.api_world import START, Client, Made, World, api, project, world  # noqa: F401 - fixtures
from tests.integration.console.console_world import Browser, links, words


def at(seconds: float) -> dt.datetime:
    return START + dt.timedelta(seconds=seconds)


def stack(world: World, project: str) -> Made:
    """A stack whose create has `first`, and then `second`, which fails."""
    made = world.stack(
        project,
        "timed",
        status="FAILED",
        traversal=1,
        action_started_at=START,
        revision={"traversal": 1, "created_at": START},
    )
    for name, requires in (("first", []), ("second", ["first"])):
        id_ = world.resource(made, name, requires)
        ready = at(4) if name == "first" else None
        world.insert(
            GraphNode,
            {
                "stack_id": made.id,
                "root_id": made.id,
                "traversal": 1,
                "kind": "update",
                "resource_id": id_,
                "queue": "check",
                "label": name,
                "state": "ready" if ready else "failed",
                "observed_ready": ready is not None,
                "observed_ready_at": ready,
                "waiting_since": at(2) if name == "first" else None,
            },
        )
    for name, status, seconds in (
        ("first", "IN_PROGRESS", 1),
        ("first", "COMPLETE", 4),
        ("second", "IN_PROGRESS", 60),
        ("second", "FAILED", 61),
    ):
        world.event(made, name, status=status, created_at=at(seconds))
    return made


def test_operations_have_phases_and_a_critical_path(api: Client, world: World, project: str) -> None:
    made = stack(world, project)
    body = api.get(f"{made.path}/timeline")["timeline"]
    first, second = body["bars"]
    assert (first["queued_at"], first["waiting_at"]) == (
        "2026-01-01T12:00:00.654Z",
        "2026-01-01T12:00:02.654Z",
    )
    assert second["queued_at"] == first["ended_at"] == "2026-01-01T12:00:04.654Z"
    assert (second["failed"], first["failed"]) == (True, False)
    assert [step["resource_name"] for step in body["critical_path"]] == ["first", "second"]
    assert sum(body["throughput"]["ended"]) == 2
    assert body["throughput"]["in_progress"][-1] == 1
    assert len(body["idle"]) == 1
    assert api.get(f"{made.path}/timeline?revision=1")["timeline"]["count"] == 2
    api.get(f"{made.path}/timeline?revision=7", 404)
    api.get(f"{made.path}/timeline?limit=100001", 400)
    api.get(f"/other/stacks/{made.name}/{made.uuid}/timeline", 404)


def test_findings_of_the_observation_are_no_operations(api: Client, world: World, project: str) -> None:
    made = stack(world, project)
    finding = {"action": "CHECK", "status": "FAILED", "reason": "Observed MISSING: gone"}
    world.event(made, "first", **finding, created_at=at(900))
    first, _ = api.get(f"{made.path}/timeline")["timeline"]["bars"]
    assert (first["failed"], first["ended_at"]) == (False, "2026-01-01T12:00:04.654Z")


def test_a_large_action_has_a_lane_per_type(api: Client, world: World, project: str) -> None:
    made = stack(world, project)
    body = api.get(f"{made.path}/timeline?limit=1")["timeline"]
    assert body["bars"] == []
    [lane] = body["lanes"]
    assert (lane["count"], lane["failed"], len(lane["density"])) == (2, 1, 100)
    assert max(lane["density"]) == 1
    assert body["throughput"]["in_progress"] == lane["density"]
    assert sum(body["throughput"]["ended"]) == 2
    assert [step["resource_name"] for step in body["critical_path"]] == ["first", "second"]


def test_the_page_draws_bars_and_lists_the_critical_path(world: World, project: str) -> None:
    made = stack(world, project)
    page = Browser(world.client()).text(f"/ui{made.path}/timeline")
    assert "timed ✕ create failed" in words(page)
    assert "2 operations in 1 min 1 s" in words(page)
    assert page.count("phase-queued") == 3  # two bars and the legend
    assert "Operations that ended (line, up to 2)" in words(page)
    assert "&#34;ended&#34;:[0," in page
    assert any(link.endswith("/resources/second") for link in links(page))
    assert "style=" not in page


def test_the_page_counts_operations_in_progress_as_such(world: World, project: str) -> None:
    made = stack(world, project)
    world.event(made, "third", status="IN_PROGRESS", created_at=at(61.5))
    browser = Browser(world.client())
    page = words(browser.text(f"/ui{made.path}/timeline"))
    assert "3 operations in" in page
    assert "(line, up to 2)" in page
    assert "Last action" not in page
    assert "Last action" in words(browser.text(f"/ui{made.path}/timeline?revision=1"))


def wide(world: World, project: str) -> Made:
    """A stack whose create has 301 operations of three types, a second each."""
    made = world.stack(
        project, "wide", traversal=1, action_started_at=START, revision={"traversal": 1, "created_at": START}
    )
    names = [f"r{n:03}" for n in range(301)]
    world.insert(
        Resource, *[{"uuid": uuid.uuid4(), "stack_id": made.id, "name": name, "type": "A"} for name in names]
    )
    world.insert(
        ResourceDefinition,
        *[{"stack_id": made.id, "name": name, "digest": b"d", "body": {}, "valid_from": 1} for name in names],
    )
    world.insert(
        Event,
        *[
            {
                "stack_id": made.id,
                "resource_name": name,
                "resource_type": f"T{n % 3}",
                "action": "CREATE",
                "reason": "",
                "created_at": at(n + second),
                "status": status,
            }
            for n, name in enumerate(names)
            for second, status in enumerate(("IN_PROGRESS", "COMPLETE"))
        ],
    )
    return made


def test_more_than_300_operations_are_drawn_as_lanes(world: World, project: str) -> None:
    made = wide(world, project)
    page = Browser(world.client()).text(f"/ui{made.path}/timeline")
    assert page.count('class="area"') == 4  # with the chart


def test_the_first_picture_of_a_long_action_counts_its_events(
    world: World, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline, "LONG", 600)
    made, api = wide(world, project), world.client()
    first, whole = (api.get(f"{made.path}/timeline{query}")["timeline"] for query in ("?draft=true", ""))
    assert (first["draft"], whole["draft"]) == (True, False)
    assert first["critical_path"] == []
    assert first["count"] == whole["count"] == 301
    assert [lane["density"] for lane in first["lanes"]] == [lane["density"] for lane in whole["lanes"]]
    assert first["throughput"] == whole["throughput"]
    assert api.get(f"{made.path}/timeline?draft=true")["timeline"]["draft"] is False  # it is kept
    page = Browser(world.client()).text(f"/ui{made.path}/timeline?revision=1")
    assert 'data-newer-in="0"' in page
    [link] = [link for link in links(page) if "complete=1" in link]
    assert "Critical path" in Browser(world.client()).text(link)


def test_viewers_of_a_long_action_share_a_read(
    world: World, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline, "LONG", 600)
    monkeypatch.setattr(timelines, "PAUSE_FACTOR", 1e6)
    made, api, reads = wide(world, project), world.client(), []
    build = timeline.build

    def counted(*values: Any) -> Timeline | None:
        reads.append(values)
        return build(*values)

    monkeypatch.setattr(timeline, "build", counted)
    for _ in range(3):
        assert api.get(f"{made.path}/timeline")["timeline"]["count"] == 301
    world.event(made, "new", status="IN_PROGRESS", created_at=at(400))
    outdated = api.get(f"{made.path}/timeline")["timeline"]
    assert (len(reads), outdated["count"]) == (1, 301)
    assert outdated["newer_in_seconds"] > 0
    monkeypatch.setattr(timelines, "PAUSE_FACTOR", 0)
    other = world.client()
    api.get(f"{made.path}/timeline")
    assert other.get(f"{made.path}/timeline")["timeline"]["count"] == 302
    world.event(made, "newer", status="IN_PROGRESS", created_at=at(401))
    assert other.get(f"{made.path}/timeline")["timeline"]["count"] == 303
