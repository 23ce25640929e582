"""Following events: over a whole project, and as server-sent events that a cut does not hurt."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from api.streaming import hub
from orchestrator.security.tokens import create_token, list_tokens, revoke_token
from orchestrator.store.events.stream import Position
from tests.integration.api_world import Client, Made, World, api, project, world
from tests.integration.api_world import root as root_of

__all__ = ["api", "project", "world"]

STREAM = {"Accept": "text/event-stream"}
INSERT = (
    "INSERT INTO event (stack_id, resource_name, resource_type, action, status, reason)"
    " VALUES (%s, %s, 't', 'CREATE', 'COMPLETE', '')"
)


class Stream:
    """A stream of events as a client reads it: message by message."""

    def __init__(self, api: Client, path: str, **headers: str) -> None:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        self.response = api.http.get(api.base + path, headers=STREAM | names)
        assert self.response.status_code == 200, self.response.get_data(as_text=True)
        assert self.response.mimetype == "text/event-stream"
        self.messages = (text for chunk in self.response.response for text in self._split(chunk))
        self.last = ""

    def _split(self, chunk: bytes) -> list[str]:
        assert chunk.endswith(b"\n\n")
        return chunk.decode().removesuffix("\n\n").split("\n\n")

    def message(self) -> dict[str, Any] | None:
        """Return the next message, None at the end; comments and the like are passed over."""
        for text in self.messages:
            pairs = dict(line.split(": ", 1) for line in text.splitlines())
            if "id" in pairs:
                self.last = pairs["id"]
            if "data" in pairs:
                kind = {"event": pairs.get("event", "message"), "at": pairs["id"]}
                return {**kind, **json.loads(pairs["data"])}
        return None

    def names(self, count: int) -> list[str]:
        """Return the resources that the next messages are about."""
        result = [self.message() for _ in range(count)]
        return [item.get("resource_name", item["event"]) for item in result if item]

    def close(self) -> None:
        self.response.close()


@pytest.fixture
def follow(api: Client) -> Iterator[Callable[..., Stream]]:
    """Open streams; they are closed with the test."""
    opened: list[Stream] = []

    def start(path: str, **headers: str) -> Stream:
        opened.append(Stream(api, path, **headers))
        return opened[-1]

    yield start
    for stream in opened:
        stream.close()


Follow = Callable[..., Stream]


def write_event(world: World, stack: Made, status: str, action: str = "CREATE") -> None:
    """Let a stack tell of itself."""
    additional = {"resource_type": "OS::Heat::Stack", "physical_id": str(stack.uuid)}
    world.event(stack, stack.name, action=action, status=status, **additional)


def test_past_events_are_sent_before_new_events(world: World, project: str, follow: Follow) -> None:
    stack = world.stack(project, "s", status="IN_PROGRESS")
    for name in "ab":
        world.event(stack, name)
    stream = follow(f"{stack.path}/events")
    first = stream.message()
    assert first is not None
    assert (first["resource_name"], first["at"]) == ("a", first["sequence"])
    assert (first["stack_name"], first["stack_id"]) == ("s", str(stack.uuid))
    assert stream.names(2) == ["b", "caught-up"]
    threading.Timer(0.1, lambda: [world.event(stack, name) for name in "cd"]).start()
    assert stream.names(2) == ["c", "d"]


def test_a_disconnected_reader_continues_at_its_position(world: World, project: str, follow: Follow) -> None:
    stack = world.stack(project, "s", status="IN_PROGRESS")
    for name in "abc":
        world.event(stack, name)
    cut = follow(f"{stack.path}/events/stream?after=0.0")
    assert cut.names(2) == ["a", "b"]
    cut.close()
    world.event(stack, "d")
    again = follow(f"{stack.path}/events/stream?after=0.0", Last_Event_ID=cut.last)
    assert again.names(3) == ["c", "d", "caught-up"]


def test_an_event_committed_late_is_delivered_in_order(world: World, project: str, follow: Follow) -> None:
    """An earlier transaction that commits later precedes the events committed before it."""
    stack = world.stack(project, "s", status="IN_PROGRESS")
    stream = follow(f"{stack.path}/events")
    assert stream.names(1) == ["caught-up"]
    with psycopg.connect(world.database.url) as late:
        late.execute(INSERT, (stack.id, "late"))
        world.event(stack, "early")
        timer = threading.Timer(0.6, late.commit)
        timer.start()
        assert stream.names(2) == ["late", "early"]
        timer.join()


def test_a_stream_may_end_with_the_action(world: World, project: str, follow: Follow) -> None:
    stack = world.stack(project, "s", status="IN_PROGRESS")
    write_event(world, stack, "IN_PROGRESS")
    stream = follow(f"{stack.path}/events?until_end=true")
    assert stream.names(2) == ["s", "caught-up"]
    write_event(world, stack, "COMPLETE")
    assert stream.names(1) == ["s"]
    end = stream.message()
    assert end is not None
    assert (end["event"], end["stack_status"]) == (
        "end",
        "CREATE_IN_PROGRESS",
    )  # the row stays as it was here
    assert stream.message() is None


def test_a_stream_of_an_idle_stack_sends_its_history_and_ends(
    world: World, project: str, follow: Follow
) -> None:
    stack = world.stack(project, "s")
    world.event(stack, "a")
    stream = follow(f"{stack.path}/events?until_end=true")
    assert stream.names(4) == ["a", "caught-up", "end"]


def test_a_merged_stream_sends_numbers_of_events(
    world: World, project: str, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = world.stack(project, "s", status="IN_PROGRESS")
    world.event(stack, "past")
    stream = follow(f"{stack.path}/events?merged=true&resource_name=a")
    assert stream.names(1) == ["caught-up"]
    with psycopg.connect(world.database.url) as together:
        for name in "aaba":
            together.execute(INSERT, (stack.id, name))
    message = stream.message()
    assert message is not None
    assert (message["event"], message["events"], "resource_name" in message) == ("message", 3, False)
    monkeypatch.setattr(hub, "MAX_QUEUED_EVENTS", 1)
    with psycopg.connect(world.database.url) as together:
        for name in "aa":
            together.execute(INSERT, (stack.id, name))
    assert stream.names(1) == ["caught-up"]  # a queue without room: the number is not known


def test_a_merged_stream_ends_with_the_action(world: World, project: str, follow: Follow) -> None:
    stack = world.stack(project, "s", status="IN_PROGRESS")
    stream = follow(f"{stack.path}/events?merged=true&until_end=true")
    assert stream.names(1) == ["caught-up"]
    write_event(world, stack, "COMPLETE")
    assert stream.names(2) == ["message", "end"]
    assert stream.message() is None


def test_a_tree_is_followed_as_deep_as_asked(world: World, project: str, follow: Follow) -> None:
    stacks, above = [world.stack(project, "s", status="IN_PROGRESS")], None
    for number, name in enumerate(("one", "two"), start=1):
        above = stacks[-1]
        additional = {"root_id": stacks[0].id, "depth": number, "owner_id": above.id, "parent_resource": name}
        stacks.append(world.stack(project, f"{above.name}-{name}", parent_resource_id=above.id, **additional))
    streams = [
        follow(f"{stacks[at].path}/events?nested_depth={n}") for at, n in ((0, 0), (0, 1), (0, 9), (1, 1))
    ]
    for stream in streams:
        assert stream.names(1) == ["caught-up"]
    for stack in stacks:
        world.event(stack, f"in-{stack.name}")
    world.event(stacks[0], "last")
    world.event(stacks[1], "last")
    assert streams[0].names(2) == ["in-s", "last"]
    assert streams[1].names(4) == ["in-s", "in-s-one", "last", "last"]
    assert streams[2].names(5) == ["in-s", "in-s-one", "in-s-one-two", "last", "last"]
    assert streams[3].names(3) == ["in-s-one", "in-s-one-two", "last"]


def test_filters_apply_to_past_and_to_new_events(world: World, project: str, follow: Follow) -> None:
    stack = world.stack(project, "s", status="IN_PROGRESS")
    for name in "ab":
        world.event(stack, name)
    stream = follow(f"{stack.path}/events?resource_name=b&resource_status=COMPLETE")
    assert stream.names(2) == ["b", "caught-up"]
    world.event(stack, "b", status="FAILED")
    world.event(stack, "c")
    world.event(stack, "b", reason="again")
    result = stream.message()
    assert result is not None
    assert result["resource_status_reason"] == "again"


def test_a_whole_project_is_followed_and_no_other(
    api: Client, world: World, project: str, follow: Follow
) -> None:
    mine, other = world.stack(project, "mine"), world.stack(world.project(), "other")
    for stack in (mine, other, mine):
        world.event(stack, f"of-{stack.name}")
    stream = follow(f"{root_of(project)}/events/stream")
    assert stream.names(3) == ["of-mine", "of-mine", "caught-up"]
    for stack in (other, mine):
        world.event(stack, f"new-of-{stack.name}")
    assert stream.names(1) == ["new-of-mine"]
    page = api.get(f"{root_of(project)}/events?after=0.0&limit=2")
    assert [event["resource_name"] for event in page["events"]] == ["of-mine", "of-mine"]
    assert page["more"]
    rest = api.get(f"{root_of(project)}/events?after={page['sequence']}")
    assert [event["resource_name"] for event in rest["events"]] == ["new-of-mine"]
    assert not rest["more"]
    assert api.get(f"{root_of(project)}/events?after={rest['sequence']}")["events"] == []
    assert api.get(f"{root_of(project)}/events?after=now")["events"] == []
    api.get(
        f"{other.path.replace(other.project.replace(' ', '%20'), project.replace(' ', '%20'))}/events", 404
    )


def test_a_page_of_a_project_looks_at_a_bounded_number_of_events(
    api: Client, world: World, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most events belonged to other projects: a page may be empty, and still has the position of the next
    page.
    """
    monkeypatch.setattr("orchestrator.store.events.stream.WALK", 3)
    begin = api.get(f"{root_of(project)}/events?after=now")["sequence"]
    mine, other = world.stack(project, "mine"), world.stack(world.project(), "other")
    for stack in (other, other, other, other, mine):
        world.event(stack, f"of-{stack.name}")
    page = api.get(f"{root_of(project)}/events?after={begin}")
    assert (page["events"], page["more"]) == ([], True)
    page = api.get(f"{root_of(project)}/events?after={page['sequence']}")
    assert [event["resource_name"] for event in page["events"]] == ["of-mine"]


def test_a_limit_of_streams_holds_and_a_closed_stream_makes_room(world: World, project: str) -> None:
    api, stack = world.client(max_event_streams=1), world.stack(project, "s", status="IN_PROGRESS")
    first = Stream(api, f"{stack.path}/events")
    response = api.http.get(f"/v1{stack.path}/events", headers=STREAM)
    assert (response.status_code, response.headers["Retry-After"]) == (503, "5")
    assert "1 streams of events of the project are open here" in response.get_json()["error"]["message"]
    first.close()
    Stream(api, f"{stack.path}/events").close()  # a stream that was never read is released as well
    Stream(api, f"{stack.path}/events").close()


def test_a_project_has_half_of_the_streams_and_delays_no_other_project(world: World, project: str) -> None:
    api, other = world.client(max_event_streams=4), world.project()
    own, foreign = (world.stack(name, "s", status="IN_PROGRESS") for name in (project, other))
    streams = [Stream(api, f"{own.path}/events") for _ in range(2)]
    refused = api.http.get(f"/v1{own.path}/events", headers=STREAM)
    assert refused.status_code == 503
    assert "2 streams of events of the project are open here" in refused.get_json()["error"]["message"]
    streams += [Stream(api, f"{foreign.path}/events") for _ in range(2)]
    full = api.http.get(f"/v1{world.stack(world.project(), 's').path}/events", headers=STREAM)
    assert "4 streams of events are open here" in full.get_json()["error"]["message"]
    for stream in streams:
        stream.close()


def test_a_slow_reader_misses_nothing(
    world: World, project: str, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.streaming.hub.MAX_QUEUED_EVENTS", 3)
    stack = world.stack(project, "s", status="IN_PROGRESS")
    stream = follow(f"{stack.path}/events")
    assert stream.names(1) == ["caught-up"]
    for number in range(10):
        world.event(stack, str(number))
    assert stream.names(10) == [str(number) for number in range(10)]


@pytest.mark.parametrize("given", ["x", "1", "1.2.3", "-1.0"])
def test_a_last_event_id_that_is_none_is_refused(api: Client, world: World, project: str, given: str) -> None:
    stack = world.stack(project, "s")
    response = api.http.get(f"/v1{stack.path}/events", headers={**STREAM, "Last-Event-ID": given})
    assert response.status_code == 400
    assert "Last-Event-ID" in response.get_json()["error"]["message"]


def test_a_process_that_ends_disconnects_its_followers(world: World, project: str, follow: Follow) -> None:
    stack = world.stack(project, "s", status="IN_PROGRESS")
    stream = follow(f"{stack.path}/events")
    assert stream.names(1) == ["caught-up"]
    hub.end_streams()
    try:
        assert stream.message() is None
    finally:
        hub._ending.clear()


def test_a_stream_ends_when_its_token_is_revoked(
    world: World, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.streaming.session.CHECK_SECONDS", 0.0)
    api, stack = world.client(auth="token"), world.stack(project, "s", status="IN_PROGRESS")
    token = create_token(world.database, project, "viewer")
    stream = Stream(api, f"{stack.path}/events", X_Auth_Token=token)
    assert stream.names(1) == ["caught-up"]
    world.event(stack, "before")
    assert stream.names(1) == ["before"]
    [row] = list_tokens(world.database, project)
    assert revoke_token(world.database, row.id)
    world.event(stack, "after")
    assert stream.message() is None
    stream.close()


def test_positions_are_in_the_order_of_writing() -> None:
    assert Position(2, 1) > Position(1, 9)
    assert str(Position(3, 4)) == "3.4"
