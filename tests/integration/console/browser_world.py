"""Chromium, a server and a stack for the tests of the console in a browser."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from werkzeug.serving import make_server

from orchestrator.store.tables.graph import Failure
from tests.hostile.chromium import program
from tests.integration.api_world import Made, World, world  # noqa: F401 - a fixture

PROJECT = "demo"
PAGES = ("", "stacks", "create", "repairs")
TABS = (
    "",
    "/field",
    "/map",
    "/timeline",
    "/history",
    "/history?step=0",
    "/resources",
    "/resources/disk",
    "/events",
    "/failures",
    "/drift",
    "/outputs",
    "/revisions",
    "/revisions/1",
    "/actions/update",
    "/actions/delete",
)


@pytest.fixture(scope="module")
def stack(world: World) -> Made:
    """A failed stack with two resources."""
    made = world.stack(
        PROJECT, "shop", status="FAILED", traversal=1, tags=["blue"], revision={"traversal": 1}
    )
    world.resource(made, "net", action="CREATE", attributes={"open": "x"})
    world.resource(made, "disk", ["net"], action="CREATE", status="FAILED", status_reason="No space")
    world.event(made, "disk", status="FAILED")
    cause = {"stack_id": made.id, "traversal": 1, "resource_name": "disk", "reason": "No space"}
    world.insert(Failure, cause)
    return made


@pytest.fixture(scope="module")
def address(world: World) -> Iterator[str]:
    """The address of a server."""
    server = make_server("127.0.0.1", 0, world.client().http.application, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser."""
    path = program()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def visited(chromium: Any, url: str, **options: Any) -> tuple[Any, list[str]]:
    """Open a page; return it with the messages of the browser."""
    context = chromium.new_context(**options)
    context.add_init_script("delete window.EventSource")  # a stream would outlive the test's server
    page = context.new_page()
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto(url, wait_until="load")
    return page, messages
