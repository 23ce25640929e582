"""The commands for snapshots and adoption, against a server that plays back."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.cli.command_line import Run, finished, run, stub
from tests.unit.cli.stub import Stub

__all__ = ["run", "stub"]  # fixtures

ONE = {
    "id": "n1",
    "name": "first",
    "action": "CREATE",
    "status": "COMPLETE",
    "status_reason": "Stack SNAPSHOT completed successfully",
    "creation_time": "2026-01-31T12:00:00Z",
    "data": {"resources": {"a": {"name": "a", "type": "OS::Heat::None", "resource_id": "a-id"}}},
}
FAILING = [
    ("", "SNAPSHOT_IN_PROGRESS", "Stack SNAPSHOT started"),
    ("", "SNAPSHOT_FAILED", "Resource SNAPSHOT failed: no room"),
]


def test_a_snapshot_is_taken_under_its_name(stub: Stub, run: Run) -> None:
    finished(stub)
    result = run("stack", "snapshot", "create", "shop", "--name", "first")
    assert result.output == "Snapshot n1 of stack shop started.\n"
    assert [body for method, *_, body in stub.requests if method == "POST"] == [{"name": "first"}]
    assert run("stack", "snapshot", "create", "shop", "-q").output == "n1\n"


def test_taking_one_is_watched_to_its_end_and_exits_3_when_it_fails(stub: Stub, run: Run) -> None:
    finished(stub).on_act = FAILING
    result = run("stack", "snapshot", "create", "shop", "--wait")
    assert result.exit_code == 3
    assert "no room" in result.output


def test_snapshots_are_listed_and_shown(stub: Stub, run: Run) -> None:
    stack = finished(stub)
    assert run("stack", "snapshot", "list", "shop").output == "Stack shop has no snapshots.\n"
    stack.snapshots = [ONE]
    assert run("stack", "snapshot", "list", "shop").output.splitlines()[1].split()[:3] == [
        "n1",
        "first",
        "CREATE_COMPLETE",
    ]
    shown = run("stack", "snapshot", "show", "shop", "n1").output
    assert "a     OS::Heat::None  a-id" in shown
    assert json.loads(run("stack", "snapshot", "show", "shop", "n1", "--json").output) == ONE


def test_a_snapshot_is_restored_and_removed(stub: Stub, run: Run) -> None:
    stack = finished(stub)
    path = f"/v1/demo/stacks/shop/{stack.id}/snapshots/n1"
    assert (
        "Restoration of stack shop from n1 started."
        in run("stack", "snapshot", "restore", "shop", "n1").output
    )
    assert stub.requests_of("POST") == [f"{path}/restore"]
    assert "Deletion of snapshot n1 started." in run("stack", "snapshot", "delete", "shop", "n1").output
    assert stub.requests_of("DELETE") == [path]


def test_an_export_is_printed_or_written(stub: Stub, run: Run) -> None:
    finished(stub)
    document = {"name": "shop", "resources": {}}
    assert json.loads(run("stack", "export", "shop").output) == document
    run("stack", "export", "shop", "-o", "out.json")
    assert json.loads(Path("out.json").read_text()) == document
    assert Path("out.json").stat().st_mode & 0o077 == 0


def test_nothing_is_abandoned_when_the_document_cannot_be_kept(stub: Stub, run: Run) -> None:
    finished(stub)
    result = run("stack", "abandon", "shop", "-o", "no/such/folder.json")
    assert result.exit_code == 1
    assert "cannot write" in result.output
    assert stub.requests_of("DELETE") == []
    result = run("stack", "abandon", "shop", "-o", "out.json")
    assert result.output == "Stack shop is abandoned; out.json describes its resources.\n"
    assert json.loads(Path("out.json").read_text())["name"] == "shop"


def test_a_document_that_was_told_only_once_is_printed_when_the_file_takes_it_no_more(
    stub: Stub, run: Run
) -> None:
    finished(stub)
    result = run("stack", "abandon", "shop", "-o", "/dev/full")
    assert result.exit_code == 1
    assert "cannot write /dev/full" in result.stderr
    assert json.loads(result.stdout)["name"] == "shop"


def test_what_is_adopted_is_sent_as_it_was_written(stub: Stub, run: Run) -> None:
    Path("out.json").write_text('{"template": {}}')
    result = run("stack", "adopt", "shop", "--adopt-file", "out.json", "-P", "a=1", "--tag", "t")
    assert result.exit_code == 0, result.output
    assert stub.requests[0][4] == {
        "stack_name": "shop",
        "adopt_stack_data": '{"template": {}}',
        "parameters": {"a": "1"},
        "tags": "t",
    }
