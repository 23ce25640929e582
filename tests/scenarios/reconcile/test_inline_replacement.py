"""A resource of a local type is replaced in the visit that decides it (operations/adr/0004)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from sqlalchemy import text

from orchestrator.errors import ProviderBusy
from orchestrator.operations.reconcile.check import check_local
from orchestrator.resources.base import Context, Created, ResourceType
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.reconcile.test_fencing import Interrupted
from tests.scenarios.simulator import Simulator
from tests.scenarios.world import World, test_resource


class Fixed(Interrupted):
    """As Interrupted, but cannot be changed."""

    change = ResourceType.change


class Stubborn(Fixed):
    """Cannot be made at first."""

    name = "Test::Stubborn"

    def create(self, ctx: Context, props: Mapping[str, Any]) -> Created:
        raise ProviderBusy("later")


@pytest.fixture
def kind() -> Interrupted:
    return Fixed()


@pytest.fixture
def world(postgres_url: str, kind: Interrupted, cloud: Cloud) -> Iterator[World]:
    made = World(postgres_url, types={kind.name: kind, "Test::Stubborn": Stubborn(), **cloud.types()})
    yield made
    made.close()


def single_resource(resource_type: Interrupted, value: str, **options: Any) -> dict[str, Any]:
    """A resource that another value replaces."""
    return {"type": resource_type.name, "properties": {"value": value}, **options}


def about_to_replace(world: World, resource_type: Interrupted, **other_items: Any) -> str:
    """Make a and b, which stands on it, and ask for another a; return the stack's uuid, the plan being
    made.
    """
    b = single_resource(resource_type, "b", depends_on="a")
    uuid = world.create("s", {"a": single_resource(resource_type, "1"), "b": b})
    world.deliver_all()
    world.update("s", {"a": single_resource(resource_type, "2"), "b": b, **other_items})
    world.deliver(1)
    resource_type.created = 0
    return uuid


def rows(world: World, name: str = "a") -> list[tuple[Any, ...]]:
    query = """SELECT action, status, deposed, physical_id IS NOT NULL FROM resource WHERE name = :n
        ORDER BY id"""
    return [tuple(row) for row in world.rows(query, n=name)]


THERE = ("CREATE", "COMPLETE", False, True)
LEFT = ("CREATE", "COMPLETE", True, True)
NOT_BEGUN = ("INIT", "COMPLETE", False, False)


def test_a_single_visit_deposes_the_old_resource_and_creates_the_replacement(world, kind):
    uuid = about_to_replace(world, kind)
    reported = len(world.events(uuid))
    before = world.rows("SELECT id, uuid FROM resource WHERE name = 'a'")[0]
    world.deliver(1)
    assert rows(world) == [LEFT, THERE]
    old, new = world.rows("SELECT * FROM resource WHERE name = 'a' ORDER BY id")
    assert (old.id, old.replaced_by, new.replaces, old.lease, new.lease) == (
        before.id,
        new.id,
        old.id,
        None,
        None,
    )
    assert (new.attempt, new.properties, new.updated_at) == (1, {"value": "2"}, None)
    assert (new.observed, new.observed_at is not None, new.op) == ("ready", True, None)
    [node] = world.rows("SELECT * FROM graph_node WHERE label = 'a'")
    assert (node.state, node.observed_ready, node.resource_id) == ("ready", True, new.id)
    assert world.rows("SELECT state, dirty FROM graph_node WHERE label = 'b'") == [("queued", True)]
    assert [message.label for message in world.messages] == ["b"]
    events = ["UPDATE_IN_PROGRESS", "UPDATE_COMPLETE", "CREATE_IN_PROGRESS", "CREATE_COMPLETE"]
    assert world.events(uuid)[reported:] == [f"a {event}" for event in events]
    assert kind.created == 1
    [b] = world.rows("SELECT definition_id, built_digest FROM resource WHERE name = 'a' AND NOT deposed")
    [definition] = world.rows(
        "SELECT id, digest FROM resource_definition WHERE name = 'a' AND valid_to IS NULL"
    )
    assert tuple(b) == tuple(definition)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert rows(world) == [THERE]


def test_several_concurrent_replacements_keep_their_own_data(world, kind):
    """As for tasks that a worker reads together: a single statement."""
    names = "abcde"
    uuid = world.create("s", {name: single_resource(kind, f"{name}1") for name in names})
    world.deliver_all()
    old = dict(world.rows("SELECT name, physical_id FROM resource"))
    world.update("s", {name: single_resource(kind, f"{name}2") for name in names})
    world.deliver(1)
    reported = len(world.events(uuid))
    rings, world.messages = world.messages, []
    ids = [message.node_id for message in rings]
    world.messages += check_local(world.engine, ids, rings[0].traversal)
    result = world.rows("SELECT * FROM resource WHERE NOT deposed ORDER BY name")
    assert [(row.name, row.properties) for row in result] == [(n, {"value": f"{n}2"}) for n in names]
    for row in result:
        assert row.physical_id != old[row.name]
        [former] = world.rows("SELECT name, replaced_by FROM resource WHERE id = :id", id=row.replaces)
        assert tuple(former) == (row.name, row.id)
        events = world.rows(
            "SELECT action, status, physical_id FROM event WHERE resource_name = :n ORDER BY id DESC LIMIT 4",
            n=row.name,
        )
        assert [tuple(event) for event in reversed(events)] == [
            ("UPDATE", "IN_PROGRESS", old[row.name]),
            ("UPDATE", "COMPLETE", old[row.name]),
            ("CREATE", "IN_PROGRESS", row.physical_id),
            ("CREATE", "COMPLETE", row.physical_id),
        ]
    assert len(world.events(uuid)) == reported + 4 * len(names)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert len(world.rows("SELECT 1 FROM resource")) == len(names)


# The fences of adr/0001, each taken between the look and the write.


def test_a_newer_update_finds_the_old_resource_unchanged(world, kind):
    uuid = about_to_replace(world, kind)
    b = single_resource(kind, "b", depends_on="a")
    kind.meanwhile = lambda: world.update("s", {"a": single_resource(kind, "1"), "b": b})
    world.deliver(1)
    assert rows(world) == [THERE]
    assert world.rows("SELECT state FROM graph_node WHERE label = 'a' AND traversal = 2") == [("dropped",)]
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert rows(world) == [THERE]
    assert "a UPDATE_IN_PROGRESS" not in world.events(uuid)


def test_nothing_is_replaced_in_a_stack_that_has_failed(world, kind):
    uuid = about_to_replace(world, kind, z=test_resource(fail=True))
    a, z = sorted(world.messages, key=lambda message: message.label)
    world.messages.clear()
    kind.meanwhile = lambda: world.deliver_one(z)
    world.deliver_one(a)
    assert world.state(uuid) == "UPDATE_FAILED"
    assert rows(world) == [THERE]
    assert world.events(uuid)[-1] == "s UPDATE_FAILED"


def test_only_the_first_of_two_concurrent_visits_replaces(world, kind):
    uuid = about_to_replace(world, kind)
    [message] = world.messages
    world.messages.clear()
    kind.meanwhile = lambda: world.deliver_one(message)
    world.deliver_one(message)
    assert kind.created == 2
    assert rows(world) == [LEFT, THERE]
    assert [message.label for message in world.messages] == ["b"]
    assert world.events(uuid).count("a CREATE_COMPLETE") == 2
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"


def test_a_resource_under_operation_is_not_replaced(world, kind):
    def hold() -> None:
        with world.database.engine.begin() as connection:
            connection.execute(
                text("UPDATE resource SET lease = 1, leased_until = now() + interval '1 h' WHERE name = 'a'")
            )

    uuid = about_to_replace(world, kind)
    kind.meanwhile = hold
    world.deliver(1)
    assert rows(world) == [THERE]
    world.forget_leases()
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert rows(world) == [THERE]


def test_a_failed_stack_creates_no_replacement_for_an_open_operation(world, kind):
    """An open operation is continued even then, but no new resource is created any more."""
    uuid = world.create("s", {"a": {"type": "Test::Stubborn"}})
    world.deliver(2)
    assert world.rows("SELECT op, physical_id FROM resource") == [("CREATE", None)]
    world.update("s", {"a": single_resource(kind, "1"), "z": test_resource(fail=True)})
    world.deliver(1)
    a, z = sorted(world.messages, key=lambda message: message.label)
    world.messages.clear()
    world.deliver_one(z)
    world.deliver_one(a)
    world.deliver_all()
    assert kind.created == 0
    assert world.state(uuid) == "UPDATE_FAILED"


# Replacements that need a separate visit.


def visits_of_its_own(world: World, uuid: str) -> list[str]:
    """Deliver a visit to a, which must mark the old resource and begin nothing; return the events at the
    end.
    """
    reported = len(world.events(uuid))
    world.deliver(1)
    assert rows(world)[1:] == [NOT_BEGUN]
    world.deliver_all()
    return [event for event in world.events(uuid)[reported:] if event.startswith("a ")]


REPLACED = ["a UPDATE_IN_PROGRESS", "a UPDATE_COMPLETE", "a CREATE_IN_PROGRESS", "a CREATE_COMPLETE"]
REMOVED = ["a DELETE_IN_PROGRESS", "a DELETE_COMPLETE"]


@pytest.mark.parametrize(
    ("more", "told", "state"),
    [
        ({"wait_secs": 0.001}, REPLACED + REMOVED, "UPDATE_COMPLETE"),
        ({"fail": True}, [*REPLACED[:3], "a CREATE_FAILED"], "UPDATE_FAILED"),
    ],
)
def test_slow_or_failing_replacements_are_created_by_a_separate_visit(world, more, told, state):
    uuid = world.create("s", {"a": test_resource(update_replace_value="1")})
    world.deliver_all()
    world.update("s", {"a": test_resource(update_replace_value="2", **more)})
    world.deliver(1)
    assert visits_of_its_own(world, uuid) == told
    assert world.state(uuid) == state


def test_an_external_replacement_is_created_by_a_separate_visit(world, cloud):
    uuid = world.create("s", {"a": test_resource()})
    world.deliver_all()
    world.update("s", {"a": cloud_thing()})
    world.deliver(1)
    [message] = world.messages
    message = type(message)(
        message.node_id, message.traversal, "check", message.label, message.root
    )  # as for a local type
    world.messages = [message]
    assert visits_of_its_own(world, uuid) == [*REPLACED[2:], *REMOVED]
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert cloud.made == {"a": 1}


def test_a_replacement_with_a_hook_is_created_by_a_separate_visit(world):
    environment = {"resource_registry": {"resources": {"a": {"hooks": ["pre-update", "post-update"]}}}}
    uuid = world.create("s", {"a": test_resource(update_replace_value="1")})
    world.deliver_all()
    world.update("s", {"a": test_resource(update_replace_value="2")}, environment=environment)
    world.deliver(2)
    assert world.paused("s") == [("a", "pre-update")]
    world.clear("s", "a", "pre-update")
    assert "a CREATE_COMPLETE" in visits_of_its_own(world, uuid)
    assert world.state(uuid) == "UPDATE_COMPLETE"


def test_a_resource_with_a_new_type_has_no_update_event(world, kind):
    uuid = world.create("s", {"a": test_resource()})
    world.deliver_all()
    reported = len(world.events(uuid))
    world.update("s", {"a": single_resource(kind, "1")})
    world.deliver(2)
    assert rows(world) == [LEFT, THERE]
    assert world.rows("SELECT type FROM resource WHERE NOT deposed") == [(kind.name,)]
    world.deliver_all()
    events = [event for event in world.events(uuid)[reported:] if event.startswith("a ")]
    assert events == [*REPLACED[2:], *REMOVED]


def test_secrets_of_the_replacement_are_encrypted(world):
    """The value comes from a hidden parameter."""
    hidden = {"p": {"type": "string", "hidden": True, "default": "open sesame"}}
    value = {"get_param": "p"}
    uuid = world.create("s", {"a": test_resource(value, update_replace_value="1")}, parameters=hidden)
    world.deliver_all()
    world.update("s", {"a": test_resource(value, update_replace_value="2")}, parameters=hidden)
    world.deliver(2)
    [row] = world.rows("SELECT * FROM resource WHERE NOT deposed")
    assert (row.properties, row.attributes, row.data, row.sealed is not None) == (None, None, None, True)
    assert world.rows("SELECT 1 FROM event WHERE properties::text LIKE '%sesame%'") == []
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"


# A worker dies at any moment of it.

CHAIN = {"a": (), "b": ("a",), "c": ("a", "b")}


def chain(number: str) -> dict[str, Any]:
    return {
        name: test_resource(number, requires=requires, update_replace_value=number)
        for name, requires in CHAIN.items()
    }


@pytest.fixture(scope="module")
def simulator(new_database: Callable[[], str]) -> Iterator[Simulator]:
    made = Simulator(new_database())
    yield made
    made.close()


def replace_all(world: Simulator, crash_at: int | None) -> None:
    """Replace everything; with a death at any moment. Each resource has its events once, and in order."""
    world.reset(1)
    uuid = world.create("s", chain("1"))
    world.rest()
    world.moments, world.crash_at = 0, crash_at
    reported = len(world.events(uuid))
    world.update("s", chain("2"))
    world.rest()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    result = world.rows("SELECT name, action, status, deposed, properties ->> 'value' AS v FROM resource")
    assert sorted(map(tuple, result)) == [(name, "CREATE", "COMPLETE", False, "2") for name in CHAIN]
    events = world.events(uuid)[reported:]
    for name in CHAIN:
        mine = [event for event in events if event.startswith(f"{name} ")]
        assert mine == [event.replace("a ", f"{name} ", 1) for event in REPLACED + REMOVED]
    made = [events.index(f"{name} CREATE_COMPLETE") for name in CHAIN]
    gone = [events.index(f"{name} DELETE_IN_PROGRESS") for name in reversed(CHAIN)]
    assert [*made, *gone] == sorted([*made, *gone])


def test_a_worker_that_dies_at_any_moment_of_a_replacement_is_not_missed(simulator):
    replace_all(simulator, None)
    moments = simulator.moments
    assert moments > 20
    for moment in range(1, moments + 1):
        replace_all(simulator, moment)
        assert simulator.crashes == 1, moment
