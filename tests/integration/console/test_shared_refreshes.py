"""Pages that several viewers refresh at the same time: they share what they may see, and nothing else."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

from collections.abc import Iterator

import pytest

from api.streaming import shared_responses
from api.streaming.hub import EventHub, Scope
from orchestrator.security.tokens import create_token
from tests.e2e.running import eventually
from tests.integration.api_world import Client, World, project, world  # noqa: F401 - fixtures
from tests.integration.console.console_world import Browser, words

REFRESH = {"HX-Request": "true", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}


@pytest.fixture
def client(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """Return a client of an application that distributes events, and shares until the next one."""
    monkeypatch.setattr(shared_responses, "MAX_AGE_SECONDS", 3_600.0)
    client = world.client(auth="token")
    hub = client.http.application.state.parts[EventHub] = EventHub(world.database, 8, poll_seconds=0.05)
    stream = hub.join(Scope("any", 0), -1)
    hub.resume(stream)
    yield client
    hub.leave(stream)


def signed_in(world: World, client: Client, project: str, role: str) -> Browser:
    """Return its own browser, signed in with a role."""
    browser = Browser(Client(client.http.application.test_client(), client.base))
    browser.submit("/ui/sign-in", {"token": create_token(world.database, project, role, None, [role])})
    return browser


def test_a_refreshed_part_is_that_of_the_page(client: Client, world: World, project: str) -> None:
    stack = world.stack(project, "mine")
    world.resource(stack, "a")
    world.event(stack, "a")
    browser = signed_in(world, client, project, "member")
    for view in ("", "/resources", "/events", "/map"):
        page, part = (
            browser.text(f"/ui{stack.path}{view}", headers=headers).partition('<div id="live"')
            for headers in ({}, REFRESH)
        )
        assert words(page[2]) == words(part[2])
        assert "Sign out" in page[0]
        assert "Sign out" not in part[0]


def test_new_events_end_the_sharing_of_a_refresh(client: Client, world: World, project: str) -> None:
    stack = world.stack(project, "mine")
    browser = signed_in(world, client, project, "member")

    def shown() -> str:
        return words(browser.text(f"/ui{stack.path}/events", headers=REFRESH))

    assert "No events" in shown()
    world.event(stack, "first")
    eventually(lambda: "first" in shown())
    assert "first" in words(browser.text(f"/ui{stack.path}/events"))


def test_a_refresh_is_shared_only_with_callers_of_the_same_rights(
    client: Client, world: World, project: str
) -> None:
    stack, other = world.stack(project, "mine"), world.project()
    member, reader = (signed_in(world, client, project, role) for role in ("member", "reader"))
    foreign = signed_in(world, client, other, "member")
    assert "does not permit" not in words(member.text(f"/ui{stack.path}", headers=REFRESH))
    assert "does not permit" in words(reader.text(f"/ui{stack.path}", headers=REFRESH))
    assert "does not permit" not in words(member.text(f"/ui{stack.path}", headers=REFRESH))
    foreign.text(f"/ui{stack.path}", 404, headers=REFRESH)
    foreign.text(f"/ui/{other}/stacks/{stack.name}/{stack.uuid}", 404, headers=REFRESH)
