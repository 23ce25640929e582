"""Links to Flower: for operators, if it has an address."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

from urllib.parse import unquote

from orchestrator.security.tokens import create_token
from tests.integration.api_world import World, project, world  # noqa: F401 - fixtures
from tests.integration.console.console_world import Browser, links, words

FLOWER = "http://127.0.0.1:5555"


def test_overview_and_resource_have_links_to_the_tasks(world: World, project: str) -> None:
    stack = world.stack(project, "web")
    world.resource(stack, "db")
    browser = Browser(world.client(flower_url=f"{FLOWER}/"))
    assert f"{FLOWER}/tasks" in links(browser.text(f"/ui/{project}/"))
    page = browser.text(f"/ui{stack.path}/resources/db")
    [link] = [link for link in links(page) if link.startswith(FLOWER)]
    assert f"root_stack={stack.uuid}" in unquote(link)
    assert '"web/db "' in unquote(link)
    assert "The last task in Flower" in words(page)


def test_there_are_no_links_without_flower_or_for_other_roles(world: World, project: str) -> None:
    stack = world.stack(project, "web")
    world.resource(stack, "db")
    places = (f"/ui/{project}/", f"/ui{stack.path}/resources/db")
    for place in places:
        assert "Flower" not in Browser(world.client(flower_url="")).text(place)
    browser = Browser(world.client(auth="token", flower_url=FLOWER))
    browser.submit("/ui/sign-in", {"token": create_token(world.database, project, "r", None, ["member"])})
    for place in places:
        assert "Flower" not in browser.text(place)
