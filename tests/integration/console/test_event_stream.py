"""The stream of events that a page of the console follows."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

from typing import Any

from orchestrator.security.tokens import create_token
from tests.integration.api.test_api_streams import Stream
from tests.integration.api_world import Client, World, project, world  # noqa: F401 - fixtures
from tests.integration.console.console_world import Browser


def opened(client: Client, path: str) -> Stream:
    """Open a stream as a page does."""
    headers = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
    return Stream(Client(client.http, "/ui"), path, **headers)


def test_a_page_learns_of_new_events_of_the_stack_and_its_nested_stacks(world: World, project: str) -> None:
    root = world.stack(project, "root")
    child = world.stack(project, "child", owner_id=root.id, root_id=root.id, depth=1, parent_resource="x")
    other = world.stack(project, "other")
    world.event(root, "past")
    stream = opened(world.client(), f"{root.path}/events/stream")
    try:
        first = stream.message()
        assert first is not None
        assert first["event"] == "caught-up"  # the page already has what is past
        world.event(other, "foreign")
        world.event(child, "inner", properties={"password": "hidden-value"})
        world.event(root, "own")
        found: list[dict[str, Any]] = []
        while sum(message["events"] for message in found) < 2:
            message = stream.message()
            assert message is not None
            found.append(message)
        assert sum(message["events"] for message in found) == 2
        assert {key for message in found for key in message} == {"event", "at", "events"}  # no contents
    finally:
        stream.close()
    headers = stream.response.headers
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Accel-Buffering"] == "no"
    assert "default-src 'none'" in headers["Content-Security-Policy"]


def test_a_closed_page_makes_room_for_another(world: World, project: str) -> None:
    path = f"{world.stack(project, 'mine').path}/events/stream"
    client = world.client(max_event_streams=1)
    first = opened(client, path)
    assert first.message() is not None
    Browser(client).open(f"/ui{path}", 503)
    first.close()
    second = opened(client, path)
    assert second.message() is not None
    second.close()


def test_a_stream_needs_a_session(world: World, project: str) -> None:
    stack = world.stack(project, "mine")
    client = world.client(auth="token")
    path, browser = f"{stack.path}/events/stream", Browser(client)
    headers = {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}
    browser.open(f"/ui{path}", 401, headers=headers)
    browser.submit("/ui/sign-in", {"token": create_token(world.database, project, "r", None, ["reader"])})
    stream = opened(client, path)
    assert stream.message() is not None
    stream.close()
