"""Hooks, signals and marks on real servers: over HTTP, with worker processes and the command line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from orchestrator.cli.main import main
from tests.e2e.running import Up, eventually

BELL = Path(__file__).parents[2] / "plugins" / "bell"
TEST_RESOURCE = {"type": "OS::Heat::TestResource", "properties": {"value": "v"}}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    path = os.pathsep.join([str(BELL), *filter(None, [os.environ.get("PYTHONPATH")])])
    made = Up(tmp_path_factory.mktemp("hooks"), env={"PYTHONPATH": path}).wait_ready()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def api(up: Up) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{up.url}/v1/demo", timeout=30.0, follow_redirects=True) as client:
        yield client


def create(
    api: httpx.Client, name: str, resources: dict[str, Any], hooks: dict[str, Any] | None = None
) -> str:
    registry = {"resources": {item: {"hooks": keywords} for item, keywords in (hooks or {}).items()}}
    body = {
        "stack_name": name,
        "template": {"heat_template_version": "2021-04-16", "resources": resources},
        "environment": {"resource_registry": registry},
    }
    answer = api.post("/stacks", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["stack"]["links"][0]["href"])


def status(api: httpx.Client, place: str) -> str:
    shown: str = api.get(place).json()["stack"]["stack_status"]
    return shown


def ended(api: httpx.Client, place: str) -> str:
    eventually(lambda: not status(api, place).endswith("IN_PROGRESS"))
    return status(api, place)


def reasons(api: httpx.Client, place: str, resource: str) -> list[str]:
    events = api.get(f"{place}/resources/{resource}/events", params={"sort_dir": "asc"}).json()["events"]
    return [event["resource_status_reason"] for event in events]


def exchange(api: httpx.Client, place: str, method: str, path: str, **options: Any) -> tuple[int, str, str]:
    answer = api.request(method, f"{place}/resources/{path}", **options)
    error = answer.json()["error"]
    return answer.status_code, error["type"], error["message"]


def command(up: Up, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--url", up.url], env={"ORCHESTRATOR_PROJECT": "demo"})


def test_a_hook_is_seen_and_cleared_and_the_stack_goes_on(api: httpx.Client) -> None:
    place = create(api, "paused", {"a": TEST_RESOURCE, "b": TEST_RESOURCE}, {"a": "pre-create"})
    waiting = eventually(lambda: api.get(f"{place}/hooks").json()["hooks"])
    assert [(item["resource_name"], item["hook"], item["resource_status"]) for item in waiting] == [
        ("a", "pre-create", "INIT_COMPLETE")
    ]
    assert reasons(api, place, "a") == ["CREATE paused until Hook pre-create is cleared"]
    answer = api.post(f"{place}/resources/a/signal", json={"unset_hook": "pre-create"})
    assert (answer.status_code, answer.json()) == (200, None)
    assert ended(api, place) == "CREATE_COMPLETE"
    assert reasons(api, place, "a")[1] == "Hook pre-create is cleared"
    assert api.get(f"{place}/hooks").json() == {"hooks": []}


def test_a_signal_reaches_its_resource_through_a_worker(api: httpx.Client) -> None:
    place = create(api, "signalled", {"bell": {"type": "Test::Bell", "properties": {"rings": 2}}})
    eventually(
        lambda: [r for r in api.get(f"{place}/resources").json()["resources"] if r["physical_resource_id"]]
    )
    for who in ("one", "two"):
        answer = api.post(f"{place}/resources/bell/signal", json={"by": who})
        assert (answer.status_code, answer.json()) == (200, None)
    assert ended(api, place) == "CREATE_COMPLETE"
    shown = api.get(f"{place}/resources/bell").json()["resource"]
    assert shown["attributes"]["rung_by"] == ["one", "two"]
    assert api.get(f"{place}/resources/bell/metadata").json() == {"metadata": {"last": "two"}}
    api.post(f"{place}/resources/bell/signal")
    eventually(lambda: api.get(f"{place}/resources/bell/metadata").json()["metadata"]["last"] == "somebody")


def test_impossible_signals_and_marks_are_refused_as_by_heat(api: httpx.Client) -> None:
    place = create(api, "refusing", {"a": TEST_RESOURCE})
    assert ended(api, place) == "CREATE_COMPLETE"
    physical = api.get(f"{place}/resources/a").json()["resource"]["physical_resource_id"]
    which = f'TestResource "a" [{physical}] Stack "refusing" [{place.rpartition("/")[2]}]'
    assert exchange(api, place, "POST", "a/signal", json={}) == (
        400,
        "ResourceActionNotSupported",
        "signal is not supported for resource. (resource: a, type: OS::Heat::TestResource)",
    )
    for hook, message in (
        ("nope", f'Invalid hook type "nope" for {which}'),
        ("pre-update", f'The "pre-update" hook is not defined on {which}'),
    ):
        refusal = exchange(api, place, "POST", "a/signal", json={"unset_hook": hook})
        assert refusal == (400, "InvalidBreakPointHook", message)
    missing = (404, "ResourceNotFound", "The Resource (zz) could not be found in Stack refusing.")
    assert exchange(api, place, "POST", "zz/signal") == missing
    assert exchange(api, place, "PATCH", "zz", json={"mark_unhealthy": True}) == missing
    assert exchange(api, place, "PATCH", "a", json={}) == (
        400,
        "HTTPBadRequest",
        "Missing mandatory (mark_unhealthy) key from mark unhealthy request",
    )
    assert status(api, place) == "CREATE_COMPLETE"


def test_the_command_line_does_all_of_it(api: httpx.Client, up: Up) -> None:
    resources = {"a": TEST_RESOURCE, "bell": {"type": "Test::Bell"}}
    place = create(api, "cli", resources, {"a": ["pre-create", "post-create"]})
    eventually(lambda: api.get(f"{place}/hooks").json()["hooks"])
    listed = command(up, "stack", "hooks", "cli")
    assert listed.stdout.splitlines()[1].split()[:3] == ["a", "pre-create", "INIT_COMPLETE"]
    cleared = command(up, "stack", "clear-hook", "cli", "a")
    assert (cleared.exit_code, cleared.stdout) == (0, "Hook pre-create of resource a of stack cli cleared.\n")
    eventually(lambda: "post-create" in api.get(f"{place}/hooks").text)
    invalid = command(up, "stack", "clear-hook", "cli", "bell")
    assert invalid.exit_code == 1
    assert invalid.stderr == (
        "Error: resource bell of stack cli does not wait at a hook\n  resources that do: a (post-create)\n"
    )
    assert command(up, "stack", "clear-hook", "cli", "a", "post-create").exit_code == 0
    sent = command(up, "stack", "signal", "cli", "bell", "--data", '{"by": "me"}')
    assert sent.stdout == "Signal sent to resource bell of stack cli.\n"
    assert ended(api, place) == "CREATE_COMPLETE"
    assert command(up, "stack", "metadata", "cli", "bell").stdout == "last: me\n"
    assert json.loads(command(up, "stack", "metadata", "cli", "bell", "--json").stdout) == {
        "metadata": {"last": "me"}
    }
    bad = command(up, "stack", "signal", "cli", "bell", "--data", "[]")
    assert bad.exit_code == 1
    assert "must be a JSON object" in bad.stderr
    marked = command(up, "stack", "mark-unhealthy", "cli", "a", "it smells")
    assert marked.stdout == "The next update replaces resource a of stack cli.\n"
    shown = api.get(f"{place}/resources/a").json()["resource"]
    assert (shown["resource_status"], shown["resource_status_reason"]) == ("CHECK_FAILED", "it smells")
    assert command(up, "stack", "mark-unhealthy", "cli", "a", "--reset").exit_code == 0
    assert api.get(f"{place}/resources/a").json()["resource"]["resource_status"] == "CHECK_COMPLETE"
    assert command(up, "stack", "hooks", "cli").stdout == "No resource of stack cli waits at a hook.\n"
