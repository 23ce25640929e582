"""The client commands against a server that plays back: their output, their requests, their exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from orchestrator.cli.main import main
from tests.unit.cli.stub import Stack, Stub, serving

TEMPLATE = "heat_template_version: 2018-08-31\nresources:\n  a: {type: OS::Heat::None}\n"
GOING_WELL = [
    ("a", "CREATE_IN_PROGRESS", "state changed"),
    ("a", "CREATE_COMPLETE", "state changed"),
    ("b", "CREATE_IN_PROGRESS", "state changed"),
    ("b", "CREATE_COMPLETE", "state changed"),
    ("", "CREATE_COMPLETE", "Stack CREATE completed successfully"),
]
Run = Callable[..., Result]


@pytest.fixture
def stub() -> Iterator[Stub]:
    with serving() as stub:
        yield stub


@pytest.fixture
def run(stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command line in an empty folder that contains a template."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ORCHESTRATOR_URL", stub.url)
    monkeypatch.setenv("TZ", "UTC")
    for name in ("ORCHESTRATOR_PROJECT", "ORCHESTRATOR_TOKEN", "ORCHESTRATOR_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    Path("t.yaml").write_text(TEMPLATE)
    return lambda *arguments, **more: CliRunner().invoke(main, [str(a) for a in arguments], **more)


def finished(stub: Stub, name: str = "shop", **options: object) -> Stack:
    """Put a stack there that has been created."""
    stack = stub.add(name, **options)
    stack.happen("", "CREATE_IN_PROGRESS", "Stack CREATE started")
    for step in GOING_WELL:
        stack.happen(*step)
    return stack


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


def test_a_refused_template_is_shown_with_every_fault_in_its_place(stub: Stub, run: Run) -> None:
    faults = [
        {
            "code": "unknown-type",
            "message": "No such type X",
            "path": "resources.a.type",
            "line": 3,
            "column": 13,
        },
        {
            "code": "unknown-section",
            "message": "No such section",
            "path": "odd",
            "line": 2,
            "column": 1,
            "hint": "Y?",
        },
    ]
    stub.refusal = (
        400,
        {"error": {"type": "StackValidationFailed", "message": "No such type X", "errors": faults}},
    )
    for command in (["validate"], ["stack", "create", "shop"]):
        result = run(*command, "-t", "t.yaml")
        assert result.exit_code == 1
        assert "t.yaml is not valid: 2 errors" in result.output
        assert "t.yaml:3:13: error: No such type X" in result.output
        assert "  a: {type: OS::Heat::None}" in result.output  # the line itself


def test_a_failure_is_json_too_when_json_was_asked_for(stub: Stub, run: Run) -> None:
    result = run("stack", "show", "nope", "--json")
    error = json.loads(result.stdout)["error"]
    assert (result.exit_code, error["status"], error["type"]) == (1, 404, "EntityNotFound")


def test_no_valid_token_ends_with_five(
    stub: Stub, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("from-a-file\n")
    monkeypatch.setenv("ORCHESTRATOR_TOKEN_FILE", str(tmp_path / "token"))
    stub.refusal = (
        401,
        {"error": {"code": 401, "message": "The request you have made requires authentication."}},
    )
    result = run("stack", "list")
    assert result.exit_code == 5
    assert stub.requests[0][3]["X-Auth-Token"] == "from-a-file"
    assert "ORCHESTRATOR_TOKEN" in result.output


def test_a_name_and_a_password_of_the_environment_are_shown(
    stub: Stub, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "password").write_text("sésame\n")
    monkeypatch.setenv("ORCHESTRATOR_USERNAME", "ada")
    monkeypatch.setenv("ORCHESTRATOR_PASSWORD_FILE", str(tmp_path / "password"))
    run("stack", "list")
    shown = b64encode("ada:sésame".encode()).decode()
    assert stub.requests[0][3]["Authorization"] == f"Basic {shown}"


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ("Access was denied to this resource.", "ORCHESTRATOR_PROJECT"),
        ("You are not authorized to use stacks:create.", "a role that you do not have"),
    ],
)
def test_a_refusal_says_what_to_look_at(stub: Stub, run: Run, message: str, hint: str) -> None:
    stub.refusal = (403, {"error": {"message": message}})
    result = run("stack", "list")
    assert result.exit_code == 5
    assert message in result.output
    assert hint in result.output


@pytest.mark.parametrize(
    "arguments",
    [["stack", "create"], ["stack", "nonsense"], ["stack", "list", "--odd"], ["validate"], ["stack", "show"]],
)
def test_a_mistake_on_the_command_line_ends_with_one_because_two_means_changes(
    run: Run, arguments: list[str]
) -> None:
    result = run(*arguments)
    assert result.exit_code == 1
    assert "Usage" in result.output or "Error" in result.output


def test_lists_and_tables_are_one_line_a_row_however_long(stub: Stub, run: Run) -> None:
    stack = finished(stub, "s" * 200)
    stack.resources = [
        {
            "resource_name": "r" * 150,
            "resource_type": "T",
            "resource_status": "CREATE_FAILED",
            "resource_status_reason": "why " * 50,
            "physical_resource_id": "",
        }
    ]
    listed = run("stack", "list").output.splitlines()
    assert len(listed) == 2
    assert listed[1].split() == ["s" * 200, "CREATE_COMPLETE", "2026-01-31T12:00:00Z", stack.id]
    assert len(run("stack", "resources", "s" * 200).output.splitlines()) == 2


def test_an_empty_project_is_said_to_be_empty_and_is_an_empty_list_in_json(run: Run) -> None:
    assert run("stack", "list").output == "Project demo has no stacks.\n"
    assert json.loads(run("stack", "list", "--json").output) == {"stacks": []}


def test_an_output_is_printed_bare_so_that_a_script_can_use_it(stub: Stub, run: Run) -> None:
    stack = finished(stub)
    stack.outputs = [
        {"output_key": "url", "output_value": "https://x/"},
        {"output_key": "map", "output_value": {"a": [1]}},
        {"output_key": "bad", "output_value": None, "output_error": "no such attribute"},
    ]
    assert run("stack", "outputs", "shop", "url").output == "https://x/\n"
    assert json.loads(run("stack", "outputs", "shop", "map", "--json").output)["output"]["output_value"] == {
        "a": [1]
    }
    broken = run("stack", "outputs", "shop", "bad")
    assert (broken.exit_code, broken.output) == (1, "Error: output bad has no value: no such attribute\n")
    assert run("stack", "outputs", "shop").output == (
        "  url = https://x/\n  map\n    a:\n    - 1\n  bad = (no such attribute)\n"
    )


def test_what_a_provider_said_cannot_move_the_cursor(stub: Stub, run: Run) -> None:
    stack = stub.add("shop", status="CREATE_FAILED")
    stack.happen("a", "CREATE_FAILED", "\x1b[2Jgone\x07")
    result = run("stack", "events", "shop")
    assert "�[2Jgone�" in result.output


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


def test_a_template_comes_back_as_yaml_or_json(stub: Stub, run: Run) -> None:
    finished(stub, template={"heat_template_version": "2018-08-31", "resources": {}})
    assert run("stack", "template", "shop").output == "heat_template_version: '2018-08-31'\nresources: {}\n"
    assert json.loads(run("stack", "template", "shop", "--json").output)["resources"] == {}


def test_a_valid_template_shows_its_parameters(run: Run) -> None:
    result = run("validate", "-t", "t.yaml")
    assert result.output.splitlines() == [
        "t.yaml is valid.",
        "fine",
        "PARAMETER  TYPE    DEFAULT  DESCRIPTION",
        "size       Number  4",
    ]


def test_warnings_are_shown_with_their_source_line_and_refuse_nothing(stub: Stub, run: Run) -> None:
    warning = {"code": "wrong-value", "message": "It is odd", "path": "resources.a", "severity": "warning"}
    stub.validation = {"warnings": [{**warning, "line": 3, "column": 6}]}
    result = run("validate", "-t", "t.yaml")
    assert result.exit_code == 0
    assert result.output.splitlines()[:4] == [
        "t.yaml:3:6: warning: It is odd [wrong-value]",
        " 3 |   a: {type: OS::Heat::None}",
        "   |      ^",
        "t.yaml is valid, with 1 warning.",
    ]


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
