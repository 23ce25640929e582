"""The map of a stack: groups, expansion, and its page."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

from tests.integration.api_world import Client, World, api, project, world  # noqa: F401 - fixtures
from tests.integration.console.console_world import Browser, links, words
from tests.integration.console.test_field import tree


def test_a_nested_stack_opens_in_the_map(api: Client, world: World, project: str) -> None:
    root = tree(world, project)
    closed = api.get(f"{root.path}/map")["map"]
    assert [(group["label"], group["count"]) for group in closed["groups"]] == [
        ("Test::Plain", 2),
        ("Test::Plain", 1),
        ("tree-nest", 2),
    ]
    assert closed["edges"] == [{"dependent": 1, "required": 0, "count": 1}]
    [expand] = [group["expand"] for group in closed["groups"] if group["expand"]]
    opened = api.get(f"{root.path}/map?expand={expand}")["map"]
    assert len(opened["groups"]) == 4
    assert api.message("GET", f"{root.path}/map?expand=other", 400).startswith("'expand' has")


def test_the_page_links_to_lists_and_opens_groups(world: World, project: str) -> None:
    root = tree(world, project)
    browser = Browser(world.client())
    page = browser.text(f"/ui{root.path}/map")
    assert "5 resources in 3 groups" in words(page)
    [opening] = [link for link in links(page) if "expand=" in link]
    assert "in 4 groups" in words(browser.text(opening))
    assert any(link.endswith("/resources?type=Test%3A%3APlain") for link in links(page))
    assert "style=" not in page


def test_markup_in_names_is_text(world: World, project: str) -> None:
    root = world.stack(project, "markup")
    world.resource(root, "a", type="<script>alert(1)</script>")
    page = Browser(world.client()).text(f"/ui{root.path}/map")
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page
