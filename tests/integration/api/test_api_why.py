"""Why, progress and following, over HTTP: shapes, refusals, pages, and that callers are kept apart."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from sqlalchemy import text

from orchestrator.store.tables.graph import Failure, GraphNode
from tests.integration.api_world import Client, Made, World, api, project, world

__all__ = ["api", "project", "world"]

NOW = datetime.now(UTC)


@pytest.fixture
def working(world: World, project: str) -> Made:
    """A stack at work: `a` is being looked at, `b` waits for it, `c` is queued, `d` is ready."""
    stack = world.stack(
        project,
        "s",
        status="IN_PROGRESS",
        status_reason="Stack CREATE started",
        traversal=1,
        timeout_mins=60,
        action_started_at=NOW,
    )
    ids = {
        name: world.resource(stack, name, requires=["a"] if name == "b" else [], action="INIT")
        for name in "abcd"
    }
    node(world, stack, "b", ids, state="blocked", blocked_by=1)
    (target,) = ids_of(world, stack, "b")
    node(
        world,
        stack,
        "a",
        ids,
        state="waiting",
        due_at=NOW + timedelta(seconds=5),
        needed_by=[target],
        retry_count=2,
        last_error="ProviderError: no",
        waiting_since=NOW,
    )
    node(world, stack, "c", ids, state="queued")
    node(world, stack, "d", ids, state="ready", observed_ready=True, observed_ready_at=NOW)
    return stack


def node(world: World, stack: Made, name: str, ids: dict[str, int], **options: Any) -> None:
    with world.database.engine.connect() as connection:
        query = text("SELECT id FROM resource_definition WHERE stack_id = :s AND name = :n")
        definition = connection.execute(query, {"s": stack.id, "n": name}).scalar_one()
    world.insert(
        GraphNode,
        {
            "stack_id": stack.id,
            "root_id": stack.id,
            "traversal": 1,
            "kind": "update",
            "queue": "check",
            "resource_id": ids[name],
            "label": name,
            "definition_id": definition,
            **options,
        },
    )


def ids_of(world: World, stack: Made, name: str) -> list[int]:
    with world.database.engine.connect() as connection:
        query = text("SELECT id FROM graph_node WHERE stack_id = :s AND label = :n")
        return list(connection.execute(query, {"s": stack.id, "n": name}).scalars())


def test_a_stack_reports_the_blocker_of_each_resource(api: Client, working: Made):
    reported = api.get(f"{working.path}/why")["why"]
    assert reported["word"] == "working"
    assert reported["stack_status"] == "CREATE_IN_PROGRESS"
    assert reported["timeout_at"] == (NOW + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert reported["accepts"] == ["delete", "update", "cancel_without_rollback", "check"]
    waiting = {item["resource_name"]: item for item in reported["waiting"]}
    assert list(waiting) == ["a", "c", "b"]
    assert {name: item["word"] for name, item in waiting.items()} == {
        "a": "retrying",
        "b": "waiting-for",
        "c": "queued",
    }
    assert waiting["b"]["waits_for"] == ["a"]
    assert waiting["a"]["holds_up"] == ["b"]
    assert waiting["a"]["retry_count"] == 2
    assert waiting["a"]["next_attempt_at"] == (NOW + timedelta(seconds=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert waiting["a"]["last_error"] == "ProviderError: no"


def test_each_page_links_to_the_next(api: Client, working: Made):
    names, place = [], f"{working.path}/why?limit=1"
    while True:
        answer = api.get(place)
        names += [item["resource_name"] for item in answer["why"]["waiting"]]
        if "links" not in answer:
            break
        (following,) = answer["links"]
        assert following["rel"] == "next"
        parts = urlsplit(following["href"])
        place = f"{parts.path.removeprefix('/v1')}?{parts.query}"
    assert names == ["a", "c", "b"]


@pytest.mark.parametrize("marker", ["x", "active.1", "active.1.2.3", "plan.1.2", "update.-1.0"])
def test_a_marker_of_no_page_is_refused(api: Client, working: Made, marker: str):
    message = api.message("GET", f"{working.path}/why?marker={marker}", 400)
    assert f"Invalid marker '{marker}'" in message


def test_a_resource_reports_its_blocker(api: Client, working: Made):
    reported = api.get(f"{working.path}/resources/b/why")["why"]
    assert reported["resource_name"] == "b"
    assert [item["text"] for item in reported["waiting"]] == ["waits for a"]
    assert api.get(f"{working.path}/resources/d/why")["why"]["waiting"][0]["word"] == "nothing"
    message = api.message("GET", f"{working.path}/resources/none/why", 404)
    assert message == "The Resource (none) could not be found in Stack s."


def test_the_progress_of_a_stack_is_listed_and_shown(api: Client, working: Made):
    reported = api.get(f"{working.path}/progress")["progress"]
    counts = {"total": 4, "ready": 1, "failed": 0, "running": 1, "waiting": 1, "blocked": 1}
    assert {key: reported[key] for key in counts} == counts
    assert reported["word"] == "working"
    shown = api.get(working.path)["stack"]["progress"]
    assert shown == {**counts, "counted_at": shown["counted_at"], "rollouts": []}
    listed = f"/{working.project.replace(' ', '%20')}/stacks"
    assert "progress" not in api.get(listed)["stacks"][0]
    [row] = api.get(f"{listed}?with_progress=true")["stacks"]
    assert row["progress"] == {**counts, "counted_at": row["progress"]["counted_at"], "rollouts": []}


def test_a_list_has_the_progress_of_each_stack_in_progress(api: Client, world: World, working: Made):
    ended = world.stack(working.project, "ended")
    begun = world.stack(working.project, "begun", status="IN_PROGRESS", traversal=1)
    rows = api.get(f"/{working.project.replace(' ', '%20')}/stacks?with_progress=true")["stacks"]
    totals = {row["stack_name"]: row["progress"]["total"] for row in rows if "progress" in row}
    assert totals == {"s": 4, begun.name: 0}
    assert ended.name in {row["stack_name"] for row in rows}


def test_a_failed_stack_reports_every_cause_and_a_remedy(api: Client, world: World, project: str):
    stack = world.stack(project, "f", status="FAILED", action="UPDATE", traversal=3)
    causes = [
        {"stack_id": stack.id, "traversal": 3, "resource_name": f"r{n}", "reason": "no"} for n in range(12)
    ]
    world.insert(Failure, *causes, {**causes[0], "traversal": 2})
    reported = api.get(f"{stack.path}/why")["why"]
    assert reported["word"] == "failed"
    assert [cause["resource_name"] for cause in reported["causes"]] == [f"r{n}" for n in range(10)]
    assert reported["causes_count"] == 12
    assert reported["text"].endswith(
        "because of 12 failures. It has not reached revision 1. "
        "An update, with the same or a new template, continues from the current state"
    )


@pytest.mark.parametrize("place", ["/why", "/progress", "/resources/a/why"])
def test_events_are_not_delivered_to_other_projects(api: Client, world: World, working: Made, place: str):
    stranger = world.project().replace(" ", "%20")
    path = f"/{stranger}/stacks/{working.name}/{working.uuid}{place}"
    assert api.message("GET", path, 404) == "The Stack (s) could not be found."


@pytest.mark.parametrize("word", ["why", "progress"])
def test_a_name_alone_leads_there(api: Client, working: Made, word: str):
    path = f"/v1/{working.project.replace(' ', '%20')}/stacks/s/{word}?limit=1"
    response = api.http.get(path)
    assert response.status_code == 302
    assert response.headers["Location"].endswith(f"/stacks/s/{working.uuid}/{word}?limit=1")


def test_events_are_followed_from_a_sequence_number(api: Client, world: World, project: str):
    stack = world.stack(project, "s")
    for name in "abc":
        world.event(stack, name)
    first = api.get(f"{stack.path}/events?after=0.0&limit=2")["events"]
    assert [event["resource_name"] for event in first] == ["a", "b"]
    rest = api.get(f"{stack.path}/events?after={first[-1]['sequence']}")["events"]
    assert [event["resource_name"] for event in rest] == ["c"]
    last = rest[-1]["sequence"]
    assert api.get(f"{stack.path}/events?after={last}")["events"] == []
    assert api.get(f"{stack.path}/resources/a/events?after={last}")["events"] == []
    newest = api.get(f"{stack.path}/events?limit=1")["events"][0]
    assert newest["sequence"] == last


@pytest.mark.parametrize(
    "query", ["after=x", "after=1", "after=1.2.3", "after=1.2&sort_dir=desc", "after=1.2&marker=x"]
)
def test_a_sequence_that_is_none_is_refused(api: Client, world: World, project: str, query: str):
    stack = world.stack(project, "s")
    assert "after" in api.message("GET", f"{stack.path}/events?{query}", 400)


def test_an_answer_to_a_follower_is_bounded(
    api: Client, world: World, project: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("api.v1.events.AT_ONCE", 2)
    stack = world.stack(project, "s")
    for name in "abc":
        world.event(stack, name)
    assert len(api.get(f"{stack.path}/events?after=0.0")["events"]) == 2
    assert len(api.get(f"{stack.path}/events?after=0.0&limit=100")["events"]) == 2
