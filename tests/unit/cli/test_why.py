"""`orchestrator why`, and the figures that other commands show."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.cli.command_line import Run, run, stub
from tests.unit.cli.stub import Stub

__all__ = ["run", "stub"]

FIGURES = {"total": 12, "ready": 3, "failed": 1, "running": 2, "waiting": 1, "blocked": 5, "counted_at": None}


def explanation(*waiting: dict[str, Any], **options: Any) -> dict[str, Any]:
    return {
        "stack_name": "shop",
        "stack_status": "CREATE_IN_PROGRESS",
        "word": "working",
        "text": "CREATE is in progress since 2026-01-31T12:00:00Z",
        "timeout_at": "2026-01-31T13:00:00Z",
        "progress": FIGURES,
        "causes": [],
        "causes_count": 0,
        "accepts": ["delete", "update"],
        "waiting": list(waiting),
        **options,
    }


def node(name: str, keyword: str, text: str, *holds_up: str, visit: str = "update") -> dict[str, Any]:
    return {
        "resource_name": name,
        "word": keyword,
        "text": text,
        "visit": visit,
        "holds_up": list(holds_up),
        "holds_up_count": len(holds_up),
    }


def test_why_tells_who_waits_for_what_and_who_holds_whom_up(stub: Stub, run: Run) -> None:
    slow = node("db", "waiting-until", "CREATE is in progress", "app", "job", "web", "log")
    blocked = node("app", "waiting-for", "waits for db")
    gone = node("old", "queued", "waits for a worker", visit="cleanup")
    stub.add("shop", why=[{"why": explanation(slow, blocked, gone)}])
    result = run("why", "shop")
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        "shop CREATE_IN_PROGRESS",
        "  CREATE is in progress since 2026-01-31T12:00:00Z",
        "  3 of 12 complete, 2 in progress, 1 failed, 6 waiting",
        "  times out at 2026-01-31T13:00:00Z",
        "  db  waiting-until  CREATE is in progress",
        "    └ blocks app",
        "    └ blocks job",
        "    └ blocks web",
        "    └ blocks 1 more",
        "  app  waiting-for  waits for db",
        "  old (to be deleted)  queued  waits for a worker",
    ]


def test_why_turns_the_pages_that_have_nothing_to_tell(stub: Stub, run: Run) -> None:
    following = {"links": [{"rel": "next", "href": "http://x/why?limit=30&marker=update.7.0"}]}
    last = {"why": explanation(node("a", "queued", "soon"))}
    stub.add("shop", why=[{"why": explanation(), **following}, {"why": explanation(), **following}, last])
    result = run("why", "shop", "--json")
    assert json.loads(result.output)["more"] is False
    assert [load["resource_name"] for load in json.loads(result.output)["why"]["waiting"]] == ["a"]
    requests = [query for _, path, query, *_ in stub.requests if path.endswith("/why")]
    assert [query.get("marker") for query in requests] == [None, ["update.7.0"], ["update.7.0"]]


def test_why_stops_at_its_limit_and_says_that_there_is_more(stub: Stub, run: Run) -> None:
    following = {"links": [{"rel": "next", "href": "http://x/why?marker=active.7.1"}]}
    stub.add("shop", why=[{"why": explanation(node("a", "queued", "soon")), **following}])
    assert "use --limit 2" in run("why", "shop", "--limit", "1").output


def test_why_of_a_failed_stack_gives_the_causes_and_what_is_accepted(stub: Stub, run: Run) -> None:
    failed = explanation(
        stack_status="CREATE_FAILED",
        word="failed",
        text="no action in progress: CREATE_FAILED",
        timeout_at=None,
        causes=[{"resource_name": "db", "reason": "no\nroom", "at": None}],
        causes_count=3,
    )
    stub.add("shop", why=[{"why": failed}])
    assert run("why", "shop").output.splitlines()[1:] == [
        "  no action in progress: CREATE_FAILED",
        "  ✘ db: no room",
        "  … and 2 more failures",
        "  accepted now: delete, update",
    ]


def test_why_of_one_resource_says_when_there_is_nothing_to_do(stub: Stub, run: Run) -> None:
    answer = explanation(resource_status="CREATE_COMPLETE", resource_status_reason="state changed")
    stub.add("shop", why=[{"why": answer}])
    output = run("why", "shop", "db").output
    assert output.splitlines()[-1] == "  db is not waiting: CREATE_COMPLETE"
    assert stub.requests_of("GET")[-1].endswith("/resources/db/why")


def test_what_a_template_said_moves_no_cursor(stub: Stub, run: Run) -> None:
    stub.add("shop", why=[{"why": explanation(node("a\x1b[2J", "queued", "soon\x07"))}])
    assert "\x1b" not in run("why", "shop").output


def test_show_tells_how_far_a_stack_at_work_is(stub: Stub, run: Run) -> None:
    stub.add("shop", progress=FIGURES)
    assert "3 of 12 complete, 2 in progress, 1 failed, 6 waiting" in run("stack", "show", "shop").output
    stub.add("done", status="CREATE_COMPLETE", progress=FIGURES)
    assert "of 12 ready" not in run("stack", "show", "done").output


def test_why_tells_where_to_ask_about_a_nested_stack(stub: Stub, run: Run) -> None:
    text = "CREATE is in progress: waits for its stack shop-db-abc (CREATE_IN_PROGRESS)"
    nested = {"id": "c0ffee", "stack_name": "shop-db-abc", "stack_status": "CREATE_IN_PROGRESS"}
    stub.add(
        "shop",
        why=[{"why": explanation(node("db", "waiting-for-its-stack", text) | {"nested_stack": nested})}],
    )
    result = run("why", "shop")
    assert "    └ details: orchestrator why c0ffee" in result.output.splitlines()


def test_open_prints_the_address_of_the_page(stub: Stub, run: Run) -> None:
    stub.add("shop")
    result = run("open", "shop", "--print")
    assert result.exit_code == 0
    assert "/stacks/shop/" in result.output
    assert "/ui/" in result.output
