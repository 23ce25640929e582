"""A worker that is killed while it has a stack's user made: nothing is left over, nothing is made twice."""

# ruff: noqa: F401, F811 - fixtures are imported
from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys

import psycopg
import pytest

from orchestrator.engine.messages import CheckMessage
from tests.plugins.stand_in_domain import SETTINGS
from tests.plugins.stand_in_keystone import StandIn, identity
from tests.scenarios.keystone.test_stack_users import (
    HANDLE,
    installation,
    keystone,
    later,
    states,
    tidy,
    world,
)
from tests.scenarios.world import World

CHILD = """
import json, sys
from orchestrator.operations.reconcile.check import check_external
from orchestrator.security.encryption import Cipher
from tests.scenarios.world import World
url, settings, key, node, traversal = sys.argv[1:]
world = World(url, **json.loads(settings))
world.cipher = Cipher([key])
check_external(world.new_engine(), [int(node)], int(traversal))
"""
MOMENTS = ["before the project's answer", "before the user's answer", "before the resource is written"]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("then", ["go on", "delete"])
def test_a_worker_killed_on_the_way_leaks_nothing_and_makes_nothing_twice(
    world: World, keystone: StandIn, postgres_url: str, moment: str, then: str
) -> None:
    uuid = world.create("mine", HANDLE)
    world.deliver(1)
    [message] = world.messages
    _kill(world, keystone, postgres_url, moment, message)
    things = keystone.stack_domain
    assert len(things.made) == MOMENTS.index(moment) + (moment != MOMENTS[2])
    assert states(world) == [["making"], ["held", "making"], ["held", "held"]][MOMENTS.index(moment)]
    assert tidy(world, search=True) == 0
    world.forget_leases()
    if then == "go on":
        world.deliver_all()
        assert world.state(uuid) == "CREATE_COMPLETE"
        assert len(things.users) == len(things.projects) == 1
        assert len(things.made) == 2
        [user] = things.users.values()
        [row] = world.rows("SELECT sealed FROM stack_user WHERE resource_id IS NOT NULL")
        assert world.cipher.open(row.sealed) == user["password"]
    world.delete("mine")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    later(world)
    tidy(world, search=True)
    assert not things.users
    assert not things.projects
    assert states(world) == []


def _kill(world: World, keystone: StandIn, url: str, moment: str, message: object) -> None:
    """Have a worker check a node, and kill it at that moment."""
    assert isinstance(message, CheckMessage)
    settings = keystone.settings(deferred_auth_method="none", **SETTINGS)
    newest = world.cipher._newest
    key = base64.urlsafe_b64encode(newest._signing_key + newest._encryption_key).decode()
    supplied = [url, json.dumps(settings), key, str(message.node_id), str(message.traversal)]
    with psycopg.connect(url) as holding:
        if moment == MOMENTS[2]:
            holding.execute("LOCK TABLE access IN EXCLUSIVE MODE")
        else:
            keystone.go_on.clear()
        child = subprocess.Popen([sys.executable, "-c", CHILD, *supplied])
        try:
            assert keystone.made.wait(60)
            if moment == MOMENTS[1]:
                keystone.made.clear()
                keystone.go_on.set()
                keystone.go_on.clear()
                assert keystone.made.wait(60)
            if moment == MOMENTS[2]:
                _until_blocked(url)
        finally:
            child.send_signal(signal.SIGKILL)
            child.wait()
            keystone.go_on.set()


def _until_blocked(url: str) -> None:
    """Wait until the worker stands before the table."""
    query = "SELECT pg_sleep(0.02), count(*) FROM pg_locks WHERE NOT granted"
    with psycopg.connect(url, autocommit=True) as db:
        for _ in range(1_000):
            if (db.execute(query).fetchone() or (0, 0))[1]:
                return
    raise AssertionError("it never came to write the access")
