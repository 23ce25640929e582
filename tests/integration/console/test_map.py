"""The map of a stack: groups, expansion, and its page."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import update

from api.streaming import fields
from orchestrator.operations.pictures import field as built
from orchestrator.store.tables.graph import ResourceDefinition
from tests.e2e.running import eventually
from tests.integration.api_world import Client, Made, World, api, project, world  # noqa: F401 - fixtures
from tests.integration.console.console_world import Browser, links, words
from tests.integration.console.test_field import complete, tree


def shown(api: Client, stack: Made) -> Any:
    return api.get(f"{stack.path}/map")["map"]


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


def test_a_map_says_when_it_shows_new_resources_and_dependencies(
    api: Client, world: World, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fields, "SOON_SECONDS", 3.0)
    root = world.stack(project, "grows")
    for name in ("a", "b"):
        world.resource(root, name, type=name)
    assert shown(api, root)["newer_in_seconds"] is None
    for name in ("c", "d"):
        world.resource(root, name, type=name)
    world.event(root, "c")
    eventually(lambda: shown(api, root)["newer_in_seconds"] is not None)
    outdated = shown(api, root)
    assert outdated["count"] == 2
    assert 0 < outdated["newer_in_seconds"] < 10
    eventually(lambda: shown(api, root)["newer_in_seconds"] is None)
    assert shown(api, root)["count"] == 4
    with world.database.engine.begin() as connection:
        depends = update(ResourceDefinition).where(
            ResourceDefinition.stack_id == root.id, ResourceDefinition.name == "b"
        )
        connection.execute(depends.values(requires=["a"]))
    world.event(root, root.name, physical_id=str(root.uuid))  # an action ends
    eventually(lambda: bool(shown(api, root)["edges"]))


def test_a_map_counts_changes(api: Client, world: World, project: str) -> None:
    root = world.stack(project, "changes")
    for name in ("a", "b"):
        world.resource(root, name)
    [group] = shown(api, root)["groups"]
    assert group["counts"] == {"planned": 2}
    complete(world, root, "b")
    eventually(lambda: shown(api, root)["groups"][0]["counts"] == {"planned": 1, "complete": 1})


def test_the_first_map_of_a_large_stack_has_types_only(
    api: Client, world: World, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tree(world, project)
    assert api.get(f"{root.path}/map?draft=true")["map"]["draft"] is False  # small
    monkeypatch.setattr(built, "LARGE", 4)
    api = world.client()
    first = api.get(f"{root.path}/map?draft=true")["map"]
    assert (first["draft"], first["count"], first["edges"]) == (True, 5, [])
    assert [(group["label"], group["count"], group["levels"]) for group in first["groups"]] == [
        ("Test::Plain", 3, [0, 0]),
        ("tree-nest", 2, [0, 0]),
    ]
    assert first["groups"][0]["counts"] == {"complete": 1, "failed": 1, "in_progress": 1}
    with_field = world.client()
    with_field.get(f"{root.path}/field/summary")
    assert with_field.get(f"{root.path}/map?draft=true")["map"]["draft"] is True  # the groups are not read
    page = Browser(world.client()).text(f"/ui{root.path}/map")
    assert 'data-newer-in="0"' in page
    [link] = [link for link in links(page) if "complete=1" in link]
    assert "requirements on the left" in Browser(world.client()).text(link)
    assert len(api.get(f"{root.path}/map")["map"]["edges"]) == 1
    assert api.get(f"{root.path}/map?draft=true")["map"]["draft"] is False


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
