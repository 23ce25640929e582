"""Commands that start or follow an operation: their requests, progress and exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.command_line import GOING_WELL, TEMPLATE, Run, finished, run, stub
from tests.unit.cli.stub import Stub

__all__ = ["run", "stub"]  # fixtures


def test_create_sends_the_template_as_written_and_what_was_asked_for(stub: Stub, run: Run) -> None:
    result = run(
        "stack", "create", "-t", "t.yaml", "shop", "-P", "a=1=2", "-P", "b=x", "-P", "b=y",
        "--timeout", "7", "--tag", "one", "--tag", "two", "--rollback",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert stub.requests[0][4] == {
        "stack_name": "shop",
        "template": TEMPLATE,
        "parameters": {"a": "1=2", "b": ["x", "y"]},
        "timeout_mins": 7,
        "tags": "one,two",
        "disable_rollback": False,
    }
    assert f"Creation of stack shop ({stub.stacks[0].id}) started." in result.output


def test_create_says_nothing_of_what_was_not_asked_for(stub: Stub, run: Run) -> None:
    run("stack", "create", "-t", "t.yaml", "shop")
    assert stub.requests[0][4] == {"stack_name": "shop", "template": TEMPLATE}


def test_waiting_tells_every_event_as_a_line_in_a_pipe_and_prints_the_outputs(stub: Stub, run: Run) -> None:
    stub.next_create = {
        "coming": GOING_WELL,
        "outputs": [{"output_key": "url", "output_value": "https://x/"}],
    }
    result = run("stack", "create", "-t", "t.yaml", "shop", "--wait")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0] == "2026-01-31T12:00:00Z CREATE_IN_PROGRESS a"
    assert lines[3] == "2026-01-31T12:00:03Z CREATE_COMPLETE b"
    assert lines[5] == f"CREATE_COMPLETE shop ({stub.stacks[0].id})"
    assert lines[-2:] == ["Outputs", "  url = https://x/"]
    assert "\x1b" not in result.output


def test_waiting_for_a_stack_that_fails_ends_with_three_and_every_cause(stub: Stub, run: Run) -> None:
    stub.next_create = {
        "coming": [
            ("a", "CREATE_FAILED", "ValueError: no room"),
            ("", "CREATE_FAILED", "Resource CREATE failed: ValueError: no room"),
        ],
        "resources": [
            {
                "resource_name": "b",
                "resource_status": "CREATE_FAILED",
                "resource_status_reason": "seen by nobody",
            },
            {
                "resource_name": "c",
                "resource_status": "CREATE_COMPLETE",
                "resource_status_reason": "state changed",
            },
        ],
    }
    result = run("stack", "create", "-t", "t.yaml", "shop", "--wait", "--quiet")
    assert result.exit_code == 3
    assert result.output.splitlines() == [
        "Error: stack shop is CREATE_FAILED: Resource CREATE failed: ValueError: no room",
        "  a: ValueError: no room",
        "  b: seen by nobody",
    ]


def test_waiting_longer_than_allowed_ends_with_four_and_says_that_the_stack_goes_on(
    stub: Stub, run: Run
) -> None:
    result = run("stack", "create", "-t", "t.yaml", "shop", "--wait", "--wait-timeout", "0.2")
    assert result.exit_code == 4
    assert "the action continues" in result.output


def test_a_stack_whose_last_event_was_pruned_still_ends_the_waiting(stub: Stub, run: Run) -> None:
    stub.next_create = {"status": "CREATE_COMPLETE", "reason": "done"}
    assert run("stack", "create", "-t", "t.yaml", "shop", "--wait", "--quiet").exit_code == 0


def test_json_is_one_document_and_progress_stays_out_of_it(stub: Stub, run: Run) -> None:
    stub.next_create = {"coming": GOING_WELL}
    result = run("stack", "create", "-t", "t.yaml", "shop", "--wait", "--json")
    assert json.loads(result.stdout)["stack_status"] == "CREATE_COMPLETE"
    assert "CREATE_COMPLETE a" in result.stderr


def test_following_goes_on_from_the_history_to_the_end_of_the_action_under_way(stub: Stub, run: Run) -> None:
    stack = finished(stub)
    stack.coming = [
        ("", "DELETE_IN_PROGRESS", "Stack DELETE started"),
        ("a", "DELETE_COMPLETE", "state changed"),
        ("", "DELETE_COMPLETE", "Stack DELETE completed successfully"),
    ]
    result = run("stack", "events", "shop", "--follow", "--json")
    reported = [json.loads(text)["resource_status"] for text in result.stdout.splitlines()]
    assert reported[-3:] == ["DELETE_IN_PROGRESS", "DELETE_COMPLETE", "DELETE_COMPLETE"]
    assert result.exit_code == 0


def test_deleting_waits_for_the_deletion_and_not_for_what_came_before(stub: Stub, run: Run) -> None:
    stack = finished(stub)
    stack.on_delete = [
        ("b", "DELETE_COMPLETE", "state changed"),
        ("a", "DELETE_COMPLETE", "state changed"),
        ("", "DELETE_COMPLETE", "Stack DELETE completed successfully"),
    ]
    result = run("stack", "delete", "shop", "-y", "--wait")
    assert result.exit_code == 0, result.output
    assert "CREATE_COMPLETE" not in result.output
    assert result.output.splitlines()[-1] == "Deleted: shop."


def test_deleting_several_goes_on_after_one_that_is_not_there(stub: Stub, run: Run) -> None:
    finished(stub)
    result = run("stack", "delete", "-y", "nope", "shop")
    assert result.exit_code == 1
    assert [path.rsplit("/", 1)[1] for path in stub.requests_of("DELETE")] == [stub.stacks[0].id]
    assert "The Stack (nope) could not be found." in result.output


def test_an_update_sends_what_was_asked_for_and_waits_for_its_end(stub: Stub, run: Run) -> None:
    stack = finished(stub)
    stack.on_update = [
        ("a", "UPDATE_IN_PROGRESS", "state changed"),
        ("a", "UPDATE_COMPLETE", "state changed"),
        ("", "UPDATE_COMPLETE", "Stack UPDATE completed successfully"),
    ]
    result = run("stack", "update", "-t", "t.yaml", "shop", "-P", "a=1", "--disable-rollback", "--wait")
    assert result.exit_code == 0, result.output
    [sent] = [body for method, *_, body in stub.requests if method == "PUT"]
    assert sent == {"template": TEMPLATE, "parameters": {"a": "1"}, "disable_rollback": True}
    assert "UPDATE_COMPLETE a" in result.output
    assert "CREATE_COMPLETE" not in result.output


def test_an_update_of_what_exists_sends_only_what_changes(stub: Stub, run: Run) -> None:
    finished(stub, parameters={"a": "0", "b": "0"})
    result = run("stack", "update", "--existing", "shop", "-P", "a=1", "--clear-parameter", "b")
    assert result.exit_code == 0, result.output
    [sent] = [body for method, *_, body in stub.requests if method == "PATCH"]
    assert sent == {"parameters": {"a": "1"}, "clear_parameters": ["b"]}
    result = run("stack", "update", "shop")
    assert result.exit_code == 1
    assert "--existing" in result.output


@pytest.mark.parametrize(
    ("words", "action"),
    [
        (["check"], "check"),
        (["suspend"], "suspend"),
        (["resume"], "resume"),
        (["cancel"], "cancel_update"),
        (["cancel", "--no-rollback"], "cancel_without_rollback"),
    ],
)
def test_an_action_is_asked_for_by_its_name(stub: Stub, run: Run, words: list[str], action: str) -> None:
    finished(stub)
    result = run("stack", *words, "shop")
    assert result.exit_code == 0, result.output
    [sent] = [body for method, *_, body in stub.requests if method == "POST"]
    assert sent == {action: None}


@pytest.mark.parametrize("action", ["suspend", "resume"])
def test_an_action_can_be_queued(stub: Stub, run: Run, action: str) -> None:
    finished(stub)
    result = run("stack", action, "shop", "--queue")
    assert result.exit_code == 0, result.output
    assert "requested" in result.output
    [query] = [query for method, _, query, *_ in stub.requests if method == "POST"]
    assert query == {"wait": ["true"]}


def test_a_check_is_watched_to_its_end_and_exits_3_when_something_is_wrong(stub: Stub, run: Run) -> None:
    stack = finished(stub)
    stack.on_act = [
        ("", "CHECK_IN_PROGRESS", "Stack CHECK started"),
        ("a", "CHECK_FAILED", "it is gone"),
        ("", "CHECK_FAILED", "Resource CHECK failed: a: it is gone"),
    ]
    result = run("stack", "check", "shop", "--wait")
    assert result.exit_code == 3
    assert "it is gone" in result.output


def test_ctrl_c_leaves_the_stack_alone_and_says_so(stub: Stub, tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(TEMPLATE)
    stub.next_create = {"coming": GOING_WELL[:1]}
    process = subprocess.Popen(
        [sys.executable, "-m", "orchestrator.cli.main", "stack", "create", "-t", "t.yaml", "shop", "--wait"],
        cwd=tmp_path,
        env=os.environ | {"ORCHESTRATOR_URL": stub.url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().endswith("CREATE_IN_PROGRESS a\n")
    process.send_signal(2)
    _, reported = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "the CREATE of stack shop continues" in reported
    assert "Traceback" not in reported
    assert stub.requests_of("DELETE") == []
