"""The stock `openstack` client: stacks from their making to their end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.clients.stock import Openstack
from tests.e2e.running import eventually

ENVIRONMENT = """\
parameters: {value: from the environment}
parameter_defaults: {secret: kept}
"""
SLOW = """\
heat_template_version: 2021-04-16
parameters: {extra: {type: boolean, default: true}}
conditions: {extra: {get_param: extra}}
resources:
  quick: {type: OS::Heat::TestResource}
  slow: {type: OS::Heat::TestResource, condition: extra, properties: {wait_secs: -1}}
"""
FAILING = """\
heat_template_version: 2021-04-16
resources:
  inner: {type: inner.yaml}
"""
INNER = """\
heat_template_version: 2021-04-16
resources:
  fine: {type: OS::Heat::TestResource}
  bad: {type: OS::Heat::TestResource, properties: {fail: true}}
"""


def shown(openstack: Openstack, name: str) -> dict[str, Any]:
    stack: dict[str, Any] = openstack.json("stack show", name)
    return stack


def test_a_stack_is_made_with_everything_that_can_be_said_of_it(
    openstack: Openstack, template: Path, tmp_path: Path
) -> None:
    environment, keyword = tmp_path / "environment.yaml", tmp_path / "word"
    environment.write_text(ENVIRONMENT)
    keyword.write_text("from a file")
    said = ("-e", environment, "--tags", "red,blue", "--timeout", "5", "--enable-rollback")
    printed = openstack("stack create", "-t", template, *said, "--wait", "--poll", "1", "one")
    assert "[one.second]: CREATE_COMPLETE  state changed\n" in printed
    assert "[one]: CREATE_COMPLETE  Stack CREATE completed successfully\n" in printed
    item = shown(openstack, "one")
    assert item["stack_status"] == "CREATE_COMPLETE"
    assert (item["tags"], item["timeout_mins"], item["disable_rollback"]) == (["red", "blue"], 5, False)
    assert item["parameters"]["value"] == "from the environment"
    assert item["parameters"]["secret"] == "******"
    assert item["outputs"][0]["output_value"] == "from the environment"
    assert "outputs" not in openstack.json("stack show", "--no-resolve-outputs", item["id"])
    supplied = ("--parameter", "secret=given", "--parameter-file", f"value={keyword}")
    openstack("stack create", "-t", template, *supplied, "--wait", "--poll", "1", "two")
    assert shown(openstack, "two")["parameters"]["value"] == "from a file"
    assert openstack.json("stack environment show", "one") == {
        "parameters": {"value": "from the environment"},
        "parameter_defaults": {"secret": "******"},
        "resource_registry": {"resources": {}},
    }
    assert openstack.json("stack template show", "one")["resources"]["second"]["depends_on"] == "first"
    assert openstack.json("stack file list", "one") == {"files": {}}


def test_a_create_preview_lists_resources_and_creates_nothing(openstack: Openstack, template: Path) -> None:
    output = openstack.json("stack create", "-t", template, "--dry-run", "one")
    assert output["stack_name"] == "one"
    assert {resource["resource_name"] for resource in output["resources"]} == {"first", "second"}
    assert openstack.json("stack list") == []


def test_stacks_are_listed_filtered_and_sorted(openstack: Openstack, template: Path) -> None:
    for name, tags in ("b", "red,blue"), ("a", "red"), ("c", "data-processing-cluster"):
        openstack("stack create", "-t", template, "--tags", tags, "--wait", "--poll", "1", name)
    openstack("stack delete", "-y", "--wait", "a")

    def names(*options: str) -> list[str]:
        return [stack["Stack Name"] for stack in openstack.json("stack list", *options)]

    assert names("--short") == ["b"]
    assert names("--hidden", "--sort", "stack_name:desc") == ["c", "b"]
    assert names("--deleted", "--sort", "stack_name") == ["a", "b"]
    assert names("--tags", "red,blue") == ["b"]
    assert names("--tags", "red,blue", "--tag-mode", "any", "--deleted", "--sort", "stack_name") == ["a", "b"]
    assert names("--tags", "red,blue", "--tag-mode", "not", "--deleted") == ["a"]
    assert names("--tags", "blue", "--tag-mode", "not-any", "--deleted") == ["a"]
    assert names("--property", "name=c", "--hidden") == ["c"]
    assert names("--property", "status=FAILED", "--hidden") == []
    assert names("--hidden", "--limit", "1") == ["c"]
    newest = openstack.json("stack list", "--hidden", "--limit", "1")[0]["ID"]
    assert names("--hidden", "--marker", newest) == ["b"]
    (deleted,) = [item for item in openstack.json("stack list", "--deleted") if item["Stack Name"] == "a"]
    assert deleted["Stack Status"] == "DELETE_COMPLETE"
    assert deleted["Deletion Time"]
    assert shown(openstack, deleted["ID"])["stack_status"] == "DELETE_COMPLETE"
    assert "global_index" in openstack.refused("stack list", "--long")
    assert "global_index" in openstack.refused("stack list", "--all-projects")


def test_a_stack_is_updated_whole_and_in_part(openstack: Openstack, template: Path) -> None:
    openstack("stack create", "-t", template, "--tags", "red", "--wait", "--poll", "1", "one")
    printed = openstack(
        "stack update", "-t", template, "--parameter", "value=other", "--rollback", "enabled", "--wait", "one"
    )
    assert "[one]: UPDATE_COMPLETE  Stack UPDATE completed successfully\n" in printed
    item = shown(openstack, "one")
    assert (item["parameters"]["value"], item["tags"], item["disable_rollback"]) == ("other", [], False)
    openstack("stack update", "--existing", "--tags", "green", "--timeout", "7", "--wait", item["id"])
    item = shown(openstack, "one")
    assert (item["parameters"]["value"], item["tags"], item["timeout_mins"]) == ("other", ["green"], 7)
    openstack("stack update", "--existing", "--clear-parameter", "value", "--converge", "--wait", "one")
    assert shown(openstack, "one")["parameters"]["value"] == "short"


def test_a_preview_reports_the_changes_of_an_update_and_changes_nothing(
    openstack: Openstack, template: Path
) -> None:
    openstack("stack create", "-t", template, "--wait", "--poll", "1", "one")
    for additional in (), ("--show-nested",):
        changes = openstack.json(
            "stack update", "--existing", "--parameter", "value=new", "--dry-run", *additional, "one"
        )
        assert [item["resource_name"] for item in changes["updated"]] == ["second"]
        assert [item["resource_name"] for item in changes["unchanged"]] == ["first"]
        assert (changes["added"], changes["deleted"], changes["replaced"]) == ([], [], [])
    whole = openstack.json("stack update", "-t", template, "--parameter", "value=new", "--dry-run", "one")
    assert [item["resource_name"] for item in whole["updated"]] == ["second"]
    assert shown(openstack, "one")["stack_status"] == "CREATE_COMPLETE"


def test_a_stack_is_suspended_resumed_and_checked(openstack: Openstack, template: Path) -> None:
    openstack("stack create", "-t", template, "--wait", "--poll", "1", "one")
    for command in "stack suspend", "stack resume", "stack check":
        action = command.split()[1].upper()
        assert f"[one]: {action}_COMPLETE" in openstack(command, "--wait", "one")
        (row,) = openstack.json("stack list")
        assert row["Stack Status"] == f"{action}_COMPLETE"


def test_a_running_action_is_cancelled_with_and_without_rollback(
    openstack: Openstack, tmp_path: Path
) -> None:
    slow = tmp_path / "slow.yaml"
    slow.write_text(SLOW)
    openstack("stack create", "-t", slow, "abandoned")
    assert "Stack abandoned CREATE_FAILED" in openstack.refused(
        "stack cancel", "--no-rollback", "--wait", "abandoned"
    )
    assert shown(openstack, "abandoned")["stack_status_reason"] == "Stack CREATE cancelled"
    openstack("stack create", "-t", slow, "--parameter", "extra=false", "--wait", "--poll", "1", "back")
    openstack("stack update", "--existing", "--parameter", "extra=true", "back")
    assert "[back]: ROLLBACK_COMPLETE" in openstack("stack cancel", "--wait", "back")
    assert [item["resource_name"] for item in openstack.json("stack resource list", "back")] == ["quick"]
    assert shown(openstack, "back")["parameters"]["extra"] == "False"
    assert "'rollback_complete' not in cancelable state" in openstack.refused("stack cancel", "back")


def test_failures_are_reported_down_to_the_leaves(openstack: Openstack, tmp_path: Path) -> None:
    (tmp_path / "outer.yaml").write_text(FAILING)
    (tmp_path / "inner.yaml").write_text(INNER)
    outer = tmp_path / "outer.yaml"
    printed = openstack.refused("stack create", "-t", outer, "--wait", "--poll", "1", "one")
    assert "Stack one CREATE_FAILED" in printed
    for additional in (), ("--long",):
        output = openstack("stack failures list", *additional, "one")
        assert output.startswith("one.inner.bad:\n  resource_type: OS::Heat::TestResource\n")
        assert "  status: CREATE_FAILED\n" in output
        assert "    ValueError: resources.bad: Test Resource failed bad\n" in output
    nested = openstack.json("stack list", "--nested", "--sort", "stack_name")
    assert [item["Parent"] for item in nested] == [None, nested[0]["ID"]]
    assert list(openstack.json("stack file list", "one")["files"]) == [f"file://{tmp_path}/inner.yaml"]
    fine = tmp_path / "fine.yaml"
    fine.write_text(INNER.replace("fail: true", "fail: false"))
    openstack("stack update", "-t", fine, "--wait", "one")
    assert openstack("stack failures list", "one") == ""


def test_several_stacks_are_deleted_and_missing_stacks_are_reported(
    openstack: Openstack, template: Path
) -> None:
    for name in "one", "two":
        openstack("stack create", "-t", template, "--wait", "--poll", "1", name)
    printed = openstack.refused("stack delete", "--yes", "--wait", "one", "two", "three")
    assert "Unable to delete 1 of the 3 stacks." in printed
    assert openstack.json("stack list") == []
    assert "Stack not found: one" in openstack.refused("stack delete", "-y", "one")


def test_snapshots_are_made_listed_shown_restored_and_deleted(openstack: Openstack, template: Path) -> None:
    openstack("stack create", "-t", template, "--wait", "--poll", "1", "one")
    made = openstack.json("stack snapshot create", "--name", "kept", "one")
    assert (made["name"], made["action"], made["status"]) == ("kept", "CREATE", "IN_PROGRESS")
    eventually(
        lambda: openstack.json("stack snapshot show", "one", made["ID"])["snapshot"]["status"] == "COMPLETE"
    )
    kept = openstack.json("stack snapshot show", "one", made["ID"])["snapshot"]["data"]["resources"]
    assert kept["second"]["resource_data"]["value"] == "short"
    openstack("stack update", "--existing", "--parameter", "value=changed", "--wait", "one")
    openstack("stack snapshot restore", "one", made["ID"])
    eventually(lambda: shown(openstack, "one")["stack_status"] == "RESTORE_COMPLETE")
    assert openstack.json("stack output show", "one", "it")["output_value"] == "short"
    (listed,) = openstack.json("stack snapshot list", "one")
    assert (listed["id"], listed["status"]) == (made["ID"], "COMPLETE")
    openstack("stack snapshot delete", "-y", "one", made["ID"])
    eventually(lambda: openstack.json("stack snapshot list", "one") == [])


def test_a_stack_is_let_go_and_taken_over_under_another_name(
    openstack: Openstack, template: Path, tmp_path: Path
) -> None:
    openstack("stack create", "-t", template, "--parameter", "value=mine", "--wait", "--poll", "1", "one")
    things = openstack.json("stack resource list", "one")
    exported = openstack.json("stack export", "one")
    assert exported["resources"]["second"]["resource_id"] == things[1]["physical_resource_id"]
    openstack("stack export", "--output-file", tmp_path / "exported", "one")
    assert json.loads((tmp_path / "exported").read_text())["id"] == exported["id"]
    openstack("stack abandon", "--output-file", tmp_path / "abandoned", "one")
    eventually(lambda: openstack.json("stack list") == [])
    printed = openstack("stack adopt", "--adopt-file", tmp_path / "abandoned", "--wait", "two")
    assert "[two]: ADOPT_COMPLETE  Stack ADOPT completed successfully\n" in printed
    taken = openstack.json("stack resource list", "two")
    ids = [item["physical_resource_id"] for item in taken]
    assert ids == [item["physical_resource_id"] for item in things]
    assert openstack.json("stack output show", "two", "it")["output_value"] == "mine"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("stack show nope", "Stack not found: nope"),
        ("stack create -t {template} 1bad", 'must contain only alphanumeric or "_-." characters'),
        ("stack create -t {template} --parameter nope=1 one", "The Parameter (nope) was not defined"),
        ("stack create -t {template} --tags {long} one", "is longer than 80 characters"),
        ("stack update -t {template} nope", "The Stack (nope) could not be found."),
        ("stack suspend nope", "Stack not found: nope"),
        ("stack cancel nope", "Stack not found: nope"),
        ("stack abandon nope", "Stack not found: nope"),
        ("stack snapshot create nope", "Stack not found: nope"),
        ("stack snapshot restore nope nope", "Stack nope or snapshot nope not found."),
        ("stack template show nope", "Stack not found: nope"),
        ("stack environment show nope", "Stack not found: nope"),
        ("stack output show nope it", "Stack nope or output it not found."),
        ("stack resource list nope", "Stack not found: nope"),
        ("stack event list nope", "The Stack (nope) could not be found."),
        ("stack hook poll nope", "Stack not found: nope"),
    ],
)
def test_impossible_requests_are_refused_with_a_reason(
    openstack: Openstack, template: Path, command: str, told: str
) -> None:
    assert told in openstack.refused(command.format(template=template, long="x" * 81))


def test_a_name_is_given_once(openstack: Openstack, template: Path) -> None:
    openstack("stack create", "-t", template, "one")
    assert "The Stack (one) already exists." in openstack.refused("stack create", "-t", template, "one")
