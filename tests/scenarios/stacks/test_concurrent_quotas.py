"""Every quota with 40 concurrent requests near the limit: exactly as many are accepted as fit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final, cast

import orjson
import pytest

from api.limits import rate_limits
from api.limits.rate_limits import RateLimits
from api.streaming.hub import EventHub, Scope
from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.errors import ActionInProgress, LimitExceeded
from orchestrator.operations.context import Body
from orchestrator.operations.events import webhooks
from orchestrator.operations.quotas import limits as quotas
from orchestrator.operations.quotas import room
from orchestrator.operations.quotas.limits import QUOTAS, CachedQuotas
from orchestrator.operations.reconcile.check import check_bulk
from orchestrator.operations.resource_context.large_values import reserve
from orchestrator.operations.snapshots import snapshots
from orchestrator.operations.software import api_requests
from orchestrator.operations.stacks import create_delete, update
from orchestrator.rate_errors import TooManyRequests, TooManyStreams
from orchestrator.security.caller import Caller
from orchestrator.store.access.quotas import set_maximum
from tests.scenarios.children.test_nested_stacks import URL, child_text, nested
from tests.scenarios.world import World, test_resource

REQUESTS: Final = 40
ROOM: Final = 5  # requests that fit
KB: Final = 1024
TEMPLATE: Final = {"heat_template_version": "2021-04-16", "resources": {"a": test_resource()}}
PER_REQUEST: Final = {"template_bytes"}  # the size of a single request

Request = Callable[[int], object]


@dataclass(frozen=True, slots=True)
class Case:
    """A quota, its value, and a request that takes a part of it, after `prepare`."""

    quota: str
    maximum: int
    prepare: Callable[[World], Request]
    accepted: int = ROOM


def body(**values: Any) -> Body:
    return Body(orjson.dumps(values))


def creates(world: World) -> Request:
    return lambda number: create_delete.create(
        world.context, body(stack_name=f"s{number}", template=TEMPLATE)
    )


def updates(world: World) -> Request:
    """Updates of one resource to two."""
    for number in range(REQUESTS):
        world.create(f"s{number}", {"a": test_resource()})
    world.deliver_all()
    template = {**TEMPLATE, "resources": {"a": test_resource(), "b": test_resource()}}
    rows = [world.stack_row(f"s{number}") for number in range(REQUESTS)]
    return lambda number: update.update(world.context, rows[number], body(template=template))


def takes_snapshot(world: World) -> Request:
    world.create("s", {"a": test_resource()})
    world.deliver_all()
    row = world.stack_row("s")
    return lambda _: snapshots.take(world.context, row, body())


def creates_config(world: World, kilobytes: int = 1) -> Request:
    return lambda _: api_requests.create_config(
        world.context, body(name="c", group="script", config="x" * kilobytes * KB)
    )


def creates_large_config(world: World) -> Request:
    return creates_config(world, 100)


def creates_large_stack(world: World) -> Request:
    """Stacks with a file of 100 KiB each."""
    template = {**TEMPLATE, "resources": {"a": test_resource({"get_file": "f"})}}
    return lambda number: create_delete.create(
        world.context,
        body(stack_name=f"s{number}", template=template, files={"f": f"{number}" + "x" * (100 * KB)}),
    )


def creates_deployment(world: World) -> Request:
    config = api_requests.create_config(world.context, body(name="c", group="script", config=""))
    return lambda _: api_requests.create_deployment(
        world.context, body(config_id=config["id"], server_id="00000000-0000-4000-8000-000000000001")
    )


def creates_webhook(world: World) -> Request:
    return lambda _: webhooks.create(world.context, body(url="https://receiver.example/"))


def creates_sink(world: World) -> Request:
    """Stacks whose environments name webhooks."""
    sink = {"type": "webhook", "target": "https://receiver.example/"}
    return lambda number: create_delete.create(
        world.context,
        body(stack_name=f"s{number}", template=TEMPLATE, environment={"event_sinks": [sink]}),
    )


def stores_value(world: World) -> Request:
    """Resources that store a value of 100 KiB."""
    world.create("s", {f"r{number}": test_resource() for number in range(REQUESTS)})
    world.deliver_all()
    ids = [row.id for row in world.resources()]

    def store(number: int) -> None:
        stack = SimpleNamespace(root_id=1, project_id="p1")
        visit = SimpleNamespace(stack=stack, resource=SimpleNamespace(id=ids[number]))
        with world.database.connect(hot=True) as db:
            value = {"value": "x" * (100 * KB)}
            reserve(db, world.settings, cast(ResourceVisit, visit), "attributes", value, {})

    return store


def opens_stream(world: World) -> Request:
    hub, limits = EventHub(world.database, 100), CachedQuotas(world.database, world.settings)
    return lambda _: hub.join(Scope("p1", 0), int(limits.limit("p1", "event_streams")))


def takes_token(world: World, *, signal: bool = False) -> Request:
    limits = RateLimits(world.settings, CachedQuotas(world.database, world.settings))
    return lambda _: limits.take({}, Caller("p1"), signal=signal)


def takes_signal_token(world: World) -> Request:
    return takes_token(world, signal=True)


CASES: Final = {
    "stacks": Case("stacks", ROOM, creates),
    "resources of creates": Case("resources", ROOM, creates),
    "resources of updates": Case("resources", REQUESTS + ROOM, updates),
    "snapshots of a stack": Case("snapshots_per_stack", 1, takes_snapshot, 1),
    "software configs": Case("software_configs", ROOM, creates_config),
    "software deployments": Case("software_deployments", ROOM, creates_deployment),
    "large software configs": Case("large_value_bytes", 750 * KB, creates_large_config),
    "large values": Case("large_value_bytes", 550 * KB, stores_value),
    "files": Case("stored_bytes", 550 * KB, creates_large_stack),
    "sizes of configs": Case("stored_bytes", 750 * KB, creates_large_config),
    "webhooks": Case("webhooks", ROOM, creates_webhook),
    "event sinks": Case("webhooks", ROOM, creates_sink),
    "event streams": Case("event_streams", ROOM, opens_stream),
    "requests": Case("requests_per_second", ROOM, takes_token),
    "signals": Case("signals_per_second", ROOM, takes_signal_token),
}


@pytest.fixture
def world(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A world whose clock of rates stands still."""
    monkeypatch.setattr(rate_limits, "time", SimpleNamespace(monotonic=lambda: 0.0))
    made = World(postgres_url, request_burst_seconds=1.0, webhook_allow_private=True)
    room.counts_of.cache_clear()
    yield made
    made.close()


def accepted(request: Request) -> int:
    """Return how many of 40 requests at the same time are accepted."""
    barrier = threading.Barrier(REQUESTS)

    def send(number: int) -> bool:
        barrier.wait()
        try:
            request(number)
        except (LimitExceeded, TooManyStreams, TooManyRequests, ActionInProgress):
            return False
        return True

    with ThreadPoolExecutor(REQUESTS) as threads:
        return sum(threads.map(send, range(REQUESTS)))


def test_every_quota_has_a_case() -> None:
    assert {case.quota for case in CASES.values()} | PER_REQUEST == set(QUOTAS)


@pytest.mark.parametrize("name", CASES)
def test_exactly_the_limit_is_accepted(world: World, name: str) -> None:
    case = CASES[name]
    request = case.prepare(world)
    with world.database.connect() as db:
        set_maximum(db, "p1", case.quota, case.maximum)
    assert accepted(request) == case.accepted


def test_a_request_takes_the_lock_near_the_limit_only() -> None:
    assert room.is_near(used=0, added=1, maximum=room.IN_PROGRESS)
    assert not room.is_near(used=0, added=1, maximum=room.IN_PROGRESS + 1)
    assert not room.is_near(used=989_999, added=1, maximum=1_000_000)
    assert room.is_near(used=990_000, added=1, maximum=1_000_000)
    assert not room.is_near(used=10**9, added=10**9, maximum=quotas.UNLIMITED)


def test_nested_stacks_do_not_exceed_the_quota_together(world: World) -> None:
    children = 12
    uuid = world.create("s", {f"c{n}": nested() for n in range(children)}, files={URL: child_text()})
    world.deliver()  # the plan; the messages of the children are left
    messages = list(world.messages)
    with world.database.connect() as db:
        set_maximum(db, "p1", "resources", children + ROOM * 2)
    barrier = threading.Barrier(len(messages))

    def visit(message: Any) -> None:
        barrier.wait()
        check_bulk(world.engine, [message.node_id], message.traversal)
        for durable in (True, False):  # of this thread
            world.database.check_connection(durable=durable).close()

    with ThreadPoolExecutor(len(messages)) as threads:
        list(threads.map(visit, messages))
    assert len(messages) == children
    [[number]] = world.rows("SELECT count(*) FROM stack WHERE owner_id IS NOT NULL")
    assert number == ROOM
    world.messages.clear()
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
