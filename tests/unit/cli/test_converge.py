"""`orchestrator converge`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.cli.command_line import Run, run, stub
from tests.unit.cli.stub import Stub

__all__ = ["run", "stub"]


def planned(path: str, verdict: str, **options: Any) -> dict[str, Any]:
    return {
        "path": path, "resource_type": "OS::Nova::Server", "verdict": verdict, "reason": "",
        "differences": [], "action": None, "obstacle": None, "restricted": False, "holds_data": False,
        **options,
    }  # fmt: skip


def answer(stub: Stub, *resources: dict[str, Any], started: bool = False) -> None:
    stack = stub.add("shop")
    found = {"stack_name": "shop", "observed": 3, "resources": list(resources), "started": started}
    stub.answers[f"POST stacks/shop/{stack.id}/actions"] = {"converge": found}


CHANGED = planned(
    "web", "MODIFIED", action="update", differences=[{"property": "name", "expected": "a", "found": "b"}]
)


def test_a_plan_is_shown_and_ends_with_two(stub: Stub, run: Run) -> None:
    lost = planned("g.0.db", "MISSING", action="recreate", reason="gone", holds_data=True)
    other = planned("key", "MISSING", action="recreate", reason="gone", obstacle="the resource is external")
    answer(stub, CHANGED, lost, other)
    result = run("converge", "shop", "--plan", "--resource", "web", "--resource", "g.0.db")
    assert result.exit_code == 2
    for text in ("name: a → b", "holds data", "not repaired: the resource is external", "recreate"):
        assert text in result.output
    assert stub.requests[-1][-1] == {"converge": {"plan": True, "resources": ["web", "g.0.db"]}}


def test_the_start_of_a_repair_is_reported(stub: Stub, run: Run) -> None:
    answer(stub, CHANGED, started=True)
    result = run("converge", "shop")
    assert result.exit_code == 0
    assert "Repair of stack shop" in result.output
    assert stub.requests[-1][-1] == {"converge": {"plan": False}}


@pytest.mark.parametrize("options", [(), ("--plan",), ("--wait",)])
def test_a_stack_in_step_ends_with_zero(stub: Stub, run: Run, options: tuple[str, ...]) -> None:
    answer(stub)
    result = run("converge", "shop", *options)
    assert (result.exit_code, result.output) == (
        0, "Stack shop is in sync: 3 resources were observed.\n",
    )  # fmt: skip


def test_the_answer_is_printed_as_json(stub: Stub, run: Run) -> None:
    answer(stub, CHANGED)
    result = run("converge", "shop", "--plan", "--json")
    assert json.loads(result.output)["resources"] == [CHANGED]


def test_a_plan_cannot_be_awaited(stub: Stub, run: Run) -> None:
    stub.add("shop")
    assert run("converge", "shop", "--plan", "--wait").exit_code != 0


def test_the_adoption_is_a_patch_and_a_template(stub: Stub, run: Run, tmp_path: Path) -> None:
    stack = stub.add("shop")
    patch = [{"op": "replace", "path": "/resources/web/properties/name", "value": "b"}]
    template = {"resources": {"web": {"properties": {"name": "b"}}}}
    adoption = {"patch": patch, "template": template, "left": [{"path": "db", "reason": "it failed"}]}
    stub.answers[f"POST stacks/shop/{stack.id}/actions"] = {"converge": {"adoption": adoption}}
    file = tmp_path / "new.yaml"
    result = run("drift", "plan", "shop", "--adopt", "-o", str(file))
    assert result.exit_code == 2
    assert '"/resources/web/properties/name"' in result.output
    assert "Not adopted: db: it failed" in result.output
    assert yaml.safe_load(file.read_text()) == template
    assert stub.requests[-1][-1] == {"converge": {"adopt": True}}


@pytest.mark.parametrize("recorded", [True, False])
def test_an_adoption_is_applied_with_the_stored_files(stub: Stub, run: Run, *, recorded: bool) -> None:
    stack = stub.add("shop")
    patch = [{"op": "remove", "path": "/resources/web"}]
    adoption = {"patch": patch, "template": {"resources": {}}, "left": [], "recorded": recorded}
    stub.answers[f"POST stacks/shop/{stack.id}/actions"] = {"converge": {"adoption": adoption}}
    result = run("drift", "plan", "shop", "--adopt", "--apply")
    assert result.exit_code == 0
    assert f"Update of stack shop ({stack.id}) started." in result.output
    method, _, _, _, body = stub.requests[-1]
    expected = {"template": {"resources": {}}} | ({} if recorded else {"converge": True})
    assert (method, body) == ("PATCH", expected)


def test_a_plan_of_the_repair_and_wrong_options(stub: Stub, run: Run) -> None:
    answer(stub, CHANGED)
    assert run("drift", "plan", "shop", "--repair").exit_code == 2
    for options in ((), ("--repair", "--adopt"), ("--repair", "-o", "x"), ("--repair", "--apply")):
        assert run("drift", "plan", "shop", *options).exit_code not in (0, 2)
