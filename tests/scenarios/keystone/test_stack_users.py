"""The users that stacks have at Keystone: created in a stand-in for its stack domain, limited to a resource,
and deleted with it, even if processes die.
"""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from orchestrator.errors import Misconfigured
from orchestrator.operations.keystone.stack_users import stack_user_reaper
from orchestrator.security.authenticators import require_authenticator
from orchestrator.security.encryption import new_key
from orchestrator.store.keystone import stack_users
from tests.plugins.stand_in_domain import ID, SETTINGS
from tests.plugins.stand_in_keystone import StandIn, identity  # noqa: F401 - a fixture
from tests.scenarios.world import World

PROJECT = "p1"


def handle(transport: str = "HEAT_SIGNAL") -> dict[str, Any]:
    return {"type": "OS::Heat::WaitConditionHandle", "properties": {"signal_transport": transport}}


HANDLE = {"handle": handle()}
SIGNAL = {"signal": {"value": {"get_attr": ["handle", "signal"]}}}


@pytest.fixture
def keystone(identity: StandIn) -> StandIn:
    """The stand-in, knowing of nothing."""
    identity.reset()
    return identity


@pytest.fixture
def installation(postgres_url: str, keystone: StandIn) -> Iterator[Callable[..., World]]:
    """Makes an installation that asks the stand-in."""
    made: list[World] = []

    def make(**settings: Any) -> World:
        chosen = {"deferred_auth_method": "none", **SETTINGS, **settings}
        world = World(postgres_url, **keystone.settings(**chosen))
        made.append(world)
        return world

    yield make
    for world in made:
        world.close()


@pytest.fixture
def world(installation: Callable[..., World]) -> World:
    """An installation with a stack domain."""
    return installation()


def tidy(world: World, *, search: bool = False) -> int:
    """Run the stack user reaper until nothing is due."""
    keeper = stack_user_reaper(world.database, world.settings)
    assert keeper is not None
    keeper.searched_at = float("-inf") if search else time.monotonic()
    return keeper.run()


def later(world: World) -> None:
    """Make the scheduled removals due now."""
    with world.database.borrow() as db:
        db.execute("UPDATE stack_user SET due_at = now() WHERE due_at IS NOT NULL")


def states(world: World) -> list[str]:
    return [row.state for row in world.rows("SELECT state FROM stack_user ORDER BY id")]


def test_a_handle_has_a_user_of_its_own_in_its_stacks_project_and_both_go(
    world: World, keystone: StandIn
) -> None:
    domain = keystone.stack_domain
    uuid = world.create("mine", {**HANDLE, "other": handle()}, outputs=SIGNAL)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE", world.rows("SELECT reason FROM failure")
    [project] = domain.projects.values()
    assert project["name"] == f"{uuid}-p1"
    assert world.stack_row("mine").user_project_id == project["id"]
    assert len(domain.users) == 2
    reported = json.loads(world.outputs("mine")["signal"])
    user = domain.users[reported["user_id"]]
    assert reported["password"] == user["password"]
    assert (reported["username"], reported["domain_id"], reported["project_id"]) == (
        user["name"],
        ID,
        project["id"],
    )
    assert reported["auth_url"] == f"{keystone.place}/v3"
    assert "token" not in reported
    assert tidy(world) == 0
    world.delete("mine")
    world.deliver_all()
    assert tidy(world) == 3
    assert not domain.users
    assert not domain.projects
    assert states(world) == []


def test_credentials_are_stored_encrypted(world: World, keystone: StandIn) -> None:
    world.create("mine", HANDLE)
    world.deliver_all()
    [user] = keystone.stack_domain.users.values()
    for table in ("stack_user", "resource", "access"):
        assert all(
            user["password"] not in row.whole for row in world.rows(f"SELECT t::text AS whole FROM {table} t")
        )


def test_no_transaction_is_open_while_keystone_is_asked(
    world: World, keystone: StandIn, postgres_url: str
) -> None:
    observed: list[Any] = []

    def look() -> None:
        query = "SELECT state FROM pg_stat_activity WHERE datname = current_database() AND state ~ 'idle in'"
        with psycopg.connect(postgres_url) as db:
            observed.append(db.execute(query).fetchall())

    keystone.watch = look
    world.create("mine", HANDLE)
    world.deliver_all()
    world.delete("mine")
    world.deliver_all()
    tidy(world)
    assert len(observed) >= 5
    assert all(item == [] for item in observed)


def test_children_share_the_project_of_their_root(world: World, keystone: StandIn) -> None:
    child = json.dumps({"heat_template_version": "2021-04-16", "resources": HANDLE})
    world.create("mine", {"in": {"type": "child.yaml"}, **HANDLE}, files={"child.yaml": child})
    world.deliver_all()
    assert len(keystone.stack_domain.users) == 2
    [project] = keystone.stack_domain.projects
    rows = world.rows("SELECT user_project_id FROM stack")
    assert [row.user_project_id for row in rows] == [project, project]
    world.delete("mine")
    world.deliver_all()
    assert tidy(world) == 3


def test_a_user_goes_with_its_resource_and_the_project_stays(world: World, keystone: StandIn) -> None:
    world.create("mine", {**HANDLE, "other": handle()})
    world.deliver_all()
    world.update("mine", HANDLE)
    world.deliver_all()
    assert tidy(world) == 1
    [user] = keystone.stack_domain.users.values()
    assert "-handle-" in user["name"]
    assert len(keystone.stack_domain.projects) == 1
    assert states(world) == ["held", "held"]
    assert world.rows("SELECT 1 FROM stack_user WHERE due_at IS NOT NULL") == []  # none to be looked at again


@pytest.mark.parametrize("transport", ["TOKEN_SIGNAL", "CFN_SIGNAL", "NO_SIGNAL"])
def test_resources_without_signals_have_no_user(world: World, keystone: StandIn, transport: str) -> None:
    world.create("mine", {"handle": handle(transport)})
    world.deliver_all()
    assert not keystone.stack_domain.made
    assert world.stack_row("mine").user_project_id is None


def test_without_a_stack_domain_nothing_is_asked_for(
    installation: Callable[..., World], keystone: StandIn
) -> None:
    world = installation(**dict.fromkeys(SETTINGS))
    world.create("mine", HANDLE, outputs=SIGNAL)
    world.deliver_all()
    assert not keystone.stack_domain.made
    assert "token" in json.loads(world.outputs("mine")["signal"])


def test_lost_answers_make_nothing_twice(world: World, keystone: StandIn) -> None:
    keystone.lose_answers = True
    uuid = world.create("mine", HANDLE)
    world.deliver(1)
    observed = []
    while world.messages or world.sweep_once():
        world.deliver(1)
        observed.append(states(world))
    assert observed[0] == ["making"]
    assert ["held", "making"] in observed
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert len(keystone.stack_domain.made) == len(set(keystone.stack_domain.made)) == 2
    world.delete("mine")
    world.deliver_all()
    assert tidy(world) == 2


def test_while_keystone_is_unavailable_removals_wait_and_are_not_lost(
    world: World, keystone: StandIn
) -> None:
    world.create("mine", HANDLE)
    world.deliver_all()
    world.delete("mine")
    world.deliver_all()
    keystone.away = True
    assert tidy(world) == 0
    [row] = world.rows("SELECT state, tries, last_error FROM stack_user WHERE resource_id IS NOT NULL")
    assert (row.state, row.tries) == ("going", 1)
    assert "unavailable" in row.last_error
    keystone.away = False
    later(world)
    assert tidy(world) == 2
    assert not keystone.stack_domain.users


def test_a_user_whose_resource_went_without_a_word_is_found(world: World, keystone: StandIn) -> None:
    world.create("mine", HANDLE)
    world.deliver_all()
    with world.database.borrow() as db:
        db.execute("DELETE FROM resource")
        db.execute("UPDATE stack SET action = 'DELETE', status = 'COMPLETE', deleted_at = now()")
    assert tidy(world) == 0
    assert tidy(world, search=True) == 2
    assert not keystone.stack_domain.users
    assert not keystone.stack_domain.projects


def test_a_possibly_unfinished_create_is_waited_for(world: World, keystone: StandIn) -> None:
    keystone.lose_answers = True
    world.create("mine", HANDLE)
    world.deliver_one(world.messages.pop(0))
    world.deliver(len(world.messages))
    with world.database.borrow() as db:
        db.execute("DELETE FROM resource")
        db.execute("UPDATE stack SET action = 'DELETE', status = 'COMPLETE', deleted_at = now()")
    assert tidy(world, search=True) == 0
    assert keystone.stack_domain.projects
    keystone.lose_answers = False
    later(world)
    assert tidy(world) == 1
    assert not keystone.stack_domain.projects


def test_a_repeated_removal_request_is_recorded_again(world: World) -> None:
    with world.database.borrow() as db:
        for _ in range(2):
            assert stack_users.insert(db, 1, 1, "somebody", b"", 120.0) is not None
            assert (
                stack_users.REMOVALS.claim(db, 120.0) is None
            )  # there is no such resource, and it may be on its way
            db.execute("UPDATE stack_user SET due_at = now()")
        assert stack_users.REMOVALS.claim(db, 120.0) is not None
        assert stack_users.insert(db, 1, 1, "somebody", b"", 120.0) is None


def test_a_user_created_too_late_is_deleted_by_its_creator(world: World, keystone: StandIn) -> None:
    uuid = world.create("mine", HANDLE)
    world.deliver(1)

    def given_up() -> None:
        with world.database.borrow() as db:
            db.execute("UPDATE stack_user SET state = 'going' WHERE resource_id IS NOT NULL")

    keystone.watch = given_up
    world.deliver(1)
    assert [name for name in keystone.stack_domain.made if "handle" in name]
    assert not keystone.stack_domain.users
    keystone.watch = lambda: None
    with world.database.borrow() as db:
        db.execute("DELETE FROM stack_user WHERE state = 'going'")
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE", world.rows("SELECT reason FROM failure")
    assert len(keystone.stack_domain.users) == 1


@pytest.mark.filterwarnings("ignore:'cgi' is deprecated:DeprecationWarning")  # in WebOb
@pytest.mark.parametrize("missing", SETTINGS)
def test_half_a_stack_domain_is_refused_by_the_api(world: World, missing: str) -> None:
    with pytest.raises(Misconfigured, match="all or none"):
        require_authenticator(world.settings.model_copy(update={missing: None}))


def test_half_a_stack_domain_is_refused_by_a_worker(keystone: StandIn) -> None:
    half = keystone.settings(stack_domain_admin="admin", broker_url="redis://127.0.0.1:1/0")
    supplied = {f"ORCHESTRATOR_{name.upper()}": value for name, value in half.items()}
    supplied["ORCHESTRATOR_ENCRYPTION_KEYS"] = new_key()
    starting = [sys.executable, "-c", "from tasks import app; app._require_valid_setup()"]
    environment = {**os.environ, **supplied}
    ended = subprocess.run(starting, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert "orchestrator worker: set all or none" in ended.stderr
