"""Policies, pauses and accepted differences over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.operations.observation import rules
from tests.integration.api_world import Client, Made, World, api, project, root, world

__all__ = ["api", "project", "root", "world"]

LATER, PAST = "2100-01-01T00:00:00Z", "2020-01-01T00:00:00Z"


@pytest.fixture
def stack(world: World, project: str) -> Made:
    made = world.stack(project, "s")
    world.resource(made, "web", type="Test::Watched")
    return made


@pytest.fixture
def path(project: str) -> str:
    return f"/{project}/observation_policies"


def post(api: Client, path: str, status: int = 201, /, **body: Any) -> Any:
    return api.ask("POST", path, status, json=body)


def faults(api: Client, path: str, /, **body: Any) -> set[str]:
    answer = post(api, path, 400, **body)
    return {fault["code"] for fault in answer["error"]["errors"]}


def test_a_policy_replaces_that_of_the_same_object_and_stays_in_the_history(
    api: Client, stack: Made, path: str
) -> None:
    for mode in ("heal", "ask"):
        post(api, path, kind="policy", stack="s", mode=mode, reason="because")
    post(api, path, kind="policy", stack="s", type="Test::Watched", mode="off")
    post(api, path, kind="policy", mode="report")
    listed = api.get(path)["observation_policies"]
    assert [(item["stack_name"], item["type"], item["mode"]) for item in listed] == [
        ("s", None, "ask"), ("s", "Test::Watched", "off"), (None, None, "report"),
    ]  # fmt: skip
    history = api.get(f"{path}?history=true&stack=s")["observation_policies"]
    assert [(item["mode"], item["ended_at"] is not None) for item in history] == [
        ("heal", True), ("ask", False), ("off", False),
    ]  # fmt: skip


def test_the_effective_policy_of_a_resource_names_its_rule(api: Client, stack: Made, path: str) -> None:
    post(api, path, kind="policy", stack="s", mode="heal")
    made = post(api, path, kind="policy", stack="s", resource="web", mode="ask")["observation_policy"]
    pause = post(api, path, kind="pause", stack="s", reason="work", until=LATER)["observation_policy"]
    found = api.get(f"{path}/effective?stack=s&resource=web")["effective"]
    assert (found["mode"], found["policy"]["id"], found["pause"]["id"]) == ("ask", made["id"], pause["id"])
    assert api.get(f"{path}/effective?stack=s")["effective"]["mode"] == "heal"
    assert api.ask("DELETE", f"{path}/{made['id']}", 204) is None
    assert api.get(f"{path}/effective?stack=s&resource=web")["effective"]["mode"] == "heal"
    assert api.get(f"{path}/{made['id']}")["observation_policy"]["ended_at"] is not None
    api.ask("DELETE", f"{path}/{made['id']}", 404)


def test_an_acceptance_names_properties_of_the_stack(api: Client, stack: Made, path: str) -> None:
    accept = {"kind": "accept", "stack": "s", "reason": "ours"}
    made = post(api, path, path="web.properties.label.*", until=LATER, **accept)["observation_policy"]
    assert (made["path"], made["until"], made["mode"]) == ("web.properties.label.*", LATER, None)
    post(api, path, path="*", all=True, **accept)
    assert faults(api, path, path="*", **accept) == {"accepts-everything"}
    assert faults(api, path, path="other.properties.*", **accept) == {"matches-nothing"}
    assert faults(api, path, path="web.properties.nope", **accept) == {"matches-nothing"}
    assert faults(api, path, path="web", **accept) == {"invalid-path"}
    assert faults(api, path, path="web.properties.label.*", until=PAST, **accept) == {"past-time"}
    assert faults(api, path, kind="accept", path="web.properties.label.*") == {
        "missing-reason",
        "missing-stack",
    }


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ({}, {"invalid-kind"}),
        ({"kind": "policy"}, {"invalid-mode"}),
        ({"kind": "policy", "mode": "cure"}, {"invalid-mode"}),
        ({"kind": "policy", "mode": "off", "until": LATER}, {"unknown-key"}),
        ({"kind": "policy", "mode": "off", "type": "Test::Plane"}, {"unknown-type"}),
        ({"kind": "policy", "mode": "off", "stack": "s", "resource": "x"}, {"unknown-resource"}),
        ({"kind": "policy", "mode": "off", "resource": "web"}, {"missing-stack"}),
        (
            {"kind": "policy", "mode": "off", "stack": "s", "resource": "web", "type": "Test::Watched"},
            {"contradiction"},
        ),
        ({"kind": "policy", "mode": 7}, {"invalid-text"}),
        ({"kind": "pause", "until": LATER}, {"missing-reason"}),
        ({"kind": "pause", "reason": "r"}, {"missing-end"}),
        ({"kind": "pause", "reason": "r", "until": PAST}, {"past-time"}),
        ({"kind": "pause", "reason": "r", "until": "soon"}, {"invalid-time"}),
        (
            {"kind": "pause", "reason": "r", "until": LATER, "starts_at": "2101-01-01T00:00:00Z"},
            {"invalid-time"},
        ),
        (
            {"kind": "pause", "reason": "r", "starts_at": PAST, "until": LATER, "repeats": "daily"},
            {"invalid-time"},
        ),
        ({"kind": "pause", "reason": "r", "until": LATER, "repeats": "often"}, {"invalid-repetition"}),
    ],
)  # fmt: skip
def test_bad_requests_change_nothing(
    api: Client, stack: Made, path: str, body: dict[str, Any], codes: set[str]
) -> None:
    assert faults(api, path, **body) == codes
    assert api.get(path)["observation_policies"] == []


def test_another_project_sees_and_names_nothing(api: Client, stack: Made, path: str) -> None:
    made = post(api, path, kind="policy", stack="s", mode="heal")["observation_policy"]
    other = "/stranger/observation_policies"
    assert api.get(other)["observation_policies"] == []
    for method in ("GET", "DELETE"):
        api.ask(method, f"{other}/{made['id']}", 404)
    post(api, other, 404, kind="policy", stack=str(stack.uuid), mode="off")
    api.get(f"{other}/effective?stack={stack.uuid}", 404)


def test_a_project_has_a_limit(api: Client, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MAX_RULES", 1)
    first = post(api, path, kind="policy", mode="heal")["observation_policy"]
    post(api, path, kind="policy", mode="off")  # replaces
    assert api.get(f"{path}/{first['id']}")["observation_policy"]["ended_at"] is not None
    assert "maximum" in str(post(api, path, 400, kind="pause", reason="r", until=LATER))


def test_a_policy_has_an_interval(api: Client, stack: Made, path: str) -> None:
    made = post(api, path, kind="policy", stack="s", mode="report", interval=30)["observation_policy"]
    assert made["interval"] == 30
    for interval in (0, -1, 1e9, "30", True):
        assert faults(api, path, kind="policy", mode="report", interval=interval) == {"invalid-interval"}
    assert "unknown-key" in faults(api, path, kind="pause", reason="x", until=LATER, interval=30)
