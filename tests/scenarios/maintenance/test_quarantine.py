"""Work that has hung its process twice is not executed until the next action of its stack."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask import request

from api.app import operations
from api.dependencies import Dependencies
from api.limits.hung_requests import digest
from api.routes import assemble
from orchestrator.operations.runtime.quarantine import Quarantine
from orchestrator.resources.registry import Registry
from orchestrator.store.connections.database import Database
from orchestrator.store.maintenance import quarantine
from tests.scenarios.fake_cloud import cloud_thing
from tests.scenarios.signals.bells import bell
from tests.scenarios.world import World

POSITION = "fullmatch (re/__init__.py, line 166)"


def hang(world: World, kind: str, id_: int, times: int = 2, *, certain: bool = True) -> None:
    """Record hangs, as the watchdog does; the next message reads them."""
    report = quarantine.Report("worker", "", [(kind, id_)], certain, POSITION)
    with world.database.connect() as db:
        for _ in range(times):
            quarantine.record(db, report)
    world.engine.quarantine.refresh_seconds = 0.0


def recorded(world: World) -> list[tuple[str, int]]:
    return [(row.kind, row.hangs) for row in world.rows("SELECT kind, hangs FROM quarantine ORDER BY kind")]


def node(world: World, label: str) -> int:
    [row] = world.rows("SELECT id FROM graph_node WHERE label = :label", label=label)
    id_: int = row.id
    return id_


@pytest.fixture
def world(postgres_url: str, cloud: Any) -> Iterator[World]:
    made = World(postgres_url, types=cloud.types())
    yield made
    made.close()


def test_a_request_is_rejected_for_an_hour(world: World) -> None:
    made = Dependencies(
        world.settings, world.database, world.cipher, Registry.of(), operations(), world.messages.extend
    )
    app = assemble(made)
    with app.test_request_context("/p1/stacks?limit=7"):
        id_ = digest(request)
    client = app.test_client()
    hang(world, "request", id_)
    answer = client.get("/v1/p1/stacks?limit=7")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "3600")
    assert f"2 times, in {POSITION}" in answer.json["error"]["message"]
    assert client.get("/v1/p1/stacks?limit=8").status_code == 200
    assert client.get("/v1/p2/stacks?limit=7").status_code == 200
    with world.database.borrow() as db:
        db.execute("UPDATE quarantine SET last_at = now() - interval '61 minutes'")
    assert assemble(made).test_client().get("/v1/p1/stacks?limit=7").status_code == 200
    assert recorded(world) == []


def test_a_resource_fails_by_name_and_an_update_releases_it(world: World) -> None:
    uuid = world.create("s", {"a": cloud_thing(), "b": cloud_thing()})
    world.deliver()  # the plan
    hang(world, "node", node(world, "a"))
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    [row] = world.rows("SELECT status_reason FROM resource WHERE name = 'a'")
    assert row.status_reason.startswith("WorkerHung: resources.a: Its processing hung a worker 2 times")
    assert POSITION in row.status_reason
    assert recorded(world) == [("node", 2)]
    world.update("s", {"a": cloud_thing(), "b": cloud_thing()})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert recorded(world) == []


def test_a_plan_fails_its_stack(world: World) -> None:
    uuid = world.create("s", {"a": cloud_thing()})
    [plan] = world.nodes(kind="plan")
    hang(world, "node", plan.id)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    [row] = world.rows("SELECT status_reason FROM stack")
    assert "hung a worker 2 times" in row.status_reason


def test_a_suspect_resource_is_executed(world: World) -> None:
    uuid = world.create("s", {"a": cloud_thing()})
    world.deliver()
    hang(world, "node", node(world, "a"), times=5, certain=False)
    assert recorded(world) == [("node", 1)]
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"


def test_signals_are_rejected_with_an_event(world: World) -> None:
    uuid = world.create("s", {"b": bell()})
    world.deliver_all()
    [row] = world.rows("SELECT id FROM resource WHERE name = 'b'")
    hang(world, "signals", row.id)
    world.signal("s", "b", {"by": "ada"})
    world.deliver_all()
    assert any("hung a worker 2 times" in reason for reason in world.event_reasons(uuid, "b"))
    assert world.rows("SELECT id FROM signal") == []


def test_suspect_work_is_alone(new_database: Callable[[], str]) -> None:
    database = Database(new_database())
    guard = Quarantine(database)
    with database.connect() as db:
        quarantine.record(db, quarantine.Report("worker", "", [("round", 1)], certain=True, position=""))
        db.execute(
            "INSERT INTO observation_group (id, project_id, region, service, kind, types)"
            " VALUES (1, 'p', 'r', 's', 'lists', '{}')"
        )
        guard.refresh(db)
    begun, done = threading.Event(), list[str]()

    def other() -> None:
        with guard.guarding("node", 7):
            begun.set()
            time.sleep(0.2)  # in which the suspect work must not begin
            done.append("other")

    thread = threading.Thread(target=other)
    thread.start()
    assert begun.wait(30)
    with guard.guarding("round", 1):
        done.append("suspect")
    thread.join()
    assert done == ["other", "suspect"]
    database.check_connection(durable=True).close()
    with database.connect() as db:
        assert quarantine.read(db) == {}  # it has completed
    database.engine.dispose()
