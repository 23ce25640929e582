"""A thing made under a lost lease is the resource's own, or it goes; it is never left behind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from sqlalchemy import text

from orchestrator.operations.maintenance import orphans
from orchestrator.operations.maintenance.orphan_access import OrphanAccess
from orchestrator.resources.base import Context, Created, Observation, ResourceType
from tests.scenarios.world import World


class Cloud(ResourceType):
    """Things in a set; it can be asked by token."""

    name = "Test::Cloud"

    def __init__(self) -> None:
        self.things: dict[str, str] = {}  # physical id -> token

    def make(self, token: str) -> str:
        physical_id = f"thing-{len(self.things)}"
        self.things[physical_id] = token
        return physical_id

    def create(self, ctx: Context, props: Mapping[str, Any]) -> Created:
        return Created(self.make(ctx.token))

    def find(self, ctx: Context, token: str) -> str | None:
        return next((id_ for id_, made_for in self.things.items() if made_for == token), None)

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        return Observation(exists=physical_id in self.things)

    def delete(self, ctx: Context, physical_id: str) -> None:
        self.things.pop(physical_id, None)


def delete_orphans(world: World) -> int:
    db = world.database.check_connection(durable=True)
    return orphans.delete_orphans(db, OrphanAccess(world.types))


@pytest.fixture
def cloud() -> Cloud:
    return Cloud()


@pytest.fixture
def world(postgres_url: str, cloud: Cloud):
    made = World(postgres_url, types={cloud.name: cloud})
    made.create("s", {"a": {"type": cloud.name}})
    made.deliver_all()
    yield made
    made.close()


def record(world: World, physical_id: str) -> None:
    with world.database.engine.begin() as connection:
        connection.execute(
            text("""INSERT INTO orphan (stack_id, resource_id, token, type, physical_id)
                SELECT stack_id, id, uuid || '-1', type, :p FROM resource"""),
            {"p": physical_id},
        )


def open_strays(world: World) -> int:
    return world.rows("SELECT count(*) FROM orphan WHERE handled_at IS NULL")[0][0]


def test_a_second_thing_is_removed_and_the_resources_own_stays(world: World, cloud: Cloud):
    [(own,)] = world.rows("SELECT physical_id FROM resource")
    record(world, cloud.make("late"))
    record(world, own)
    assert delete_orphans(world) == 2
    assert set(cloud.things) == {own}
    assert open_strays(world) == 0


def test_a_user_of_a_resource_under_creation_is_left_to_its_holder(world: World, cloud: Cloud):
    late = cloud.make("late")
    record(world, late)
    with world.database.engine.begin() as connection:
        connection.execute(
            text("UPDATE resource SET physical_id = NULL, op = 'CREATE', op_started_at = now()")
        )
    assert delete_orphans(world) == 0
    assert late in cloud.things
    assert open_strays(world) == 1


def test_a_user_without_a_resource_is_deleted(world: World, cloud: Cloud):
    late = cloud.make("late")
    record(world, late)
    world.delete("s")
    world.deliver_all()
    delete_orphans(world)
    assert cloud.things == {}
    assert open_strays(world) == 0
