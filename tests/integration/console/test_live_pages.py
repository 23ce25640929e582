"""Refreshes of map and timeline in Chromium. Skipped without Chromium."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import threading
import time
from itertools import pairwise
from typing import Any

import pytest

from orchestrator.engine.pictures.field import Field
from orchestrator.operations.pictures import field as built
from orchestrator.operations.pictures.field import FieldBuilder
from tests.integration.api_world import Made, World, project, world  # noqa: F401 - fixtures
from tests.integration.console.test_browser import address, chromium  # noqa: F401 - fixtures
from tests.integration.console.test_field import set_status
from tests.integration.console.test_timeline import at, stack

# A stream that the test controls.
STREAM = """
window.EventSource = class {
    static CLOSED = 2;
    constructor() { window.stream = this; this.readyState = 1; }
    addEventListener() {}
    close() {}
};
"""
SIZE = {"width": 500, "height": 360}


def opened(chromium: Any, url: str) -> Any:
    """Open a page that has a stream."""
    context = chromium.new_context(viewport=SIZE)
    context.add_init_script(STREAM)
    page = context.new_page()
    page.goto(url, wait_until="load")
    return page


def refreshed(page: Any) -> None:
    """Send an event, and wait for the refreshed page."""
    with page.expect_response(lambda response: response.request.headers.get("hx-request") == "true"):
        page.evaluate("stream.onmessage()")
    page.wait_for_selector(".htmx-request, .htmx-swapping", state="detached")


def test_the_map_is_refreshed_and_keeps_focus_expansion_and_scroll_position(
    chromium: Any, address: str, world: World, project: str
) -> None:
    root = world.stack(project, "wide")
    child = world.stack(project, "child", owner_id=root.id, root_id=root.id, depth=1, parent_resource="n0")
    for level in range(8):
        world.resource(root, f"n{level}", [f"n{level - 1}"] if level else [], type=f"T{level}")
    world.resource(child, "inner", type="Inner")
    page = opened(chromium, f"{address}/ui{root.path}/map?expand=stack:{child.uuid}")
    page.focus("a[href*='type=T6']")
    page.evaluate("document.querySelector('.drawing').scrollLeft = 120")
    assert "9 resources" in page.inner_text("main")
    assert page.locator("text=Inner").count() >= 1
    world.resource(root, "more", type="T0")
    world.event(root, "more")
    refreshed(page)
    page.wait_for_selector("text=10 resources")
    assert page.evaluate("document.activeElement.getAttribute('href')").endswith("type=T6")
    assert page.evaluate("document.querySelector('.drawing').scrollLeft") == 120
    assert page.locator("text=Inner").count() >= 1
    namespaces = "[...document.querySelectorAll('svg *')].every((item) => item instanceof SVGElement)"
    assert page.evaluate(namespaces)
    page.context.close()


def test_the_head_of_a_field_follows_the_status_of_the_stack(
    chromium: Any, address: str, world: World, project: str
) -> None:
    root = world.stack(project, "ending", status="IN_PROGRESS")
    world.resource(root, "a")
    page = opened(chromium, f"{address}/ui{root.path}/field")
    assert "create in progress" in page.inner_text("h1")
    page.focus("#field-canvas")
    set_status(world, root, "COMPLETE")
    page.wait_for_selector("h1 >> text=create complete")
    assert page.evaluate("document.activeElement.id") == "field-canvas"
    page.context.close()


def test_a_map_is_refreshed_when_the_server_expects_a_newer_one(
    chromium: Any, address: str, world: World, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end, build = threading.Event(), FieldBuilder.build

    def build_later(builder: FieldBuilder, **options: bool) -> Field:
        if options["rearranges"]:  # after an event
            may_end.wait(60)
        return build(builder, **options)

    monkeypatch.setattr(FieldBuilder, "build", build_later)
    root = world.stack(project, "late")
    world.resource(root, "a")
    page = opened(chromium, f"{address}/ui{root.path}/map")
    world.resource(root, "b")
    world.event(root, "b")
    for send in (True, False, False):  # the event, its repetition, and then only what the server expects
        with page.expect_response(lambda response: "hx-request" in response.request.headers, timeout=60_000):
            if send:
                page.evaluate("stream.onmessage()")
    assert "1 resource in 1 group" in page.inner_text("main")
    may_end.set()
    page.wait_for_selector("text=2 resources", timeout=60_000)
    page.wait_for_selector("#live:not([data-newer-in])", state="attached", timeout=60_000)
    page.context.close()


def test_a_first_picture_is_replaced_by_the_complete_one(
    chromium: Any, address: str, world: World, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(built, "LARGE", 1)
    for view, text in (
        ("map", "requirements on the left"),
        ("field", "in 2 levels"),
        ("history", "2 levels"),
    ):
        root = world.stack(project, f"large-{view}")
        world.resource(root, "a")
        world.resource(root, "b", ["a"])
        page = opened(chromium, f"{address}/ui{root.path}/{view}")
        page.wait_for_selector(f"text={text}")
        page.wait_for_selector("#live[data-newer-in]", state="detached")
        if view != "map":
            page.wait_for_selector("#field-scale:empty", state="attached")
        page.context.close()


def test_many_events_cause_few_refreshes(chromium: Any, address: str, world: World, project: str) -> None:
    page = opened(chromium, f"{address}/ui{stack(world, project).path}/timeline")
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: messages.append(str(error)))
    requests: list[float] = []
    page.on("request", lambda request: requests.append(time.monotonic()) if "timeline" in request.url else 0)
    until = time.monotonic() + 3
    while time.monotonic() < until:
        page.evaluate("stream.onmessage()")
        page.wait_for_timeout(50)
    assert 1 <= len(requests) <= 2
    page.wait_for_timeout(2_500)
    assert len(requests) <= 3
    assert page.locator("#throughput canvas").count() == 1  # the chart is kept
    assert messages == []
    assert all(later - earlier > 1.9 for earlier, later in pairwise(requests))
    page.context.close()


def test_a_past_revision_is_not_refreshed(chromium: Any, address: str, world: World, project: str) -> None:
    made: Made = stack(world, project)
    world.event(made, "first", status="IN_PROGRESS", created_at=at(70))
    page = opened(chromium, f"{address}/ui{made.path}/timeline?revision=1")
    assert page.evaluate("window.stream === undefined")
    page.context.close()
