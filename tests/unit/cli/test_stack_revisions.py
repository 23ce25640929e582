"""The commands about the history of a stack, against a server that plays back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

from orchestrator.cli.main import main
from tests.unit.cli.stub import Stack, Stub, serving

Run = Callable[..., Result]


@pytest.fixture
def stub() -> Iterator[Stub]:
    with serving() as stub:
        yield stub


@pytest.fixture
def run(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("ORCHESTRATOR_URL", stub.url)
    monkeypatch.setenv("TZ", "UTC")
    return lambda *arguments, **more: CliRunner().invoke(main, [str(a) for a in arguments], **more)


def revision(
    number: int, action: str = "UPDATE", outcome: str | None = "complete", **options: Any
) -> dict[str, Any]:
    return {
        "number": number,
        "action": action,
        "outcome": outcome,
        "is_desired": False,
        "is_last_good": False,
        "copy_of": None,
        "created_by": "somebody",
        "creation_time": f"2026-01-31T12:00:{number:02}Z",
        "ended_time": None,
        "seconds": 75.25 if outcome else None,
        **options,
    }


def three(stub: Stub) -> Stack:
    """A stack whose third revision is on its way back to the first."""
    rows = [
        revision(3, "ROLLBACK", None, is_desired=True, copy_of=1, created_by=None),
        revision(2, outcome="failed"),
        revision(1, "CREATE", is_last_good=True),
    ]
    return stub.add("shop", answers={"revisions": {"revisions": rows}})


SECTIONS = {
    "parameters": {
        "added": [],
        "removed": [],
        "changed": [
            {"name": "size", "changes": [{"path": "value", "before": 1, "after": 2}], "more": 0},
            {"name": "key", "changes": [{"path": "value", "before": "******", "after": "******"}], "more": 0},
            {"name": "all", "changes": [{"path": "", "before": None, "after": "x\x1b[2J"}], "more": 7},
        ],
    },
    "resources": {
        "added": [{"name": "web", "type": "OS::Nova::Server"}],
        "removed": [{"name": "old", "type": "OS::Heat::None"}],
        "changed": [
            {
                "name": "db",
                "changes": [
                    {"path": "properties.flavor", "before": "m1", "after": "m2"},
                    {"path": "depends_on", "before": ["old"]},
                    {"path": "metadata", "after": {"a": 1}},
                ],
                "more": 0,
            }
        ],
    },
    "files": {
        "added": [],
        "removed": [],
        "changed": [{"name": "f", "changes": [{"path": "", "before": "12ab", "after": "34cd"}], "more": 0}],
    },
}


def test_the_revisions_are_listed_with_what_became_of_them(stub: Stub, run: Run) -> None:
    three(stub)
    result = run("stack", "revisions", "shop")
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.output.splitlines()]
    assert lines[0] == ["NUMBER", "ACTION", "OUTCOME", "STARTED", "DURATION", "BY"]
    assert lines[1] == ["3", "ROLLBACK", "to", "1", "in", "progress", "2026-01-31T12:00:03Z", "desired"]
    assert lines[2] == ["2", "UPDATE", "failed", "2026-01-31T12:00:02Z", "1m", "15s", "somebody"]
    assert lines[3][:3] == ["1", "CREATE", "complete"]
    assert lines[3][-3:] == ["somebody", "last", "good"]
    assert json.loads(run("stack", "revisions", "shop", "--json").output)["revisions"][0]["number"] == 3


def test_one_revision_is_shown_with_what_it_did(stub: Stub, run: Run) -> None:
    additional = {
        "reason": "Stack UPDATE completed successfully",
        "resources": {"created": 2, "updated": 0, "replaced": 1, "deleted": 0, "failed": 0},
        "failures": 0,
        "description": "",
        "files": ["a.sh"],
        "parameters": {"OS::stack_id": "1", "size": "4", "password": "******"},
    }
    stub.add("shop", answers={"revisions/2": {"revision": revision(2, **additional)}})
    result = run("stack", "revision", "shop", "2")
    assert result.exit_code == 0, result.output
    assert "resources  2 created, 1 replaced" in result.output
    assert "size = 4" in result.output
    assert "password = ******" in result.output
    assert "OS::stack_id" not in result.output
    assert json.loads(run("stack", "revision", "shop", "2", "--json").output)["files"] == ["a.sh"]


def test_a_diff_is_printed_section_by_section_and_exits_two(stub: Stub, run: Run) -> None:
    stack = three(stub)
    stack.answers["revisions/1/diff/3"] = {"diff": {"before": 1, "after": 3, "sections": SECTIONS}}
    result = run("stack", "diff", "shop")
    assert result.exit_code == 2, result.output
    assert result.output.splitlines() == [
        "Stack shop: from revision 1 to 3",
        "Parameters",
        "  ~ size",
        "      value: 1 -> 2",
        "  ~ key",
        "      value: changed; the values are secret",
        "  ~ all",
        '      null -> "x\\u001b[2J"',
        "      and 7 more",
        "Resources",
        "  + web (OS::Nova::Server)",
        "  - old (OS::Heat::None)",
        "  ~ db",
        '      properties.flavor: "m1" -> "m2"',
        '      depends_on: ["old"] removed',
        '      metadata: now {"a":1}',
        "Files",
        "  ~ f",
    ]
    assert run("stack", "diff", "shop", "1").exit_code == 2
    shown = run("stack", "diff", "shop", "1", "3", "--json")
    assert (shown.exit_code, json.loads(shown.output)["sections"]) == (2, SECTIONS)


def test_revisions_that_do_not_differ_exit_zero(stub: Stub, run: Run) -> None:
    stack = three(stub)
    stack.answers["revisions/2/diff/1"] = {"diff": {"before": 2, "after": 1, "sections": {}}}
    result = run("stack", "diff", "shop", "2", "1")
    assert (result.exit_code, result.output) == (0, "Revisions 2 and 1 of stack shop do not differ.\n")


def test_a_stack_at_its_last_good_revision_has_nothing_to_compare(stub: Stub, run: Run) -> None:
    only = revision(4, is_desired=True, is_last_good=True)
    stub.add("shop", answers={"revisions": {"revisions": [only]}})
    result = run("stack", "diff", "shop")
    said = "Stack shop is at its last good revision, 4; there is nothing to compare.\n"
    assert (result.exit_code, result.output) == (0, said)


def test_a_stack_that_never_was_complete_has_nothing_to_compare_with(stub: Stub, run: Run) -> None:
    stub.add("shop", answers={"revisions": {"revisions": [revision(1, "CREATE", "failed", is_desired=True)]}})
    result = run("stack", "diff", "shop")
    assert result.exit_code == 1
    assert "stack shop has no good revision; give the numbers of two revisions" in result.output


@pytest.mark.parametrize(
    ("rows", "target"),
    [
        ([revision(3, outcome="failed", is_desired=True), revision(2), revision(1)], 2),
        ([revision(3, is_desired=True), revision(2, outcome="superseded"), revision(1)], 1),
        (
            [
                revision(4, "ROLLBACK", copy_of=2, is_desired=True),
                revision(3, outcome="failed"),
                revision(2),
                revision(1),
            ],
            1,
        ),
        ([revision(1, "CREATE", is_desired=True)], None),
    ],
)
def test_without_a_number_a_stack_goes_back_to_what_was_complete_before(
    stub: Stub, run: Run, rows: list[dict[str, Any]], target: int | None
) -> None:
    started = [("", "ROLLBACK_IN_PROGRESS", "Stack ROLLBACK started")]
    places = {f"revisions/{number}/rollback": started for number in (1, 2, 3)}
    stub.add("shop", answers={"revisions": {"revisions": rows}}, on_post=places)
    result = run("stack", "rollback", "shop")
    if target is None:
        assert result.exit_code == 1
        assert "has no other complete revision" in result.output
    else:
        assert result.exit_code == 0, result.output
        assert stub.requests_of("POST")[0].endswith(f"/revisions/{target}/rollback")
        assert f"to revision {target} started." in result.output


@pytest.mark.parametrize(("end", "code"), [("ROLLBACK_COMPLETE", 0), ("ROLLBACK_FAILED", 3)])
def test_waiting_for_a_rollback_ends_as_the_rollback_does(stub: Stub, run: Run, end: str, code: int) -> None:
    steps = [
        ("", "ROLLBACK_IN_PROGRESS", "Stack ROLLBACK started"),
        ("a", "UPDATE_COMPLETE", "state changed"),
        ("", end, "how it ended"),
    ]
    stub.add("shop", on_post={"revisions/2/rollback": steps})
    result = run("stack", "rollback", "shop", "2", "--wait")
    assert result.exit_code == code, result.output
    assert "UPDATE_COMPLETE a" in result.output
    assert end in result.output


def test_every_cause_of_a_failure_is_listed(stub: Stub, run: Run) -> None:
    rows = [
        {
            "id": n,
            "resource_name": name,
            "reason": f"ValueError: {name}",
            "failure_time": "2026-01-31T12:00:01Z",
        }
        for n, name in enumerate(("a", "b"))
    ]
    stack = stub.add("shop", answers={"failures": {"failures": rows}})
    result = run("stack", "failures", "shop", "--revision", "2")
    assert [line.split() for line in result.output.splitlines()] == [
        ["TIME", "RESOURCE", "REASON"],
        ["2026-01-31T12:00:01Z", "a", "ValueError:", "a"],
        ["2026-01-31T12:00:01Z", "b", "ValueError:", "b"],
    ]
    assert stub.requests[-1][2]["revision"] == ["2"]
    assert json.loads(run("stack", "failures", "shop", "--json").output)["failures"] == rows
    stack.answers["failures"] = {"failures": []}
    assert run("stack", "failures", "shop").output == "No resource of stack shop has failed.\n"
