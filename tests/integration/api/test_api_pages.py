"""Rarely used operations, and pages of lists (docs/internals/rest-api.md §4)."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import pytest
from sqlalchemy import select

from orchestrator.store.nodes.hooks import Paused
from orchestrator.store.tables.snapshots import Snapshot
from orchestrator.store.tables.stacks import Stack
from tests.integration.api_world import START, Client, World, api, project, root, world  # noqa: F401 - fixtures


def test_detailed_lists_ignore_filters_and_omit_hidden_stacks(
    world: World, api: Client, project: str
) -> None:
    world.stack(project, "one", timeout_mins=7)
    world.stack(project, "two", age=1)
    world.stack(project, "shy", age=2, tags=["data-processing-cluster"])
    world.stack(world.project(), "foreign")
    listed = api.get(f"{root(project)}/stacks/detail?name=one&limit=1&zz=1")["stacks"]
    assert [item["stack_name"] for item in listed] == ["two", "one"]
    item = listed[1]
    assert (item["timeout_mins"], item["disable_rollback"]) == (7, True)
    assert (item["capabilities"], item["notification_topics"]) == ([], [])
    assert item.keys() > api.get(f"{root(project)}/stacks?name=one")["stacks"][0].keys()


def test_snapshots_come_in_pages(world: World, api: Client, project: str) -> None:
    stack = world.stack(project, "s")
    with world.database.engine.connect() as connection:
        revision_id = connection.execute(select(Stack.revision_id).where(Stack.id == stack.id)).scalar_one()
    made: dict[str, Any] = {"stack_id": stack.id, "revision_id": revision_id, "traversal": 1}
    made |= {"action": "CREATE", "status": "COMPLETE", "status_reason": ""}
    for age, name in enumerate(("a", "b", "c")):
        at = START + dt.timedelta(seconds=age)
        world.insert(Snapshot, {**made, "uuid": uuid.uuid4(), "name": name, "created_at": at})
    place = f"{stack.path}/snapshots"
    whole = api.get(place)
    assert ([snapshot["name"] for snapshot in whole["snapshots"]], "links" in whole) == (
        ["a", "b", "c"],
        False,
    )
    first = api.get(f"{place}?limit=2")
    assert [snapshot["name"] for snapshot in first["snapshots"]] == ["a", "b"]
    [link] = first["links"]
    assert link["rel"] == "next"
    rest = api.get(link["href"].partition("/v1")[2])
    assert ([snapshot["name"] for snapshot in rest["snapshots"]], "links" in rest) == (["c"], False)
    assert len(api.get(f"{place}?marker=nothing")["snapshots"]) == 3
    api.get(f"{place}?limit=x", 400)


def test_resources_waiting_at_hooks_are_paged(world: World, api: Client, project: str) -> None:
    stack = world.stack(project, "s")
    place = f"{stack.path}/hooks"
    since = START + dt.timedelta(microseconds=5)
    world.neighbour.paused = [Paused("a", "pre-create", "INIT", "COMPLETE", since, 17)]
    try:
        assert "links" not in api.get(place)
        [link] = api.get(f"{place}?limit=1")["links"]
        api.get(link["href"].partition("/v1")[2])
        assert world.neighbour.asked_after == (since, 17)
        for marker in ("nothing", "2026-01-01T12:00:00/x", f"2026-01-01T12:00:00/{'9' * 30}"):
            api.get(f"{place}?marker={marker}")
    finally:
        world.neighbour.paused = []


@pytest.mark.parametrize("word", ["waitcondition", "signal"])
def test_a_signed_url_has_a_single_method_and_needs_no_token(world: World, word: str) -> None:
    client = world.client(auth="token")
    arn = "arn%3Aopenstack%3Aheat%3A%3Ap%3Astacks%2Fs%2Fi%2Fresources%2Fr"
    response = client.http.delete(f"/v1/{word}/{arn}")
    assert (response.status_code, response.headers["Allow"]) == (
        405,
        "PUT" if word == "waitcondition" else "POST",
    )
    client.get(f"/{word}/stacks", 401)  # a project of that name is an ordinary project
