"""`orchestrator webhook`, `failures` and `events`: their requests, output and exit status."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from orchestrator.cli.client.api_client import Client
from orchestrator.cli.client.connection import Connection, NoStream
from orchestrator.cli.watch.event_feed import of_project
from tests.unit.cli.command_line import Run, run, stub
from tests.unit.cli.stub import Stub

__all__ = ["run", "stub"]

HOOK: dict[str, Any] = {
    "id": "w1",
    "url": "https://example.org/hook?******",
    "secret": "whsec_once",
    "stack_id": None,
    "stack_name": "shop",
    "nested_depth": 2,
    "events": "stack",
    "state": "dead",
    "sequence": "8.1",
    "tries": 24,
    "failing_since": "2026-01-31T12:00:00Z",
    "last_error": "it answered 500",
    "next_attempt_at": None,
    "delivered": 3,
    "delivered_at": None,
    "creation_time": "2026-01-31T12:00:00Z",
}


def test_a_webhook_is_made_with_what_was_said_and_its_secret_is_shown(
    stub: Stub, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub.answers["POST webhooks"] = {"webhook": HOOK}
    monkeypatch.setenv("ORCHESTRATOR_WEBHOOK_SECRET", "whsec_mine")
    made = run(
        "webhook", "create", "https://example.org/hook", "--stack", "shop", "--nested", "2", "--stacks-only",
        "--after", "now",
    )  # fmt: skip
    assert made.exit_code == 0
    assert stub.requests[-1][4] == {
        "url": "https://example.org/hook", "stack": "shop", "nested_depth": 2, "events": "stack",
        "secret": "whsec_mine", "after": "now",
    }  # fmt: skip
    assert "whsec_once" in made.output
    monkeypatch.delenv("ORCHESTRATOR_WEBHOOK_SECRET")
    assert run("webhook", "create", "https://example.org/hook", "--quiet").output == "w1\n"
    assert stub.requests[-1][4] == {"url": "https://example.org/hook"}


def test_webhooks_are_listed_shown_and_removed(stub: Stub, run: Run) -> None:
    stub.answers |= {
        "GET webhooks": [{"webhooks": [HOOK]}, {"webhooks": []}, {"webhooks": [HOOK]}],
        "GET webhooks/w1": {"webhook": HOOK},
        "DELETE webhooks/w1": None,
    }
    listed = run("webhook", "list", "--dead").output
    assert listed.splitlines()[1].split() == [
        "w1", "dead", "shop", "3", "https://example.org/hook?******", "it", "answered", "500",
    ]  # fmt: skip
    assert stub.requests[-1][2] == {"state": ["dead"]}
    assert run("webhook", "list").output == "Project demo has no webhooks.\n"
    assert json.loads(run("webhook", "list", "--json").output) == {"webhooks": [HOOK]}
    shown = run("webhook", "show", "w1").output
    assert "it answered 500" in shown
    assert "2026-01-31" in shown
    assert run("webhook", "delete", "w1").output == "Webhook w1 deleted.\n"
    assert stub.requests[-1][:2] == ("DELETE", "/v1/demo/webhooks/w1")


def test_a_webhook_is_tried_and_armed_again(stub: Stub, run: Run) -> None:
    good = {"delivered": True, "status": 204, "error": None}
    bad = {"delivered": False, "status": None, "error": "it answered 500"}
    stub.answers |= {
        "POST webhooks/w1/test": [{"test": good}, {"test": bad}],
        "POST webhooks/w1/rearm": {"webhook": HOOK},
    }
    assert run("webhook", "test", "w1").output == "Webhook w1 answered 204.\n"
    failed = run("webhook", "test", "w1")
    assert failed.exit_code == 1
    assert "the delivery to webhook w1 failed: it answered 500" in failed.output
    assert run("webhook", "rearm", "w1", "--after", "8.1").output == "Webhook w1 continues after 8.1.\n"
    assert stub.requests[-1][4] == {"after": "8.1"}


def cause(name: str, *causes: dict[str, Any], **options: Any) -> dict[str, Any]:
    return {
        "resource_name": name,
        "resource_type": "OS::Nova::Server",
        "failure_time": "2026-01-31T12:00:00Z",
        "nested_stack": None,
        "causes": list(causes),
        "reason": "Quota exceeded for cores\nAsk somebody",
        "class": "quota",
        "attempts": 3,
        "physical_resource_id": "p-1",
        "service": "nova",
        "request_id": "req-1",
        "next_step": "Ask for more quota.",
        **options,
    }


def test_failures_are_told_down_to_their_causes(stub: Stub, run: Run) -> None:
    inner = cause("server")
    outer = cause("group", inner, nested_stack={"name": "shop-group", "status": "CREATE_FAILED"}, reason="-")
    stack = stub.add("shop", answers={"failures": {"failures": [outer], "more": True}})
    reported = run("failures", "shop", "--revision", "2")
    assert reported.exit_code == 0
    lines = [line.strip(" │├└─") for line in reported.output.splitlines()]
    assert lines[0] == "shop"
    assert lines[1].startswith("✘ group  OS::Nova::Server")
    assert lines[1].endswith("stack shop-group CREATE_FAILED")
    assert lines[2].startswith("✘ server")
    assert lines[3:6] == [
        "Quota exceeded for cores Ask somebody",
        "quota, 3 attempts, id p-1, service nova, request req-1",
        "next: Ask for more quota.",
    ]
    assert lines[-1] == "… and more causes"
    assert stub.requests[-1][2]["revision"] == ["2"]
    stack.answers["failures"] = {"failures": [], "more": False}
    assert run("failures", "shop").output == "No resource of stack shop has failed.\n"
    assert json.loads(run("failures", "shop", "--json").output) == {"failures": [], "more": False}


def test_the_class_of_an_unknown_failure_is_not_shown(stub: Stub, run: Run) -> None:
    unknown = {
        "class": "other",
        "attempts": 1,
        "physical_resource_id": None,
        "service": None,
        "request_id": None,
    }
    failures = {"failures": [cause("server", **unknown)], "more": False}
    stub.add("shop", answers={"failures": failures})
    shown = run("failures", "shop").output
    assert "other" not in shown
    assert shown.splitlines()[-1].endswith("next: Ask for more quota.")


def event(number: int, stack: str, name: str) -> dict[str, Any]:
    place = f"http://there/v1/demo/stacks/{stack}/{stack}-id"
    return {
        "id": str(number),
        "sequence": f"{number}.0",
        "event_time": "2026-01-31T12:00:00Z",
        "resource_name": name,
        "physical_resource_id": f"{stack}-id" if name == stack else "x",
        "resource_status": "CREATE_COMPLETE",
        "resource_status_reason": "",
        "links": [{"rel": "stack", "href": place}],
    }


def page(*events: dict[str, Any], sequence: str = "9.0", extra: bool = False) -> dict[str, Any]:
    return {"events": list(events), "sequence": sequence, "more": extra}


def split_words(output: str) -> list[str]:
    """Return the lines without the time of day."""
    return [line.split(" ", 1)[1] for line in output.splitlines()]


def test_a_projects_events_are_listed_to_the_last_page(stub: Stub, run: Run) -> None:
    first = page(event(1, "web", "web"), sequence="1.5", extra=True)
    stub.answers["GET events"] = [first, page(event(2, "my app", "one")), page()]
    listed = run("events", "--nested", "2")
    assert split_words(listed.output) == ["CREATE_COMPLETE web (stack)", "CREATE_COMPLETE my app.one"]
    requests = [query for _, _, query, *_ in stub.requests]
    assert requests == [
        {"after": ["0.0"], "nested_depth": ["2"]},
        {"after": ["1.5"], "nested_depth": ["2"]},
    ]
    assert run("events", "--after", "9.0").output == "Project demo has no events after 9.0.\n"
    assert stub.requests[-1][2] == {"after": ["9.0"]}


class Project:
    """A project whose one stream is cut, and that then has no room for another."""

    def __init__(self, *pages: dict[str, Any]) -> None:
        self.pages, self.asked, self.streams = list(pages), [("", "")], 1
        self.connection = Connection("http://there", "demo")
        self.events = self

    def of_project(self, after: str, nested: int = 0) -> dict[str, Any]:
        self.asked.append(("list", after))
        return self.pages.pop(0)

    def stream(self, stack: object, after: str, seconds: float | None, nested: int = 0) -> Any:
        assert stack is None
        if not self.streams:
            raise NoStream
        self.streams -= 1
        self.asked.append(("stream", after))
        item = event(3, "web", "one")
        return (message for message in [("message", item["sequence"], item), ("", "4.0", {})])


def test_a_project_is_followed_from_now_over_cuts_and_without_streams() -> None:
    server = Project(page(sequence="2.0"), page(event(5, "web", "two"), sequence="5.0"), page())
    waits: list[float] = []

    def idle(seconds: float) -> None:
        waits.append(seconds)

    reported = of_project(cast(Client, server), "now", 0, idle=idle)
    assert [next(reported)["id"] for _ in range(2)] == ["3", "5"]
    assert server.asked[1:] == [("list", "now"), ("stream", "2.0"), ("list", "3.0")]
    assert waits


def test_events_of_nested_stacks_are_told_with_their_stacks_name(stub: Stub, run: Run) -> None:
    shop = stub.add("shop", status="CREATE_COMPLETE")
    shop.events = [event(1, "shop", "one"), event(2, "shop-one", "inner"), event(3, "shop-one", "shop-one")]
    reported = run("stack", "events", "shop", "--nested", "3")
    assert split_words(reported.output) == [
        "CREATE_COMPLETE one",
        "CREATE_COMPLETE shop-one.inner",
        "CREATE_COMPLETE shop-one (stack)",
    ]
    assert stub.requests[-1][2]["nested_depth"] == ["3"]
    assert split_words(run("stack", "events", "shop", "--nested", "3", "--follow").output) == split_words(
        reported.output
    )


def test_a_reason_that_says_more_than_the_status_is_printed(stub: Stub, run: Run) -> None:
    shop = stub.add("shop", status="CREATE_COMPLETE")
    queued = {**event(1, "shop", "shop"), "resource_status_reason": "SUSPEND is queued: it starts later"}
    shop.events = [
        queued,
        {**event(2, "shop", "one"), "resource_status_reason": "replaced by a new resource"},
    ]
    shown = run("stack", "events", "shop").output
    assert "(stack): SUSPEND is queued: it starts later" in shown
    assert "one: replaced by a new resource" in shown
