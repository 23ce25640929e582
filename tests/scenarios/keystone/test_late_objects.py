"""Objects that arrive after the delete of their stack are reached with its credential, which then goes."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import pytest

from orchestrator.operations.keystone.delegated_credentials import cloud_of_stack
from orchestrator.operations.maintenance import orphan_searches, orphans
from orchestrator.operations.maintenance.orphan_access import OrphanAccess
from tests.plugins.stand_in_keystone import StandIn, identity  # noqa: F401 - a fixture
from tests.scenarios.keystone.credential_world import (  # noqa: F401 - fixtures
    PROJECT,
    Lost,
    installation,
    keystone,
    later,
    sign_in,
    states,
    tidy,
    world,
)
from tests.scenarios.world import World

METHODS = ("trusts", "application_credential")
HOURS_30 = 108_000.0


@pytest.fixture(autouse=True)
def _no_objects() -> None:
    Lost.objects.clear()
    Lost.tokens.clear()


def deleted(world: World) -> None:
    """Create a stack whose create request has no answer, and delete it before the request arrives."""
    uuid = world.create("mine", {"one": {"type": "Test::Lost"}})
    world.retry(2)
    world.delete("mine")
    world.retry(6)
    assert world.state(uuid) == "DELETE_COMPLETE"


def seek(world: World) -> None:
    """Search for late objects and delete them, as the sweep does, but now."""
    db = world.database.check_connection(durable=True)
    db.execute("UPDATE orphan SET search_due_at = clock_timestamp() WHERE search_until IS NOT NULL")
    db.execute("DELETE FROM circuit_breaker")

    def cloud(root_id: int) -> object:
        return cloud_of_stack(lambda: nullcontext(db), world.cipher, world.settings, root_id)

    access = OrphanAccess(world.types, world.settings, cloud=cloud)
    orphan_searches.search_orphans(db, access)
    orphans.delete_orphans(db, access)


def change(world: World, statement: str) -> None:
    world.database.check_connection(durable=True).execute(statement)


def grants(keystone: StandIn) -> int:
    return len(keystone.trusts) + len(keystone.application_credentials)


@pytest.mark.parametrize("method", METHODS)
def test_the_credential_of_a_deleted_stack_serves_the_searches_and_goes_with_the_last(
    installation: Callable[..., World], keystone: StandIn, method: str
) -> None:
    world = installation(deferred_auth_method=method)
    deleted(world)
    assert tidy(world) == 0
    assert grants(keystone) == 1
    seek(world)
    assert Lost.requested
    Lost.arrive()
    seek(world)
    assert not Lost.objects
    change(world, "UPDATE orphan SET search_until = now() WHERE search_until IS NOT NULL")
    seek(world)
    later(world)
    assert tidy(world) == 1
    assert grants(keystone) == 0
    assert states(world) == []


def test_searches_use_the_credential_that_the_stack_held_last(world: World, keystone: StandIn) -> None:
    uuid = world.create("mine", {"one": {"type": "Test::Lost"}})
    world.retry(2)
    sign_in(world, keystone, "bob")
    world.update("mine", {"one": {"type": "Test::Lost"}})
    world.retry(2)
    world.delete("mine")
    world.retry(6)
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert len(keystone.trusts) == 2
    Lost.tokens.clear()
    seek(world)
    used = keystone.tokens[Lost.tokens[-1]]["OS-TRUST:trust"]["id"]
    assert keystone.trusts[used]["trustor_user_id"] == world.caller.user_id


def test_a_credential_does_not_outlive_the_searches_that_fail(world: World, keystone: StandIn) -> None:
    deleted(world)
    change(world, f"UPDATE orphan SET created_at = now() - make_interval(secs => {HOURS_30})")
    later(world)
    assert tidy(world) == 1
    assert grants(keystone) == 0
