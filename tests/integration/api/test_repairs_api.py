"""Repairs over HTTP: lists, approvals and refusals."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import text

from orchestrator.store.tables.observation import ResourceVerdict
from orchestrator.store.tables.repairs import Repair
from tests.integration.api_world import Client, Made, World, api, project, world

__all__ = ["api", "project", "world"]

NOW = datetime.now(UTC)


@pytest.fixture
def stack(world: World, project: str) -> Made:
    """A stack with a missing resource whose repair is pending."""
    made = world.stack(project, "s")
    resource_id = world.resource(made, "web", physical_id="p", action="CREATE")
    fault = {
        "stack_id": made.id, "root_id": made.id, "project_id": project, "group_id": 1, "name": "web",
        "type": "Test::Plain", "physical_id": "p", "verdict": "MISSING", "differences": [],
        "resource_id": resource_id,
    }  # fmt: skip
    fault_id = 10**9 + resource_id
    seen = {"service": "x", "confirmed": True, "reason": "gone", "since": NOW, "observed_at": NOW}
    world.insert(ResourceVerdict, {**fault, **seen, "id": fault_id})
    decision = {"action": "recreate", "status": "pending", "reason": "the policy is ask", "due_at": NOW}
    world.insert(Repair, {**fault, **decision, "fault_id": fault_id, "fault_reason": "gone"})
    return made


def pending(api: Client, project: str) -> Any:
    [found] = api.get(f"/{project}/repairs?status=pending&stack=s")["repairs"]
    return found


def test_a_pending_repair_is_approved_once_with_the_effect_that_was_shown(
    api: Client, stack: Made, project: str
) -> None:
    shown = pending(api, project)
    assert (shown["resource_name"], shown["action"], shown["status_reason"]) == (
        "web", "recreate", "the policy is ask",
    )  # fmt: skip
    path = f"/{project}/repairs/{shown['id']}"
    api.ask("POST", f"{path}/approve", 409, json={"effect": "another"})
    body = {"effect": shown["effect"], "reason": "backed up"}
    answered = api.ask("POST", f"{path}/approve", 200, json=body)["repair"]
    assert (answered["status"], answered["decision_reason"]) == ("approved", "backed up")
    api.ask("POST", f"{path}/decline", 409)
    assert api.get(path)["repair"]["decided_at"] is not None


def test_a_repair_of_a_fault_that_has_ended_is_refused(
    world: World, api: Client, stack: Made, project: str
) -> None:
    shown = pending(api, project)
    with world.database.engine.begin() as connection:
        connection.execute(text("DELETE FROM resource_verdict WHERE stack_id = :id"), {"id": stack.id})
    api.ask("POST", f"/{project}/repairs/{shown['id']}/approve", 409)
    assert pending(api, project)["status"] == "pending"


def test_bad_answers_and_foreign_repairs_are_refused(api: Client, stack: Made, project: str) -> None:
    path = f"/{project}/repairs/{pending(api, project)['id']}"
    api.ask("POST", f"{path}/approve", 400, json={"force": True})
    api.ask("POST", f"{path}/decline", 400, json={"reason": 7})
    api.get(f"/{project}/repairs?status=cured", 400)
    api.get(f"/{project}/repairs?stack=nope", 404)
    assert api.get("/stranger/repairs")["repairs"] == []
    for method, url in (("GET", path), ("POST", f"{path}/approve"), ("POST", f"{path}/decline")):
        api.ask(method, url.replace(f"/{project}/", "/stranger/"), 404)
    assert api.ask("POST", f"{path}/decline", 200)["repair"]["status"] == "declined"


def test_a_convergence_is_planned_over_http_and_bad_requests_change_nothing(
    world: World, api: Client, project: str
) -> None:
    made = world.stack(project, "still")
    path = f"{made.path}/actions"
    api.ask("POST", path, 409, json={"converge": None})  # it has not reached its revision
    with world.database.engine.begin() as connection:
        reached = "UPDATE stack SET good_revision_id = revision_id WHERE id = :id"
        connection.execute(text(reached), {"id": made.id})
    found = api.ask("POST", path, 200, json={"converge": {"plan": True}})["converge"]
    assert (found["stack_name"], found["resources"], found["started"]) == ("still", [], False)
    for bad in ({"force": True}, {"plan": 1}, {"resources": ["web"]}, 7):
        api.ask("POST", path, 400, json={"converge": bad})
    foreign = f"/stranger/stacks/still/{made.uuid}/actions"
    api.ask("POST", foreign, 404, json={"converge": {"plan": True}})
    busy = world.stack(project, "busy", status="IN_PROGRESS")
    api.ask("POST", f"{busy.path}/actions", 409, json={"converge": {"plan": True}})
