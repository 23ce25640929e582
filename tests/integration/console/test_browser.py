"""The console in Chromium: accessibility, the policy of the pages, the keyboard. Skipped without Chromium or
axe-core.
"""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from werkzeug.serving import make_server

from orchestrator.store.tables.graph import Failure
from tests.hostile.chromium import program
from tests.integration.api_world import Made, World, world  # noqa: F401 - a fixture

PACKAGES = Path(__file__).resolve().parents[3] / "tools" / "node_packages.sh"
PROJECT = "demo"
SIZES = ({"width": 390, "height": 844}, {"width": 1280, "height": 800}, {"width": 2560, "height": 1440})
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
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@cache
def axe() -> str:
    """Return the script of axe-core."""
    run = subprocess.run([PACKAGES], capture_output=True, text=True, timeout=120, check=False)
    if run.returncode:
        pytest.skip(f"no axe-core: {run.stdout.strip()}")
    return (Path(run.stdout.strip()) / "axe-core" / "axe.min.js").read_text()


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


def violations(chromium: Any, url: str, scheme: str, size: dict[str, int]) -> list[str]:
    """Return the rules of axe that a page violates."""
    page, _ = visited(chromium, url, color_scheme=scheme, viewport=size, bypass_csp=True)
    page.evaluate(axe())
    found = page.evaluate(
        "axe.run().then((all) => all.violations.map((rule) => `${rule.id} ${rule.nodes[0].target}`))"
    )
    page.context.close()
    return list(found)


def test_a_page_violates_no_rule_of_accessibility_and_not_its_own_policy(
    chromium: Any, address: str, stack: Made
) -> None:
    start = f"{address}/ui{stack.path}"
    assert violations(chromium, start, "light", SIZES[1]) == []
    assert violations(chromium, f"{start}/failures", "dark", SIZES[0]) == []
    page, messages = visited(chromium, start)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#main"
    assert messages == []
    page.context.close()


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_view_violates_a_rule_of_accessibility_at_any_size(
    chromium: Any, address: str, stack: Made, scheme: str, tmp_path: Path
) -> None:
    places = [*(f"/ui/{PROJECT}/{rest}" for rest in PAGES), *(f"/ui{stack.path}{tab}" for tab in TABS)]
    found = {
        (place, size["width"]): rules
        for place in places
        for size in SIZES
        if (rules := violations(chromium, address + place, scheme, size))
    }
    assert found == {}


@pytest.mark.long
def test_no_view_scrolls_sideways_at_twice_the_size(chromium: Any, address: str, stack: Made) -> None:
    places = [*(f"/ui/{PROJECT}/{rest}" for rest in PAGES), *(f"/ui{stack.path}{tab}" for tab in TABS)]
    for place in places:
        page, messages = visited(chromium, address + place, viewport={"width": 640, "height": 400})
        width = page.evaluate("document.documentElement.scrollWidth")
        page.context.close()
        assert width <= 640, place
        assert messages == [], place
