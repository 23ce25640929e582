"""Responses that grow with a stack are computed in slices, each in a turn; no turn is held in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest

from api.app import operations
from api.dependencies import Dependencies
from api.response.serialization import MAX_UNSTREAMED_BYTES
from api.routes import assemble
from api.streaming.event_stream import AT_ONCE
from orchestrator.operations.runtime import turns
from orchestrator.operations.runtime.turns import ALONE, Turn, Turns
from tests.integration.api_world import Client, Made, World, api, project, world
from tests.scenarios.world import World as Installation

__all__ = ["api", "project", "world"]  # fixtures

RESOURCES = 3_000
EVENTS = 6_000
SECONDS = 20.0
MAX_SLICE_BYTES = 2 * MAX_UNSTREAMED_BYTES
# Routes whose responses are larger than a slice for the stack of the test.
LARGE = {"events.index", "resources.index"}


@pytest.fixture
def stack(world: World, project: str) -> Made:
    made = world.stack(project, "large")
    with world.database.connect() as db:
        db.execute(
            """INSERT INTO resource (uuid, stack_id, name, type)
            SELECT gen_random_uuid(), %(stack)s, 'n' || g, 'Test::Plain'
            FROM generate_series(1, %(count)s) AS g""",
            {"stack": made.id, "count": RESOURCES},
        )
        db.execute(
            """INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason)
            SELECT %(stack)s, 'n' || g, 'Test::Plain', 'p', 'CREATE', 'COMPLETE', 'state changed'
            FROM generate_series(1, %(count)s) AS g""",
            {"stack": made.id, "count": EVENTS},
        )
    return made


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[Turns]:
    """The turns that are taken, by the process that gives them."""
    made: list[Turns] = []
    take = Turn.take

    def counted(turn: Turn, seconds: float) -> None:
        take(turn, seconds)
        made.append(turn.turns)

    monkeypatch.setattr(Turn, "take", counted)
    return made


def paths(api: Client, stack: Made) -> Iterator[tuple[str, str]]:
    """Yield the endpoint and path of every route that reads from a stack or its project."""
    values = {
        "project_id": stack.project,
        "stack_name": stack.name,
        "stack_id": str(stack.uuid),
        "resource_name": "n1",
    }
    for rule in api.http.application.url_map.iter_rules():
        if "GET" not in (rule.methods or ()) or "project_id" not in rule.arguments:
            continue
        path = rule.rule
        for name in rule.arguments:
            for form in ("", "path:", "int:"):
                path = path.replace(f"<{form}{name}>", quote(values.get(name, "1")))
        if "<" not in path and not path.endswith("/stream"):
            yield rule.endpoint, f"/v1{path}"


def test_every_long_response_is_computed_in_slices(api: Client, stack: Made, taken: list[Turns]) -> None:
    large = set[str]()
    for endpoint, path in paths(api, stack):
        taken.clear()
        response = api.http.get(path, headers={"Accept": "application/json"})
        slices = [len(part) for part in response.response]
        response.close()
        assert max(slices, default=0) <= MAX_SLICE_BYTES, (path, "is not streamed")
        if sum(slices) > MAX_SLICE_BYTES:
            large.add(endpoint)
            assert len(taken) >= sum(slices) // MAX_SLICE_BYTES, (path, "is not computed in turns")
    assert large >= LARGE


def hold_all(process: Turns, project: str) -> None:
    """Take and return all turns of a project: none of them is held."""
    for _ in range(ALONE):
        process.slots.acquire(project, SECONDS)
    for _ in range(ALONE):
        process.slots.release(project)


def test_a_list_holds_no_turn_between_its_slices(api: Client, stack: Made, taken: list[Turns]) -> None:
    response = api.http.get(f"/v1{stack.path}/events", buffered=False)
    slices = 0
    for _ in response.response:
        slices += 1
        hold_all(taken[-1], stack.project)
    response.close()
    assert slices > EVENTS // AT_ONCE


def test_a_stream_sends_past_events_in_slices_and_waits_without_a_turn(
    api: Client, stack: Made, taken: list[Turns]
) -> None:
    headers = {"Accept": "text/event-stream"}
    response = api.http.get(f"/v1{stack.path}/events?after=0.0", headers=headers, buffered=False)
    events, before = 0, len(taken)
    for part in response.response:
        number = part.count(b"data: ")
        assert number <= AT_ONCE
        events += number
        hold_all(taken[-1], stack.project)
        if b"caught-up" in part:
            break
    assert events == EVENTS + 1
    assert len(taken) - before >= EVENTS // AT_ONCE
    response.close()


def test_a_preview_of_a_large_group_is_computed_in_slices(
    new_database: Callable[[], str], taken: list[Turns], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "SLICE_SECONDS", 0.0)  # after each resource
    members = {"type": "OS::Heat::None"}
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 300, "resource_def": members}}
    template = {"heat_template_version": "2021-04-16", "resources": {"group": group}}
    installation = Installation(new_database())
    parts = (installation.database, installation.cipher, installation.types, operations(), list)
    client = assemble(Dependencies(installation.settings, *parts)).test_client()
    response = client.post("/v1/p1/stacks/preview", json={"stack_name": "s", "template": template})
    assert response.status_code == 200, response.get_json()
    assert len(response.get_json()["stack"]["resources"][0]) == 300
    assert len(taken) > 300
    installation.close()
