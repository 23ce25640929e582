"""Repairs that wait for an approval, in the pages."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import text

from orchestrator.security.tokens import create_token
from orchestrator.store.tables.observation import ResourceVerdict
from orchestrator.store.tables.repairs import Repair
from tests.integration.api_world import Client, Made, World, api, project, world  # noqa: F401 - fixtures
from tests.integration.console.console_world import Browser, words

MARKUP = "<b>gone</b>"
NOW = datetime.now(UTC)


def pending_repair(world: World, stack: Made, name: str, **values: Any) -> None:
    """Add a resource that is missing, whose repair waits for an approval."""
    resource_id = world.resource(stack, name, physical_id="p", action="CREATE")
    fault = {
        "stack_id": stack.id, "root_id": stack.id, "project_id": stack.project, "group_id": 1, "name": name,
        "type": "Test::Plain", "physical_id": "p", "verdict": "MISSING", "differences": [],
        "resource_id": resource_id, **values,
    }  # fmt: skip
    fault_id = 10**9 + resource_id
    seen = {"service": "x", "confirmed": True, "reason": MARKUP, "since": NOW, "observed_at": NOW}
    world.insert(ResourceVerdict, {**fault, **seen, "id": fault_id})
    decision = {"action": "recreate", "status": "pending", "reason": "the policy is ask", "due_at": NOW}
    world.insert(Repair, {**fault, **decision, "fault_id": fault_id, "fault_reason": MARKUP})


@pytest.fixture
def stack(world: World, project: str) -> Made:
    made = world.stack(project, "s")
    for name in ("db", "web"):
        pending_repair(world, made, name)
    return made


def fields(page: str) -> dict[str, str]:
    """Return the hidden fields of the form."""
    return dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', page))


def statuses(api: Client, project: str) -> dict[str, tuple[str, str | None]]:
    found = api.get(f"/{project}/repairs")["repairs"]
    return {row["resource_name"]: (row["status"], row["decision_reason"]) for row in found}


def button(page: str, verb: str, name: str) -> str:
    """Return the value of the button for a resource."""
    [found] = re.findall(rf'value="({verb}:[^"]+)" aria-label="{verb.title()} the repair of {name}"', page)
    return str(found)


def test_overview_and_drift_list_pending_repairs_with_their_effect(
    world: World, project: str, stack: Made
) -> None:
    browser = Browser(world.client())
    for place in (f"/ui/{project}/", f"/ui{stack.path}/drift", f"/ui/{project}/repairs?stack={stack.uuid}"):
        page = browser.text(place)
        shown = words(page)
        assert "recreate Creates a new object." in shown, place
        assert "The policy is ask" in shown, place
        assert MARKUP not in page
    assert "2 repairs wait for an approval" in words(browser.text(f"/ui{stack.path}/drift"))
    other = world.stack(project, "other")
    assert "No repair waits" in browser.text(f"/ui/{project}/repairs?stack={other.uuid}")


def test_a_repair_is_approved_and_another_declined_with_a_reason(
    world: World, project: str, stack: Made, api: Client
) -> None:
    browser = Browser(world.client())
    place = f"/ui/{project}/repairs"
    page = browser.text(place)
    browser.submit(place, fields(page) | {"reason": "backed up", "answer": button(page, "approve", "db")})
    assert statuses(api, project) == {"db": ("approved", "backed up"), "web": ("pending", None)}
    page = browser.text(f"{place}?stack={stack.uuid}")
    answer = browser.submit(place, fields(page) | {"answer": button(page, "decline", "web")})
    assert (answer.location or "").endswith(f"/repairs?stack={stack.uuid}")
    assert statuses(api, project)["web"] == ("declined", None)
    assert "repairs wait" not in browser.text(f"/ui{stack.path}/drift")


def test_all_shown_repairs_are_answered_at_once_and_no_later_one(
    world: World, project: str, stack: Made, api: Client
) -> None:
    browser = Browser(world.client())
    place = f"/ui/{project}/repairs"
    page = browser.text(place)
    pending_repair(world, stack, "late")
    browser.submit(place, fields(page) | {"answer": "approve:all"})
    found = {name: status for name, (status, _) in statuses(api, project).items()}
    assert found == {"db": "approved", "web": "approved", "late": "pending"}


def test_a_repair_that_has_changed_is_shown_again_and_not_done(
    world: World, project: str, stack: Made, api: Client
) -> None:
    browser = Browser(world.client())
    place = f"/ui/{project}/repairs"
    page = browser.text(place)
    with world.database.engine.begin() as connection:
        change = "UPDATE repair SET action = 'replace' WHERE stack_id = :id AND name = 'db'"
        connection.execute(text(change), {"id": stack.id})
    values = fields(page) | {"reason": "kept <text>", "answer": "approve:all"}
    again = browser.submit(place, values, 409).text
    assert "1 repair changed or ended while the page was open. Nothing was done for it" in words(again)
    assert "1 repair was approved" in words(again)
    assert 'value="kept &lt;text&gt;"' in again
    assert "Deletes the object, and creates a new one." in again
    assert {name: status for name, (status, _) in statuses(api, project).items()} == {
        "db": "pending",
        "web": "approved",
    }
    browser.submit(place, fields(again) | {"answer": button(again, "approve", "db")})
    assert statuses(api, project)["db"][0] == "approved"


def test_answers_are_for_own_pages_and_permitted_roles(
    world: World, project: str, stack: Made, api: Client
) -> None:
    place = f"/ui/{project}/repairs"
    browser = Browser(world.client())
    values = fields(browser.text(place)) | {"answer": "approve:all"}
    foreign = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    browser.submit(place, values, 403, headers=foreign)
    browser.submit(place, values | {"answer": "approve:other"}, 400)
    browser.submit(place, values | {"answer": "delete:all"}, 400)
    reader = Browser(world.client(auth="token"))
    reader.submit("/ui/sign-in", {"token": create_token(world.database, project, "r", None, ["reader"])})
    page = reader.text(place)
    assert "Your role does not permit an answer." in page
    assert "<button name=" not in page
    assert "Approve or decline" not in reader.text(f"/ui/{project}/")
    reader.submit(place, values, 403)
    assert {status for status, _ in statuses(api, project).values()} == {"pending"}
    stranger = Browser(world.client())
    assert "No repair waits" in stranger.text("/ui/stranger/repairs")
    stranger.submit("/ui/stranger/repairs", values, 409)
    assert {status for status, _ in statuses(api, project).values()} == {"pending"}
