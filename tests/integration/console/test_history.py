"""The history of a stack: field and map at a past time."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import datetime as dt
import re
from html import unescape

import pytest

from orchestrator.operations.pictures import field as built
from orchestrator.operations.pictures.history import COMPLETE, GONE, NO_EVENT, PLANNED, state_at
from orchestrator.store.pictures.history import NO_STATE
from orchestrator.store.tables.observation import ResourceVerdict, VerdictHistory
from orchestrator_console.views import history
from tests.e2e.running import eventually
from tests.integration.api_world import Client, Made, World, api, project, world  # noqa: F401 - fixtures
from tests.integration.console.console_world import Browser, links, words
from tests.integration.console.test_field import states
from tests.integration.console.test_timeline import at

DELETED = max(GONE)


def past(world: World, project: str) -> Made:
    """A stack: `a` was created at 10 s and has failed at 30 s, `b` was created at 20 s; `c` is gone."""
    made = world.stack(project, "past")
    world.resource(made, "a", action="UPDATE", status="FAILED")
    world.resource(made, "b", action="CREATE", status="COMPLETE")
    world.event(made, "past", status="IN_PROGRESS", physical_id=str(made.uuid), created_at=at(0))
    for name, action, status, seconds in (
        ("c", "CREATE", "COMPLETE", 1),
        ("a", "CREATE", "IN_PROGRESS", 5),
        ("a", "CREATE", "COMPLETE", 10),
        ("b", "CREATE", "COMPLETE", 20),
        ("a", "UPDATE", "FAILED", 30),
        ("c", "DELETE", "COMPLETE", 40),
    ):
        world.event(made, name, action=action, status=status, created_at=at(seconds))
    return made


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(7, ["in_progress", "planned"]), (15, ["complete", "planned"]), (35, ["failed", "complete"])],
)
def test_the_states_are_those_of_the_last_events(
    api: Client, world: World, project: str, seconds: int, expected: list[str]
) -> None:
    made = past(world, project)
    query = {"at": at(seconds).isoformat()}
    answer = api.http.get(f"/v1{made.path}/field", query_string=query)
    assert states(answer.data) == expected
    summary = api.get(f"{made.path}/field/summary", query_string=query)["field"]
    assert summary["history_from"] == "2026-01-01T12:00:00.654Z"
    assert summary["omitted"] == 1
    [group] = api.get(f"{made.path}/map", query_string=query)["map"]["groups"]
    assert set(group["counts"]) == set(expected)


def drift(world: World, stack: Made, name: str, since: int, until: int | None) -> None:
    """Let a resource be missing from a time on, and write the event of the observation."""
    resource_id = world.resource(stack, name, action="CREATE", status="COMPLETE", physical_id="p")
    fault = {
        "stack_id": stack.id, "project_id": stack.project, "name": name, "type": "Test::Plain",
        "physical_id": "p", "verdict": "MISSING", "differences": [], "resource_id": resource_id,
        "service": "x", "reason": "gone",
    }  # fmt: skip
    if until is None:
        row = {"root_id": stack.id, "group_id": 1, "confirmed": True, "observed_at": at(since)}
        world.insert(ResourceVerdict, {**fault, **row, "since": at(since)})
    else:
        row = {"fault_id": 1, "last_seen_at": at(until - 1), "ended_at": at(until)}
        world.insert(VerdictHistory, {**fault, **row, "first_seen_at": at(since)})
    reason = "Observed MISSING: gone"
    world.event(stack, name, action="CHECK", status="FAILED", reason=reason, created_at=at(since))


@pytest.mark.parametrize(("seconds", "expected"), [(5, 0), (15, 1), (25, 2), (35, 1)])
def test_drift_is_that_of_the_time(
    api: Client, world: World, project: str, seconds: int, expected: int
) -> None:
    made = world.stack(project, "drifting", created_at=at(0))
    for name in ("a", "b"):
        world.event(made, name, created_at=at(1))
    drift(world, made, "a", 10, 30)
    drift(world, made, "b", 20, None)
    query = {"at": at(seconds).isoformat()}
    summary = api.get(f"{made.path}/field/summary", query_string=query)["field"]
    assert summary["counts"]["drift"] == expected
    assert summary["counts"]["complete"] == 2  # a finding of the observation is no state
    [group] = api.get(f"{made.path}/map", query_string=query)["map"]["groups"]
    assert group["counts"].get("drift", 0) == expected
    page = Browser(world.client()).text(f"/ui{made.path}/history?step=100")
    assert re.search(r'data-state="drift">.*?<span class="amount">1<', page, re.DOTALL)


def test_the_present_field_follows_the_drift(api: Client, world: World, project: str) -> None:
    made = world.stack(project, "watched")
    drift(world, made, "a", 10, None)

    def shown() -> int:
        return int(api.get(f"{made.path}/field/summary")["field"]["counts"]["drift"])

    assert shown() == 1
    for confirmed in (False, True):
        with world.database.connect() as db:
            db.execute("UPDATE resource_verdict SET confirmed = %s WHERE stack_id = %s", [confirmed, made.id])
        eventually(lambda confirmed=confirmed: shown() == confirmed)
        world.event(made, "a", action="CHECK")  # an event leaves the drift alone
        eventually(lambda confirmed=confirmed: shown() == confirmed)


def test_a_time_before_the_history_is_its_beginning(api: Client, world: World, project: str) -> None:
    made = past(world, project)
    summary = api.get(f"{made.path}/field/summary?at=2020-01-01")["field"]
    assert summary["at"] == summary["history_from"]
    assert api.get(f"{made.path}/field/summary")["field"]["counts"]["failed"] == 1
    assert "Invalid time" in api.message("GET", f"{made.path}/field?at=yesterday", 400)


def test_the_delete_of_a_replaced_object_is_not_that_of_its_resource() -> None:
    replaced, deleted = 8 * DELETED + COMPLETE, 8 * DELETED + NO_STATE
    assert state_at(replaced, existed=True, is_older=False) == COMPLETE
    assert state_at(replaced, existed=False, is_older=False) == DELETED
    assert state_at(deleted, existed=True, is_older=False) == DELETED
    assert state_at(NO_EVENT, existed=True, is_older=True) == COMPLETE
    assert state_at(NO_EVENT, existed=True, is_older=False) == PLANNED


def test_the_present_is_that_of_the_field(world: World, project: str) -> None:
    made, api = past(world, project), world.client()
    world.resource(made, "silent", action="CREATE", status="FAILED")  # without an event
    now = dt.datetime.now(dt.UTC).isoformat()
    answer = api.http.get(f"/v1{made.path}/field", query_string={"at": now})
    assert states(answer.data) == ["failed", "complete", "failed"]


def test_a_large_stack_shows_a_past_time_after_its_page(
    world: World, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MAX_AT_ONCE", 1)
    made, browser = past(world, project), Browser(world.client())
    page = browser.text(f"/ui{made.path}/history?step=0")
    assert 'data-newer-in="0"' in page
    assert 'class="map"' not in page
    [place] = re.findall(r'data-hx-get="([^"]*)"', page)
    whole = browser.text(unescape(place), headers={"HX-Request": "true"})
    assert re.findall(r'data-at="([^"]*)"', whole) == re.findall(r'data-at="([^"]*)"', page)
    assert 'class="map"' in whole
    assert "Not shown, as deleted since" not in page
    monkeypatch.setattr(built, "LARGE", 1)
    first = Browser(world.client()).text(f"/ui{made.path}/history")
    assert 'class="map"' in first  # of the present, without levels
    assert 'data-newer-in="0"' in first


def test_the_page_moves_through_the_history_without_scripts(world: World, project: str) -> None:
    made = past(world, project)
    browser = Browser(world.client())
    page = browser.text(f"/ui{made.path}/history?step=0")
    assert "History begins at 2026-01-01 12:00:00" in words(page)
    [later] = [link for link in links(page) if link.endswith("step=1")]
    assert "Earlier" in browser.text(later)
    assert 'data-at="2' in page
    assert browser.open(f"/ui{made.path}/field/data?at=2026-01-01T12:00:16Z").status_code == 200
    assert browser.text(f"/ui{made.path}/history?step=x")
