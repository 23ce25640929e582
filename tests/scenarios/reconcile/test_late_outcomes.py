"""A visit that ends when a newer traversal was planned already leaves the resource as that plan found it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import text

from orchestrator.errors import ProviderError, Superseded
from orchestrator.resources.base import Context
from orchestrator.store.nodes import repository
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.world import World


def overtaken(world: World, cloud: Cloud, fails: bool = False) -> Callable[[Context], None]:
    """While a thing is observed, its stack is rolled back, and the rollback is planned."""

    def act(_ctx: Context) -> None:
        del cloud.on["observe"]
        world.update("s", {"a": cloud_thing(value="1")})
        world.deliver_one(world.messages.pop())
        if fails:
            raise ProviderError("go away")

    return act


def as_planned(world: World) -> list[tuple[str, str, bool, str | None]]:
    query = """SELECT r.name, r.action || '_' || r.status AS state, r.deposed,
            d.body->>'deletion_policy' AS policy
        FROM resource r LEFT JOIN resource_definition d ON d.id = r.definition_id ORDER BY r.id"""
    return [tuple(row) for row in world.rows(query)]


@pytest.mark.parametrize("what", ["another", "the same", "a failure"])
def test_a_late_observation_does_not_overwrite_a_newer_plan(world: World, cloud: Cloud, what: str):
    uuid = world.create("s", {"a": cloud_thing(value="1")})
    world.deliver_all()
    cloud.on["observe"] = overtaken(world, cloud, fails=what == "a failure")
    expected = cloud_thing(value="2" if what == "another" else "1") | {"deletion_policy": "Retain"}
    world.update("s", {"a": expected}, converge=True)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert as_planned(world) == [("a", "CREATE_COMPLETE", False, None)]
    world.update("s", {"a": cloud_thing(value="1")})
    world.deliver_all()
    assert (cloud.made, list(cloud.things)) == ({"a": 1}, ["a-1"])
    assert world.rows("SELECT 1 FROM resource WHERE lease IS NOT NULL") == []


def test_a_thing_adopted_under_a_lost_lease_is_not_deleted_as_an_orphan(world: World, cloud: Cloud):
    cloud.things["theirs"] = "another's"
    uuid = world.create("s", {"a": cloud_thing() | {"external_id": "theirs"}})

    def lose(_ctx: Context) -> None:
        del cloud.on["observe"]
        with world.database.engine.begin() as connection:
            for table in ("graph_node", "resource"):
                connection.execute(
                    text(
                        f"UPDATE {table} SET lease = 1, leased_until = now() - interval '1 s' "
                        "WHERE lease IS NOT NULL"
                    )
                )

    cloud.on["observe"] = lose
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    world.audit_soon()
    world.sweep_once()
    assert list(cloud.things) == ["theirs"]


def test_a_visit_whose_node_is_gone_when_it_takes_over_lets_go_of_it(world: World, cloud: Cloud):
    world.create("s", {"a": cloud_thing()})
    world.deliver(1)
    db = world.database.check_connection(durable=True)
    [message] = world.messages
    repository.claim(db, [message.node_id], message.traversal, 7, 30.0)
    [visit] = repository.read_claimed(db, [message.node_id], 7)
    with world.database.engine.begin() as connection:
        connection.execute(text("DELETE FROM graph_node WHERE kind = 'update'"))
    with pytest.raises(Superseded):
        repository.read_for_adoption(db, visit)


def test_a_plan_does_not_wait_for_a_late_visit_to_nodes_of_older_traversals(world: World, cloud: Cloud):
    uuid = world.create("s", {"a": cloud_thing(), "b": cloud_thing(("a",))})
    world.deliver(1)
    with world.database.connect() as late, late.transaction():
        late.execute("SELECT 1 FROM graph_node WHERE label = 'b' FOR UPDATE")
        world.update("s", {"a": cloud_thing()})
        db = world.database.check_connection(durable=True)
        db.execute("SET lock_timeout = '2s'")
        world.deliver_all()
        assert world.state(uuid) == "UPDATE_COMPLETE"
        assert world.rows("SELECT label FROM graph_node WHERE traversal = 1") == [("b",)]
