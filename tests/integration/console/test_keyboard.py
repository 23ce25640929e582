"""The console without a mouse, and with reduced motion, in Chromium. Skipped without Chromium."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

from typing import Any

import pytest

from orchestrator.store.tables.graph import Failure
from tests.integration.api_world import Made, World, world  # noqa: F401 - a fixture
from tests.integration.console.browser_world import (  # noqa: F401 - fixtures
    PAGES,
    PROJECT,
    TABS,
    address,
    chromium,
    stack,
    visited,
)

MAX_STOPS = 200
# What a mouse can use; a group of radio buttons has a single stop.
USABLE = """() => [...document.querySelectorAll(
    "a[href], button, input:not([type=hidden]), select, textarea, summary, canvas, [tabindex='0']")]
  .filter((item) => !item.disabled && item.checkVisibility())
  .filter((item) => !item.closest("details:not([open]) > :not(summary)"))
  .map((item) => { item.dataset.stop = ""; return item; }).length"""
STOP = """() => {
  const item = document.activeElement;
  if (!item || item === document.body) return null;
  const first = "stop" in item.dataset;
  delete item.dataset.stop;
  const style = getComputedStyle(item);
  const drawn = item.querySelector(".frame, .target"); // of a link in a drawing
  const visible = drawn
    ? getComputedStyle(drawn).stroke !== "none"
    : style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  return [first, visible, item.outerHTML.slice(0, 80)];
}"""
LEFT = """() => [...document.querySelectorAll("[data-stop]")].map((item) => item.outerHTML.slice(0, 80))"""


def stops(page: Any) -> tuple[list[str], list[str]]:
    """Press Tab until the end of a page; return what was not reached, and what had no visible focus."""
    page.evaluate(USABLE)
    invisible = []
    for _ in range(MAX_STOPS):
        page.keyboard.press("Tab")
        stop = page.evaluate(STOP)
        if stop is None or not stop[0]:
            break
        if not stop[1]:
            invisible.append(stop[2])
    return page.evaluate(LEFT), invisible


def nested_failure(world: World) -> Made:
    """A failed stack; the cause is three nested stacks below."""
    stacks = [world.stack(PROJECT, "deep", status="FAILED", traversal=1)]
    for depth, name in enumerate(("region", "zone", "rack"), 1):
        above = stacks[-1]
        owner = world.resource(above, name, status="FAILED", action="CREATE")
        options: dict[str, Any] = {"owner_id": above.id, "root_id": stacks[0].id, "depth": depth}
        options |= {"parent_resource": name, "parent_resource_id": owner, "status": "FAILED", "traversal": 1}
        stacks.append(world.stack(PROJECT, f"deep-{name}", **options))
    world.resource(stacks[-1], "disk", status="FAILED", action="CREATE", status_reason="No valid host")
    world.insert(Failure, failure(stacks[-1], "disk", "No valid host"))
    for above, name, below in zip(stacks[2::-1], ("rack", "zone", "region"), stacks[:0:-1], strict=True):
        reason = f"resources.{name}: see below"
        world.insert(Failure, failure(above, name, reason, physical_id=str(below.uuid)))
    return stacks[0]


def failure(stack: Made, name: str, reason: str, **values: Any) -> dict[str, Any]:
    cause = {"stack_id": stack.id, "traversal": 1, "resource_name": name, "reason": reason}
    return {**cause, "resource_type": "Test::Plain", "action": "CREATE", "physical_id": None, **values}


def test_a_root_cause_three_stacks_below_is_two_clicks_away(
    chromium: Any, address: str, world: World
) -> None:
    page, messages = visited(chromium, f"{address}/ui{nested_failure(world).path}")
    page.get_by_role("link", name="Failures", exact=True).first.click()
    assert "No valid host" in page.inner_text("main")
    page.locator("main").get_by_role("link", name="disk").first.click()
    assert page.url.endswith("/resources/disk")
    assert "No valid host" in page.inner_text("main")
    assert messages == []
    page.context.close()


def test_the_keyboard_selects_and_opens_a_resource_of_the_field(
    chromium: Any, address: str, stack: Made
) -> None:
    page, messages = visited(chromium, f"{address}/ui{stack.path}/field")
    page.locator("#field-canvas").focus()
    page.keyboard.press("ArrowRight")
    selected = page.locator("#field-selected")
    selected.get_by_text("net").wait_for()
    page.keyboard.press("f")
    selected.get_by_text("disk").wait_for()
    assert "failed" in selected.inner_text()
    page.keyboard.press("Enter")
    page.wait_for_url("**/resources/disk")
    assert messages == []
    page.context.close()


@pytest.mark.long
def test_the_keyboard_reaches_everything_that_a_mouse_can_use(
    chromium: Any, address: str, stack: Made
) -> None:
    for place in (*(f"/ui/{PROJECT}/{rest}" for rest in PAGES), *(f"/ui{stack.path}{tab}" for tab in TABS)):
        page, messages = visited(chromium, address + place)
        missed, invisible = stops(page)
        page.context.close()
        assert (missed, invisible, messages) == ([], [], []), place


@pytest.mark.long
def test_nothing_moves_if_motion_is_reduced(chromium: Any, address: str, stack: Made) -> None:
    for place in (*(f"/ui/{PROJECT}/{rest}" for rest in PAGES), *(f"/ui{stack.path}{tab}" for tab in TABS)):
        page, _ = visited(chromium, address + place, reduced_motion="reduce")
        moving = page.evaluate(
            """() => [...document.querySelectorAll("*")].filter((item) => {
                const style = getComputedStyle(item);
                return style.animationName !== "none" || style.transitionDuration !== "0s"
                  || style.scrollBehavior === "smooth";
            }).map((item) => item.outerHTML.slice(0, 80))"""
        )
        page.context.close()
        assert moving == [], place
