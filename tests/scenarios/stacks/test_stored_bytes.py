"""The quota of stored bytes of a project."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import orjson
import pytest

from orchestrator.errors import LimitExceeded
from orchestrator.operations.context import Body
from orchestrator.operations.maintenance.purge import Policy, purge
from orchestrator.operations.quotas.room import counts_of
from orchestrator.operations.snapshots import snapshots
from orchestrator.operations.software import api_requests
from orchestrator.operations.stacks import actions
from orchestrator.security.caller import Caller
from orchestrator.store.access.quotas import set_maximum
from orchestrator.store.stacks.stored_bytes import of_project
from tests.scenarios.children.test_nested_stacks import URL, child_text, nested
from tests.scenarios.world import World, test_resource

KB = 1024
REFUSAL = "You have reached the maximum stored bytes per tenant"


@pytest.fixture
def world(postgres_url: str) -> Iterator[World]:
    """A world with fresh counts."""
    counts_of.cache_clear()
    made = World(postgres_url)
    yield made
    made.close()


def with_file() -> dict[str, object]:
    return {"a": test_resource({"get_file": "f"})}


def file(kilobytes: int, letter: str = "x") -> dict[str, str]:
    return {"f": letter * (kilobytes * KB)}


def used(world: World, project: str = "p1") -> int:
    with world.database.borrow() as db:
        return of_project(db, project)


def allow(world: World, maximum: int) -> None:
    with world.database.connect() as db:
        set_maximum(db, "p1", "stored_bytes", maximum)


def purge_all(world: World, *, revisions: int = 0) -> None:
    with world.database.connect() as db:
        purge(db, Policy(0, 0, revisions, 0, 0))


def test_a_text_counts_once_per_project(world: World) -> None:
    world.create("a", with_file(), files=file(100))
    world.deliver_all()
    one = used(world)
    assert 100 * KB < one < 110 * KB
    world.create("b", with_file(), files=file(100))
    world.deliver_all()
    world.patch("a", tags="x")
    world.deliver_all()
    assert used(world) < one + 10 * KB
    world.context = replace(world.context, caller=Caller("p2", roles=("member",)))
    world.create("a", with_file(), files=file(100))
    assert used(world, "p2") == pytest.approx(one, rel=0.1)


def test_revisions_and_deleted_stacks_count_until_they_are_purged(world: World) -> None:
    world.create("a", with_file(), files=file(100))
    world.deliver_all()
    world.update("a", with_file(), files=file(100, "y"))
    world.deliver_all()
    assert used(world) > 200 * KB
    purge_all(world)
    assert 100 * KB < used(world) < 110 * KB
    world.delete("a")
    world.deliver_all()
    assert used(world) > 100 * KB
    purge_all(world)
    assert used(world) == 0
    assert world.rows("SELECT count(*) FROM project_content") == [(0,)]


def test_a_text_of_another_project_is_released_by_the_purge(world: World) -> None:
    world.create("a", with_file(), files=file(100))
    world.context = replace(world.context, caller=Caller("p2", roles=("member",)))
    world.create("b", with_file(), files=file(100))
    world.deliver_all()
    world.context = replace(world.context, caller=Caller("p1", roles=("member",)))
    world.delete("a")
    world.deliver_all()
    purge_all(world)
    assert used(world) == 0
    assert used(world, "p2") > 100 * KB


def test_requests_beyond_the_quota_are_refused_without_effects(world: World) -> None:
    world.create("a", with_file(), files=file(100))
    world.deliver_all()
    snapshot = snapshots.take(world.context, world.stack_row("a"), Body(b"{}")).snapshot
    world.sweep_once()
    world.deliver_all()
    stack = world.stack_row("a")
    allow(world, used(world))
    before = world.rows("SELECT (SELECT count(*) FROM revision), (SELECT count(*) FROM snapshot)")
    with pytest.raises(LimitExceeded, match=REFUSAL):
        world.create("b", {"a": test_resource()})
    with pytest.raises(LimitExceeded, match=REFUSAL):
        world.update("a", {"a": test_resource()})
    with pytest.raises(LimitExceeded, match=REFUSAL):
        world.patch("a", tags="x")
    with pytest.raises(LimitExceeded, match=REFUSAL):
        actions.roll_back(world.context, stack, 1)
    with pytest.raises(LimitExceeded, match=REFUSAL):
        snapshots.restore(world.context, stack, str(snapshot.uuid))
    body = Body(orjson.dumps({"name": "c", "group": "g", "config": "x"}))
    with pytest.raises(LimitExceeded, match=REFUSAL):
        api_requests.create_config(world.context, body)
    assert world.rows("SELECT (SELECT count(*) FROM revision), (SELECT count(*) FROM snapshot)") == before
    world.delete("a")  # never refused
    world.deliver_all()


def test_a_snapshot_counts_the_data_of_its_resources(world: World) -> None:
    value = random.Random(7).randbytes(30_000).hex()
    world.create("a", {"a": test_resource() | {"metadata": {"value": value}}})
    world.deliver_all()
    before = used(world)
    snapshots.take(world.context, world.stack_row("a"), Body(b"{}"))
    world.sweep_once()
    world.deliver_all()
    assert used(world) - before > 10_000
    allow(world, used(world))
    with pytest.raises(LimitExceeded, match=REFUSAL):
        snapshots.take(world.context, world.stack_row("a"), Body(b"{}"))


def test_nested_stacks_count_and_fail_beyond_the_quota(world: World) -> None:
    uuid = world.create("s", {"child": nested()}, files={URL: child_text()})
    root = used(world)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert used(world) > root
    uuid = world.create("t", {"child": nested()}, files={URL: child_text()})
    allow(world, used(world))
    world.engine = world.new_engine()  # workers read limits again within 10 seconds
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    assert REFUSAL in world.stack_row("t").status_reason


def test_a_failed_update_is_rolled_back_beyond_the_quota(world: World) -> None:
    world.create("a", {"a": test_resource()})
    world.deliver_all()
    world.update("a", {"a": test_resource(), "b": test_resource(fail=True)}, disable_rollback=False)
    allow(world, used(world))
    world.deliver_all()
    assert world.stack_row("a").state == "ROLLBACK_COMPLETE"


def test_admins_are_not_limited(world: World) -> None:
    allow(world, 0)
    world.context = replace(world.context, caller=Caller("p1", roles=("admin",), is_admin=True))
    world.create("a", {"a": test_resource()})
