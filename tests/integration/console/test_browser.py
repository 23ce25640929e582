"""The console in Chromium: accessibility, the policy of the pages, the keyboard. Skipped without Chromium or
axe-core.
"""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.integration.api_world import Made, world  # noqa: F401 - a fixture
from tests.integration.console.browser_world import (  # noqa: F401 - fixtures
    PAGES,
    PROJECT,
    TABS,
    address,
    chromium,
    stack,
    visited,
)

PACKAGES = Path(__file__).resolve().parents[3] / "tools" / "node_packages.sh"
SIZES = ({"width": 390, "height": 844}, {"width": 1280, "height": 800}, {"width": 2560, "height": 1440})


@cache
def axe() -> str:
    """Return the script of axe-core."""
    run = subprocess.run([PACKAGES], capture_output=True, text=True, timeout=120, check=False)
    if run.returncode:
        pytest.skip(f"no axe-core: {run.stdout.strip()}")
    return (Path(run.stdout.strip()) / "axe-core" / "axe.min.js").read_text()


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
