"""Workers that die again and again: what counts is how many in a row, not how many in all."""

from __future__ import annotations

import itertools

from orchestrator.operations.check import LOST_LIMIT
from orchestrator.resources.base import Context
from tests.scenarios.cloud import Cloud, Crash, cloud_thing
from tests.scenarios.world import World


def survive(world: World, cloud: Cloud, lethal: int) -> None:
    """Deliver until nothing is under way, every look but each `lethal`-th ending its worker."""
    looks = itertools.count(1)

    def look(_: Context) -> None:
        if next(looks) % lethal:
            raise Crash

    cloud.on["observe"] = look
    while world.messages or world.sweep_once() or world.sweep_once():
        try:
            world.deliver(1)
        except Crash:
            world.engine = world.new_engine()
            world.forget_leases()


def test_workers_lost_now_and_then_do_not_add_up(postgres_url: str) -> None:
    cloud = Cloud()
    world = World(postgres_url, types=cloud.types())
    try:
        uuid = world.create("s", {"a": cloud_thing(looks=LOST_LIMIT + 3)})
        survive(world, cloud, 2)
        assert world.state(uuid) == "CREATE_COMPLETE"
        assert cloud.made == {"a": 1}
    finally:
        world.close()


def test_what_takes_every_worker_with_it_fails(postgres_url: str) -> None:
    cloud = Cloud()
    world = World(postgres_url, types=cloud.types())
    try:
        uuid = world.create("s", {"a": cloud_thing()})
        survive(world, cloud, 10**9)
        assert world.state(uuid) == "CREATE_FAILED"
        [row] = world.rows("SELECT status_reason FROM stack")
        assert "Worker went down during resource CREATE" in row.status_reason
    finally:
        world.close()


CLOSE = "SELECT pg_terminate_backend(:pid, 5000)"


def test_a_connection_closed_behind_a_claim_costs_no_lease(postgres_url: str) -> None:
    """A claimed visit reads parameters over its thread's other connection, long unused: PostgreSQL was
    restarted since. Tried again, the check would find its node claimed, and wait for its own lease.
    """
    cloud = Cloud()
    world = World(postgres_url, types=cloud.types())
    try:
        uuid = world.create("s", {"a": cloud_thing()})
        world.deliver(1)
        other = world.database.hot(durable=False)
        assert world.rows(CLOSE, pid=other.info.backend_pid)
        world.engine = world.new_engine()  # with nothing in memory
        world.deliver_all()
        assert world.state(uuid) == "CREATE_COMPLETE"
        assert world.rows("SELECT 1 FROM graph_node WHERE lost_leases > 0 OR state = 'checking'") == []
    finally:
        world.close()
