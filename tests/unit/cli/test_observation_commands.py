"""`orchestrator observation` and `orchestrator drift accept`: their requests, output and exit status."""

from __future__ import annotations

from typing import Any

from tests.unit.cli.command_line import Run, run, stub
from tests.unit.cli.stub import Stub

__all__ = ["run", "stub"]

RULE: dict[str, Any] = {
    "id": "r1",
    "kind": "policy",
    "stack_id": "s1",
    "stack_name": "shop",
    "type": None,
    "resource": None,
    "mode": "heal",
    "path": None,
    "reason": "because",
    "starts_at": "2026-01-31T12:00:00Z",
    "until": "2026-02-01T12:00:00Z",
    "repeats": None,
    "created_by": "alice",
    "creation_time": "2026-01-31T12:00:00Z",
    "ended_at": None,
    "ended_by": None,
}


def test_a_policy_is_set_for_a_stack_and_removed(stub: Stub, run: Run) -> None:
    stub.answers |= {
        "POST observation_policies": {"observation_policy": RULE},
        "GET observation_policies": {"observation_policies": [RULE, {**RULE, "id": "r2", "resource": "web"}]},
        "DELETE observation_policies/r1": {},
    }
    made = run("observation", "policy", "set", "heal", "shop", "--reason", "because")
    assert made.output == "The policy of shop is heal.\n"
    assert stub.requests[-1][4] == {"kind": "policy", "mode": "heal", "stack": "shop", "reason": "because"}
    assert run("observation", "policy", "unset", "shop").output == "The policy of shop has ended.\n"
    assert run("observation", "policy", "unset", "shop", "--resource", "db").exit_code == 1
    assert "because" in run("observation", "policy", "show").output


def test_a_policy_has_a_name_for_environments(stub: Stub, run: Run) -> None:
    rule = {**RULE, "stack_id": None, "stack_name": None, "name": "gold"}
    project = {**rule, "id": "r2", "name": None}
    stub.answers |= {
        "POST observation_policies": {"observation_policy": rule},
        "GET observation_policies": {"observation_policies": [project, rule]},
        "DELETE observation_policies/r1": {},
    }
    made = run("observation", "policy", "set", "heal", "--name", "gold")
    assert made.output == "The policy of environments with gold is heal.\n"
    assert stub.requests[-1][4] == {"kind": "policy", "mode": "heal", "name": "gold"}
    assert run("observation", "policy", "set", "heal", "shop", "--name", "gold").exit_code == 1
    assert run("observation", "policy", "unset", "--name", "gold").exit_code == 0
    assert stub.requests_of("DELETE")[-1].endswith("/r1")


def test_the_policy_of_a_stack_names_its_origin(stub: Stub, run: Run) -> None:
    found = {"mode": "heal", "policy": RULE, "pause": None}
    stub.answers["GET observation_policies/effective"] = {"effective": found}
    shown = run("observation", "policy", "show", "shop")
    assert "heal" in shown.output
    assert "alice" in shown.output


def test_a_pause_needs_an_end(stub: Stub, run: Run) -> None:
    stub.answers["POST observation_policies"] = {"observation_policy": RULE}
    pause = ("observation", "pause", "shop", "--reason", "work")
    assert run(*pause).exit_code == 1
    assert run(*pause, "--for", "soon").exit_code == 1
    assert run(*pause, "--for", "2h", "--from", "2026-01-31T10:00:00Z", "--repeat", "daily").exit_code == 0
    assert stub.requests[-1][4] == {
        "kind": "pause", "stack": "shop", "reason": "work", "starts_at": "2026-01-31T10:00:00Z",
        "until": "2026-01-31T12:00:00Z", "repeats": "daily",
    }  # fmt: skip


def test_a_difference_is_accepted(stub: Stub, run: Run) -> None:
    stub.answers["POST observation_policies"] = {"observation_policy": RULE}
    run("drift", "accept", "shop", "web.properties.metadata.*", "--reason", "ours")
    assert stub.requests[-1][4] == {
        "kind": "accept", "stack": "shop", "path": "web.properties.metadata.*", "reason": "ours",
    }  # fmt: skip
