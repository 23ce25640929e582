"""A create without an answer: its object is searched at once and every few seconds. Of several objects one is
kept, and the others are deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar

import pytest

from orchestrator.errors import AwaitingBudget, ProviderBusy, ProviderFailed, ProviderSilent
from orchestrator.operations.maintenance import orphan_searches, orphans
from orchestrator.operations.maintenance.orphan_access import OrphanAccess
from orchestrator.operations.runtime import lease_keeper
from orchestrator.resources.base import Context, Created, Value
from tests.scenarios.fake_cloud import Cloud, Crash, Thing, cloud_thing
from tests.scenarios.world import World
from tests.unit.resources.openstack.double_cloud import DoubleCloud

FLIGHT_SECONDS = 30.0
PAUSES = """SELECT extract(epoch FROM due_at - clock_timestamp()) AS seconds FROM graph_node
    WHERE state = 'waiting'"""


class Port(Thing):
    """A thing that can exist several times."""

    name = "Cloud::Port"
    flight_seconds: ClassVar[float] = FLIGHT_SECONDS
    newest_first = False

    def __init__(self, cloud: Cloud) -> None:
        super().__init__(cloud)
        self.created_with: list[Context] = []

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        self.created_with.append(ctx)
        return super().create(ctx, props)

    def find(self, ctx: Context, token: str) -> Sequence[str]:
        self.cloud.call("find", ctx)
        found = [thing for thing, made_with in self.cloud.things.items() if made_with == token]
        return found[::-1] if self.newest_first else found


class ReservedPort(Port):
    """A port of a service with a budget."""

    name = "Cloud::ReservedPort"
    service = "nova"

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        self.cloud.calls.append("reserved" if ctx.calls.reservation else "not reserved")
        return super().create(ctx, props)


class BudgetedCloud(DoubleCloud):
    """A cloud whose services have budgets; the next reservation fails with `error`."""

    error: Exception | None = None

    def __init__(self, world: World, things: Cloud) -> None:
        super().__init__()
        self._things = things
        world.engine.keystone.cloud = lambda *_: self.cloud  # type: ignore[method-assign]

    @contextmanager
    def reserved(self, service: str, *_: object) -> Iterator[object]:
        self._things.calls.append(f"reserve {service}")
        error, self.error = self.error, None
        if error is not None:
            raise error
        yield self


@pytest.fixture
def port(cloud: Cloud) -> Port:
    return Port(cloud)


@pytest.fixture
def world(postgres_url: str, cloud: Cloud, port: Port) -> Iterator[World]:
    ports = {port.name: port, ReservedPort.name: ReservedPort(cloud)}
    world = World(postgres_url, types=cloud.types() | ports)
    yield world
    world.close()


def silent(cloud: Cloud, verb: str, *, duplicates: int = 0, error: BaseException | None = None) -> None:
    """Let a create go unanswered, with so many further objects."""

    def fail(ctx: Context) -> None:
        del cloud.on[verb]
        for _ in range(duplicates):
            cloud.make(ctx)
        raise error or ProviderSilent("no answer")

    cloud.on[verb] = fail


def delete_orphans(world: World) -> int:
    """Delete the orphans long after the request without an answer (adr/0023)."""
    world.database.check_connection(durable=True).execute("DELETE FROM circuit_breaker")
    return orphans.delete_orphans(world.database.check_connection(durable=True), OrphanAccess(world.types))


def search_orphans(world: World) -> int:
    """Carry out all searches now."""
    db = world.database.check_connection(durable=True)
    db.execute("UPDATE orphan SET search_due_at = clock_timestamp() WHERE search_until IS NOT NULL")
    return orphan_searches.search_orphans(db, OrphanAccess(world.types))


def port_() -> dict[str, object]:
    return cloud_thing(type=Port.name)


@pytest.mark.parametrize(
    "error", [ProviderSilent("no answer"), ConnectionError("reset"), TimeoutError("late")]
)
def test_the_object_of_a_lost_answer_is_found_at_once(world: World, cloud: Cloud, error: Exception) -> None:
    silent(cloud, "created", error=error)
    uuid = world.create("s", {"a": port_()})
    while world.messages:
        world.deliver(1)
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert cloud.calls == ["create a", "find a", "observe a"]


def test_a_create_without_a_place_is_begun_later(world: World, cloud: Cloud) -> None:
    BudgetedCloud(world, cloud).error = AwaitingBudget("nova", 1.0)
    uuid = world.create("s", {"a": cloud_thing(type=ReservedPort.name)})
    world.deliver(10)
    [row] = world.rows("SELECT op, action, attempt FROM resource")
    assert (row.op, row.action, row.attempt) == (None, "INIT", 0)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert cloud.calls == ["reserve nova", "reserve nova", "reserved", "create a", "observe a"]


def test_an_object_whose_second_create_finds_no_place_is_created_later(world: World, cloud: Cloud) -> None:
    budgets = BudgetedCloud(world, cloud)
    uuid = world.create("s", {"a": cloud_thing(type=ReservedPort.name, errors=1)})
    while world.messages:
        world.deliver(1)
    budgets.error = AwaitingBudget("nova", 1.0)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert list(cloud.things) == [world.resource("a").physical_id]
    assert cloud.made == {"a": 2}


def test_a_reservation_is_made_for_the_request_to_come(world: World, cloud: Cloud) -> None:
    BudgetedCloud(world, cloud)
    uuid = world.create("s", {"a": cloud_thing(type=ReservedPort.name)})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    [row] = world.rows("SELECT attempt FROM resource")
    assert (row.attempt, list(cloud.things.values())) == (1, [f"{world.resource('a').uuid}-1"])


def test_an_object_that_arrives_late_is_searched_every_few_seconds(world: World, cloud: Cloud) -> None:
    silent(cloud, "create")
    uuid = world.create("s", {"a": port_()})
    for _ in range(3):
        while world.messages:
            world.deliver(1)
        [pause] = world.rows(PAUSES)
        assert 0 < pause.seconds <= 3.0
        world.sweep_once()
    [row] = world.resources("a")
    cloud.things["a-late"] = f"{row.uuid}-{row.attempt}"
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert cloud.made == {}
    assert world.resource("a").physical_id == "a-late"


def test_a_create_that_was_never_carried_out_is_repeated_after_its_flight(world: World, cloud: Cloud) -> None:
    silent(cloud, "create")
    uuid = world.create("s", {"a": port_()})
    world.retry(3)
    assert cloud.calls.count("create a") == 1
    world.elapse(FLIGHT_SECONDS + 1, "lost lease")
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert cloud.calls.count("create a") == 2


def test_an_object_that_arrives_after_the_repetition_is_deleted(world: World, cloud: Cloud) -> None:
    silent(cloud, "create")
    uuid = world.create("s", {"a": port_()})
    world.retry(3)
    world.elapse(FLIGHT_SECONDS + 1, "lost lease")
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    [kept], [row] = cloud.things, world.resources("a")
    assert search_orphans(world) == 0
    cloud.things["a-late"] = f"{row.uuid}-{row.attempt}"
    assert search_orphans(world) == 1
    assert search_orphans(world) == 0
    assert delete_orphans(world) == 1
    assert list(cloud.things) == [kept]


def test_an_object_that_arrives_after_its_stack_was_deleted_is_deleted(world: World, cloud: Cloud) -> None:
    silent(cloud, "create")
    uuid = world.create("s", {"a": port_()})
    world.deliver(10)
    [row] = world.resources("a")
    world.delete("s")
    world.retry(3)
    world.elapse(FLIGHT_SECONDS + 1, "lost lease")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    cloud.things["a-late"] = f"{row.uuid}-{row.attempt}"
    assert search_orphans(world) == 1
    assert delete_orphans(world) == 1
    assert cloud.things == {}


def test_a_search_ends_and_one_that_fails_is_repeated(world: World, cloud: Cloud) -> None:
    silent(cloud, "create")
    world.create("s", {"a": port_()})
    world.retry(3)
    world.elapse(FLIGHT_SECONDS + 1, "lost lease")
    world.deliver_all()
    db = world.database.check_connection(durable=True)
    db.execute("UPDATE orphan SET search_until = clock_timestamp()")
    silent(cloud, "find", error=ProviderBusy("later"))
    assert search_orphans(world) == 0
    [after_failure] = world.rows("SELECT handled_at, search_due_at > clock_timestamp() AS waits FROM orphan")
    assert (after_failure.handled_at, after_failure.waits) == (None, True)
    assert search_orphans(world) == 0
    assert [row.handled_at is None for row in world.rows("SELECT handled_at FROM orphan")] == [False]


def test_the_flight_of_a_dead_worker_starts_with_its_last_request(world: World, cloud: Cloud) -> None:
    """Its lease is renewed at every third. A request follows a durable statement at once."""
    silent(cloud, "create", error=Crash())
    world.create("s", {"a": port_()})
    with pytest.raises(Crash):
        world.deliver(10)
    seconds = lease_keeper.LEASE_SECONDS
    for table in ("graph_node", "resource"):
        world.database.check_connection(durable=True).execute(
            f"UPDATE {table} SET leased_until = clock_timestamp() WHERE lease IS NOT NULL"
        )
    world.sweep_once()
    world.deliver(10)
    [row] = world.rows("SELECT extract(epoch FROM clock_timestamp() - lost_at) AS seconds FROM resource")
    assert seconds * 2 / 3 <= row.seconds < seconds


def test_a_create_that_ended_with_an_internal_error_is_repeated_at_once(world: World, cloud: Cloud) -> None:
    silent(cloud, "create", error=ProviderFailed("500"))
    uuid = world.create("s", {"a": port_()})
    world.retry(3)
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert cloud.calls.count("create a") == 2


def test_an_object_created_in_spite_of_an_internal_error_is_found(world: World, cloud: Cloud) -> None:
    silent(cloud, "created", error=ProviderFailed("500"))
    silent(cloud, "find", error=ProviderBusy("later"))
    uuid = world.create("s", {"a": port_()})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert cloud.made == {"a": 1}


def test_an_error_of_the_search_hides_no_lost_answer(world: World, cloud: Cloud) -> None:
    silent(cloud, "created")
    silent(cloud, "find", error=ProviderBusy("later"))
    uuid = world.create("s", {"a": port_()})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert cloud.made == {"a": 1}


def test_of_several_objects_one_is_kept(world: World, cloud: Cloud) -> None:
    silent(cloud, "created", duplicates=2)
    uuid = world.create("s", {"a": port_()})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert world.resource("a").physical_id == "a-1"
    assert delete_orphans(world) == 2
    assert list(cloud.things) == ["a-1"]


def test_a_delete_finds_and_deletes_all_objects(world: World, cloud: Cloud) -> None:
    silent(cloud, "created", duplicates=1, error=Crash())
    uuid = world.create("s", {"a": port_()})
    with pytest.raises(Crash):
        world.deliver(10)
    world.forget_leases()
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    delete_orphans(world)
    assert cloud.things == {}


def test_a_death_after_the_choice_leaves_one_object(
    world: World, cloud: Cloud, port: Port, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next worker gets the objects in another order, while the duplicate is being deleted."""
    silent(cloud, "created", duplicates=1, error=Crash())
    uuid = world.create("s", {"a": port_()})
    with pytest.raises(Crash):
        world.deliver(10)
    world.forget_leases()
    silent(cloud, "observe", error=Crash())
    world.sweep_once()
    with pytest.raises(Crash):
        world.deliver(10)
    monkeypatch.setattr(Port, "delete", lambda self, ctx, _: self.cloud.call("delete", ctx))
    assert delete_orphans(world) == 0
    port.newest_first = True
    world.forget_leases()
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert world.resource("a").physical_id == "a-1"
    assert "delete a-1" not in cloud.calls


def test_the_duplicate_of_a_lost_lease_is_not_recorded(world: World, cloud: Cloud) -> None:
    silent(cloud, "created", duplicates=1, error=Crash())
    world.create("s", {"a": port_()})
    with pytest.raises(Crash):
        world.deliver(10)
    world.forget_leases()

    def lose(_: Context) -> None:
        del cloud.on["find"]
        world.database.check_connection(durable=True).execute("UPDATE resource SET lease = lease + 1")

    cloud.on["find"] = lose
    world.sweep_once()
    while world.messages and "find a" not in cloud.calls:
        world.deliver(1)
    assert world.rows("SELECT 1 FROM orphan") == []


def test_the_delete_of_an_orphan_is_requested_once(
    world: World, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent(cloud, "created", duplicates=1)
    world.create("s", {"a": port_()})
    world.deliver_all()
    kept = dict(cloud.things)
    cloud.calls.clear()
    monkeypatch.setattr(Port, "delete", lambda self, ctx, _: self.cloud.call("delete", ctx))
    assert [delete_orphans(world) for _ in range(3)] == [0, 0, 0]
    assert cloud.calls == ["delete a-2", "observe a-2", "observe a-2", "observe a-2"]
    cloud.things = {"a-1": kept["a-1"]}
    assert delete_orphans(world) == 1


def test_a_busy_provider_is_asked_again_when_it_says(world: World, cloud: Cloud) -> None:
    silent(cloud, "create", error=ProviderBusy("too many requests", retry_after=120.0))
    world.create("s", {"a": port_()})
    while world.messages:
        world.deliver(1)
    [row] = world.rows(PAUSES)
    assert 100.0 < row.seconds < 122.0
