"""Orphaned credentials: deleted after refused requests, lost answers, outages, and process deaths."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable

import psycopg
import pytest

from orchestrator.errors import StackExists, Unavailable
from orchestrator.store.keystone.delegated_credentials import REMOVALS
from tests.plugins.stand_in_keystone import StandIn, identity  # noqa: F401 - a fixture
from tests.scenarios.keystone.credential_world import (  # noqa: F401 - fixtures
    NOTHING,
    installation,
    keystone,
    later,
    states,
    tidy,
    world,
)
from tests.scenarios.world import World


def test_no_trust_is_requested_for_a_name_that_is_taken(
    world: World, keystone: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create("mine", NOTHING)
    requests: list[int] = []
    monkeypatch.setattr(keystone, "watch", lambda: requests.append(1))
    with pytest.raises(StackExists):
        world.create("mine", NOTHING)
    assert requests == []
    assert tidy(world) == 0
    assert len(keystone.trusts) == 1


def test_a_name_that_was_taken_during_the_request_leaves_no_trust(world: World, keystone: StandIn) -> None:
    world.before("validate_create", lambda: world.create("mine", NOTHING))
    with pytest.raises(StackExists):
        world.create("mine", NOTHING)
    assert tidy(world) == 1
    assert len(keystone.trusts) == 1


def test_a_trust_whose_answer_was_lost_is_found_and_removed(world: World, keystone: StandIn) -> None:
    world.create("other", NOTHING)
    keystone.lose_answers = True
    with pytest.raises(Unavailable):
        world.create("mine", NOTHING)
    assert len(keystone.trusts) >= 2
    keystone.lose_answers = False
    tidy(world)
    assert len(keystone.trusts) == 1
    assert [row.name for row in world.rows("SELECT name FROM stack")] == ["other"]


def test_while_keystone_is_away_no_stack_is_made_and_none_forgotten(world: World, keystone: StandIn) -> None:
    world.create("old", NOTHING)
    world.deliver_all()
    world.delete("old")
    world.deliver_all()
    keystone.away = True
    with pytest.raises(Unavailable):
        world.create("new", NOTHING)
    assert tidy(world) == 0
    keystone.away = False
    later(world)
    assert tidy(world) == 2
    assert not keystone.trusts


def test_a_claim_takes_a_single_removal(world: World) -> None:
    """With statistics of a single row PostgreSQL reads the table first, and joins the next removal to it."""
    for name in ("a", "b"):
        world.create(name, NOTHING)
        world.delete(name)
        world.deliver_all()
        if name == "a":
            with world.database.connect() as db:
                db.execute("VACUUM ANALYZE credential")
    with world.database.connect() as db:
        assert REMOVALS.claim(db, 60.0) is not None
        assert db.execute("SELECT count(*) FROM credential WHERE tries = 1").fetchone() == (1,)


def test_the_trust_of_a_user_without_roles_is_deleted_once_possible(world: World, keystone: StandIn) -> None:
    world.create("mine", NOTHING)
    world.deliver_all()
    world.delete("mine")
    keystone.powerless.add("u1")
    world.deliver_all()
    assert tidy(world) == 0
    [row] = world.rows("SELECT state, tries, due_at > now() AS later, last_error FROM credential")
    assert (row.state, row.tries, row.later) == ("going", 1, True)
    assert "its user has no rights" in row.last_error
    keystone.powerless.clear()
    later(world)
    assert tidy(world) == 1
    assert not keystone.trusts


def test_an_application_credential_whose_answer_was_lost_is_removed(
    installation: Callable[..., World], keystone: StandIn
) -> None:
    world = installation(deferred_auth_method="application_credential")
    keystone.lose_answers = True
    with pytest.raises(Unavailable):
        world.create("mine", NOTHING)
    keystone.lose_answers = False
    assert keystone.application_credentials
    tidy(world)
    assert not keystone.application_credentials


def test_a_timed_out_request_is_answered_and_leaves_nothing(world: World, keystone: StandIn) -> None:
    def slow() -> None:
        with world.database.borrow() as db:
            db.execute("UPDATE credential SET state = 'going' WHERE state = 'making'")

    keystone.watch = slow
    with pytest.raises(Unavailable, match="took too long"):
        world.create("mine", NOTHING)
    keystone.watch = lambda: None
    later(world)
    tidy(world)
    assert world.rows("SELECT 1 FROM stack") == []
    assert not keystone.trusts


CHILD = """
import sys
from orchestrator.config import Settings
from orchestrator.operations.stacks.create_delete import create
from orchestrator.operations.context import Body, OperationContext
from orchestrator.resources.registry import load_registry
from orchestrator.security.caller import Caller, Login
from orchestrator.security.encryption import cipher
from orchestrator.store.connections.database import Database
settings = Settings()
login = Login("token of ada", "p1", ("member",), ("member",))
caller = Caller("p1", "ada", ("member",), user_id="u1", login=login)
database = Database(sys.argv[1], "to be killed")
context = OperationContext(database, cipher(settings), caller, settings, load_registry())
create(context, Body(sys.argv[2].encode()))
"""


@pytest.mark.parametrize("moment", ["before the answer", "after the answer"])
def test_a_process_killed_between_the_trust_and_the_stack_leaks_nothing(
    postgres_url: str, keystone: StandIn, installation: Callable[..., World], moment: str
) -> None:
    world = installation()
    key = world.cipher._newest._signing_key + world.cipher._newest._encryption_key
    import base64

    supplied = keystone.settings(encryption_keys=base64.urlsafe_b64encode(key).decode())
    environment = {f"ORCHESTRATOR_{name.upper()}": value for name, value in supplied.items()}
    body = json.dumps(
        {"stack_name": "mine", "template": {"heat_template_version": "2021-04-16", "resources": NOTHING}}
    )
    with psycopg.connect(postgres_url) as holding:
        if moment == "before the answer":
            keystone.go_on.clear()
        else:
            holding.execute("LOCK TABLE stack IN EXCLUSIVE MODE")  # read, and not written
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, postgres_url, body], env={**os.environ, **environment}
        )
        try:
            assert keystone.made.wait(30)
            if moment == "after the answer":
                _until_blocked(postgres_url)
        finally:
            child.send_signal(signal.SIGKILL)
            child.wait()
    keystone.go_on.set()
    assert len(keystone.trusts) == 1
    assert world.rows("SELECT 1 FROM stack") == []
    assert states(world) == ["making"]
    assert tidy(world) == 0  # it may still be on its way
    later(world)
    assert tidy(world) == 1
    assert not keystone.trusts
    assert states(world) == []


def _until_blocked(url: str) -> None:
    """Wait until the child stands before the table."""
    query = """SELECT pg_sleep(0.02), count(*) FROM pg_stat_activity
        WHERE application_name = 'to be killed' AND wait_event_type = 'Lock'"""
    with psycopg.connect(url, autocommit=True) as db:
        for _ in range(1_000):
            if (db.execute(query).fetchone() or (0, 0))[1]:
                return
    raise AssertionError("it never came to write the stack")
