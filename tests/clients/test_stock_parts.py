"""The stock `openstack` client: contents of a stack, its events, and its hooks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.conftest import TEMPLATE
from tests.clients.stock import Driver, Openstack
from tests.e2e.running import Up, eventually

OUTER = """\
heat_template_version: 2021-04-16
resources:
  inner: {type: inner.yaml, properties: {size: 5}}
"""
INNER = """\
heat_template_version: 2021-04-16
parameters: {size: {type: number}}
resources:
  word: {type: OS::Heat::RandomString, properties: {length: {get_param: size}}}
"""
WAITING = """\
heat_template_version: 2021-04-16
resources:
  handle: {type: OS::Heat::WaitConditionHandle}
  condition: {type: OS::Heat::WaitCondition, properties: {handle: {get_resource: handle}, timeout: 600}}
outputs:
  data: {value: {get_attr: [condition, data]}}
"""


@pytest.fixture(scope="module")
def one(
    up: Up, driver: Driver, projects: Iterator[str], tmp_path_factory: pytest.TempPathFactory
) -> Openstack:
    """The command in a project with a stack `one`, shared by read-only tests."""
    openstack = Openstack(driver, up.url, next(projects))
    path = tmp_path_factory.mktemp("one") / "template.yaml"
    path.write_text(TEMPLATE)
    openstack("stack create", "-t", path, "--wait", "--poll", "1", "one")
    return openstack


def test_resources_are_listed_and_shown(one: Openstack) -> None:
    listed = one.json("stack resource list", "one")
    assert [(row["resource_name"], row["resource_status"]) for row in listed] == [
        ("first", "CREATE_COMPLETE"),
        ("second", "CREATE_COMPLETE"),
    ]
    (result,) = one.json("stack resource list", "one", "--long", "--filter", "type=OS::Heat::TestResource")
    assert (result["resource_name"], result["stack_name"]) == ("second", "one")
    assert one.json("stack resource list", "one", "--filter", "status=FAILED") == []
    assert "Invalid filter parameters" in one.refused("stack resource list", "one", "--filter", "colour=red")
    assert "digraph" in one("stack resource list", "one", "-f", "dot")
    second = one.json("stack resource show", "one", "second", "--with-attr", "output")
    assert second["physical_resource_id"] == listed[1]["physical_resource_id"]
    assert second["attributes"] == {"output": "short"}
    assert one.json("stack resource show", "one", "first")["required_by"] == ["second"]
    assert one.json("stack resource metadata", "one", "second") == {"shelf": "top"}
    assert "Stack or resource not found" in one.refused("stack resource show", "one", "nope")


def test_outputs_are_listed_and_shown(one: Openstack) -> None:
    assert one.json("stack output list", "one") == [{"output_key": "it", "description": "What is stored"}]
    assert one.json("stack output show", "one", "it")["output_value"] == "short"
    assert one.json("stack output show", "--all", "one")["it"]["output_value"] == "short"
    assert "Stack one or output nope not found." in one.refused("stack output show", "one", "nope")


def test_events_are_listed_in_every_form_and_shown(one: Openstack) -> None:
    events = one.json("stack event list", "one")
    happened = [(event["resource_name"], event["resource_status"]) for event in events]
    assert happened == [
        ("one", "CREATE_IN_PROGRESS"),
        ("first", "CREATE_IN_PROGRESS"),
        ("first", "CREATE_COMPLETE"),
        ("second", "CREATE_IN_PROGRESS"),
        ("second", "CREATE_COMPLETE"),
        ("one", "CREATE_COMPLETE"),
    ]
    lines = one("stack event list", "one").splitlines()
    assert len(lines) == 6
    assert lines[-1].endswith("[one]: CREATE_COMPLETE  Stack CREATE completed successfully")
    for form, inside in ("table", "| second "), ("csv", '"second",'), ("value", "second "), ("yaml", "id: "):
        assert inside in one("stack event list", "one", "-f", form)
    two = one.json("stack event list", "one", "--limit", "2", "--marker", events[1]["id"])
    assert [event["id"] for event in two] == [events[2]["id"], events[3]["id"]]
    backwards = one.json("stack event list", "one", "--sort", "event_time:desc")
    assert [event["event_time"] for event in backwards] == [event["event_time"] for event in reversed(events)]
    made = one.json("stack event list", "one", "--resource", "second", "--filter", "resource_status=COMPLETE")
    assert [event["resource_name"] for event in made] == ["second"]
    event = one.json("stack event show", "one", "second", made[0]["id"])
    assert event["resource_type"] == "OS::Heat::TestResource"
    assert event["resource_properties"]["value"] == "short"
    assert "No event nope found" in one.refused("stack event show", "one", "second", "nope")


def test_nested_stacks_are_looked_into(openstack: Openstack, tmp_path: Path) -> None:
    (tmp_path / "outer.yaml").write_text(OUTER)
    (tmp_path / "inner.yaml").write_text(INNER)
    outer = tmp_path / "outer.yaml"
    openstack("stack create", "-t", outer, "--wait", "--poll", "1", "one")
    listed = openstack.json("stack resource list", "-n", "2", "one")
    assert [row["resource_name"] for row in listed] == ["inner", "word"]
    child = listed[1]["stack_name"]
    assert child.startswith("one-inner-")
    output = openstack.json("stack event list", "--nested-depth", "2", "one")
    assert {event["stack_name"] for event in output} == {"one", child}
    assert openstack("stack event list", "--nested-depth", "2", "one").count("\n") == len(output)
    changes = openstack.json("stack update", "-t", outer, "--dry-run", "--show-nested", "one")
    assert [item["resource_name"] for item in changes["unchanged"]] == ["word"]
    assert [item["resource_name"] for item in changes["updated"]] == ["inner"]  # which is looked into


def test_a_resource_waits_at_a_hook_until_it_is_cleared(openstack: Openstack, template: Path) -> None:
    def waiting(*options: str) -> list[str]:
        return [hook["Resource Name"] for hook in openstack.json("stack hook poll", *options, "one")]

    openstack("stack create", "-t", template, "--pre-create", "second", "one")
    eventually(lambda: waiting() == ["second"])
    openstack("stack hook clear", "one", "second")
    eventually(lambda: openstack.json("stack show", "one")["stack_status"] == "CREATE_COMPLETE")
    assert "Stack status CREATE_COMPLETE not IN_PROGRESS" in openstack.refused("stack hook poll", "one")
    change = ("--parameter", "value=changed", "--pre-update", "second")
    openstack("stack update", "-t", template, *change, "one")
    eventually(lambda: waiting("--nested-depth", "2") == ["second"])
    openstack("stack hook clear", "--pre-update", "one", "sec*")
    eventually(lambda: openstack.json("stack show", "one")["stack_status"] == "UPDATE_COMPLETE")


def test_a_hook_in_a_nested_stack_is_found_and_cleared_by_pattern(
    openstack: Openstack, tmp_path: Path
) -> None:
    (tmp_path / "outer.yaml").write_text(OUTER)
    (tmp_path / "inner.yaml").write_text(INNER)
    openstack("stack create", "-t", tmp_path / "outer.yaml", "--pre-create", "inner/word", "one")
    eventually(lambda: openstack.json("stack hook poll", "--nested-depth", "5", "one"))
    (hook,) = openstack.json("stack hook poll", "--nested-depth", "5", "one")
    assert hook["Resource Name"] == "word"
    assert hook["Resource Status Reason"] == "CREATE paused until Hook pre-create is cleared"
    assert hook["Stack Name"].startswith("one-inner-")
    openstack("stack hook clear", "one", "in*/w*")
    eventually(lambda: openstack.json("stack show", "one")["stack_status"] == "CREATE_COMPLETE")


def test_a_resource_is_signalled_with_data(openstack: Openstack, tmp_path: Path) -> None:
    waiting, data = tmp_path / "waiting.yaml", tmp_path / "data.json"
    waiting.write_text(WAITING)
    data.write_text('{"status": "SUCCESS", "data": "fine", "id": "1"}')
    for name, *said in ("one", "--data", data.read_text()), ("two", "--data-file", str(data)):
        openstack("stack create", "-t", waiting, name)
        arrived = openstack.json("stack resource list", name, "--filter", "name=handle")
        eventually(lambda name=name: _made(openstack, name), 60)
        assert arrived is not None
        openstack("stack resource signal", name, "handle", *said)
        eventually(lambda name=name: openstack.json("stack show", name)["stack_status"] == "CREATE_COMPLETE")
        assert openstack.json("stack output show", name, "data")["output_value"] == '{"1": "fine"}'
    assert "not found" in openstack.refused("stack resource signal", "one", "nope")


def _made(openstack: Openstack, name: str) -> bool:
    (handle,) = openstack.json("stack resource list", name, "--filter", "name=handle")
    return bool(handle["resource_status"] == "CREATE_COMPLETE")


def test_a_resource_is_marked_unhealthy_and_the_next_update_replaces_it(
    openstack: Openstack, template: Path
) -> None:
    def second() -> tuple[str, str, str]:
        output = openstack.json("stack resource show", "one", "second")
        return output["resource_status"], output["resource_status_reason"], output["physical_resource_id"]

    openstack("stack create", "-t", template, "--wait", "--poll", "1", "one")
    *_, before = second()
    openstack("stack resource mark unhealthy", "one", "second", "it smells")
    assert second() == ("CHECK_FAILED", "it smells", before)
    openstack("stack resource mark unhealthy", "--reset", "one", "second")
    assert second()[0] == "CHECK_COMPLETE"
    openstack("stack resource mark unhealthy", "one", "second")
    openstack("stack update", "--existing", "--wait", "one")
    status, _, after = second()
    assert status == "CREATE_COMPLETE"
    assert after != before
    assert "signal is not supported for resource." in openstack.refused(
        "stack resource signal", "one", "first"
    )
