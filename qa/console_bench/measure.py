"""Time, weight and long tasks of the pictures in Debian's Chromium, without a GPU."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, Page, sync_playwright

from qa.console_bench.rows import BenchStack

CHROMIUM: Final = "/usr/bin/chromium"
SCREENS: Final = {"laptop": (1280, 800), "wide": (2560, 1440), "phone": (390, 844)}
THEMES: Final = ("light", "dark")
VIEWS: Final = ("field", "map", "timeline", "history")
DRAWN_SECONDS: Final = 120.0
OBSERVE: Final = """
window.longTasks = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.longTasks.push(Math.round(entry.duration));
}).observe({ type: "longtask", buffered: true });
"""
LIVE: Final = "document.getElementById('live')"
COMPLETE: Final = f"""() => {LIVE}?.dataset.newerIn !== "0"
  && (!document.getElementById("field") || performance.getEntriesByName("field-complete").length > 0)"""
READ: Final = """(live) => {
  const page = performance.getEntriesByType("navigation")[0];
  const drawn = performance.getEntriesByName("field-drawn")[0];
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  const files = performance.getEntriesByType("resource");
  const isData = (entry) => entry.initiatorType === "fetch";
  const size = (entries) => entries.reduce((sum, entry) => sum + entry.transferSize, 0);
  const complete = performance.getEntriesByName("field-complete")[0];
  return {
    complete: (complete && !live ? complete.startTime : performance.now()) - page.requestStart,
    response: page.responseEnd - page.requestStart,
    picture: (drawn ? drawn.startTime : paint ? paint.startTime : page.loadEventEnd) - page.responseStart,
    page: page.transferSize,
    assets: size(files.filter((entry) => !isData(entry))),
    data: size(files.filter((entry) => isData(entry))),
    longest: Math.max(0, ...window.longTasks),
  };
}"""


@dataclass(frozen=True, slots=True)
class Figures:
    """A view at a size of the stack. Times in milliseconds, sizes in bytes."""

    view: str
    size: int
    response: float
    picture: float  # the first one, after the first byte of the response
    complete: float  # the complete picture, after the request
    again: float  # the first picture of a second viewer, after the request
    page: int
    assets: int
    data: int
    longest: float  # task of the main thread


@contextmanager
def chromium() -> Iterator[Browser]:
    """Keep a browser without a GPU running for a block."""
    with sync_playwright() as playwright:
        arguments = ["--disable-gpu", "--no-sandbox"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()


def measure(browser: Browser, url: str, stack: BenchStack, view: str) -> Figures:
    """Open a view twice, each time with an empty cache, and read its figures."""
    first = _opened(browser, url, stack, view)
    again = _opened(browser, url, stack, view)
    return Figures(view, stack.size, again=again["response"] + again["picture"], **first)


def _opened(browser: Browser, url: str, stack: BenchStack, view: str) -> dict[str, Any]:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(DRAWN_SECONDS * 1_000)
    page.add_init_script(OBSERVE)
    page.goto(f"{url}{stack.path}/{view}")
    has_live_part = bool(page.evaluate(f"() => {LIVE} !== null"))
    _wait(page, COMPLETE)
    found: dict[str, Any] = page.evaluate(READ, has_live_part)
    context.close()
    return found


def screens(browser: Browser) -> Iterator[tuple[Page, str]]:
    """Yield a new page for each screen and theme, with their names."""
    for screen, (width, height) in SCREENS.items():
        for theme in THEMES:
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme=theme,  # type: ignore[arg-type]
            )
            yield context.new_page(), f"{screen}-{theme}"
            context.close()


def screenshots(browser: Browser, url: str, stack: BenchStack, folder: Path) -> int:
    """Write a picture of each view, screen and theme; return their number."""
    count = 0
    for page, screen in screens(browser):
        page.set_default_timeout(DRAWN_SECONDS * 1_000)
        for view in VIEWS:
            page.goto(f"{url}{stack.path}/{view}")
            wait_drawn(page, view)
            page.screenshot(path=folder / f"{view}-{stack.size}-{screen}.png")
            count += 1
    return count


def wait_drawn(page: Any, view: str) -> None:
    """Wait until the complete picture is drawn."""
    if view in VIEWS:
        _wait(page, COMPLETE)


def _wait(page: Any, holds: str) -> None:
    """Wait for a condition. The policy of the pages forbids `wait_for_function`."""
    deadline = time.monotonic() + DRAWN_SECONDS
    while not page.evaluate(holds) and time.monotonic() < deadline:
        page.wait_for_timeout(20)
