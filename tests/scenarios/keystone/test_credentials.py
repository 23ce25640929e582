"""The credentials with which a stack acts for an absent user: granted by a stand-in for Keystone, stored
with the stack, and deleted with it.
"""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from orchestrator.clients.keystone.delegation import Delegation
from orchestrator.config import Settings
from orchestrator.errors import Forbidden, OrchestratorError
from orchestrator.operations.keystone.delegated_credentials import cloud_of_stack
from orchestrator.store.keystone import delegated_credentials
from tests.plugins.stand_in_keystone import StandIn, identity  # noqa: F401 - a fixture
from tests.scenarios.keystone.credential_world import (  # noqa: F401 - fixtures
    CALLS,
    NOTHING,
    PROJECT,
    Calls,
    installation,
    keystone,
    later,
    sign_in,
    states,
    tidy,
    world,
)
from tests.scenarios.world import World


def test_the_creator_of_a_stack_grants_a_trust_that_is_deleted_with_it(
    world: World, keystone: StandIn
) -> None:
    world.create("mine", NOTHING)
    [trust] = keystone.trusts.values()
    assert (trust["trustor_user_id"], trust["project_id"]) == ("u1", PROJECT)
    assert trust["roles"] == ["member", "reader"]
    assert not trust["allow_redelegation"]
    world.deliver_all()
    later(world)
    assert tidy(world) == 0
    assert keystone.trusts
    world.delete("mine")
    world.deliver_all()
    assert tidy(world) == 1
    assert not keystone.trusts
    assert states(world) == []


def test_given_secrets_are_stored_encrypted(world: World, keystone: StandIn) -> None:
    world.create("mine", NOTHING)
    [trust_id] = keystone.trusts
    [row] = world.rows("SELECT sealed, c::text AS whole FROM credential c")
    assert trust_id not in row.whole
    assert world.cipher.open(row.sealed)["trust_id"] == trust_id


def test_no_transaction_is_open_while_keystone_is_asked(
    world: World, keystone: StandIn, postgres_url: str
) -> None:
    observed: list[Any] = []

    def look() -> None:
        query = "SELECT state FROM pg_stat_activity WHERE datname = current_database() AND state ~ 'idle in'"
        with psycopg.connect(postgres_url) as db:
            observed.append(db.execute(query).fetchall())

    keystone.watch = look
    world.create("mine", NOTHING)
    world.deliver_all()
    world.delete("mine")
    world.deliver_all()
    tidy(world)
    assert len(observed) >= 3
    assert all(item == [] for item in observed)


def test_later_operations_use_the_trust_in_children_too(world: World, keystone: StandIn) -> None:
    Calls.shown.clear()
    child = json.dumps({"heat_template_version": "2021-04-16", "resources": CALLS})
    world.create("mine", {"in": {"type": "child.yaml"}, **CALLS}, files={"child.yaml": child})
    [trust_id] = keystone.trusts
    world.deliver_all()
    world.delete("mine")
    world.deliver_all()
    assert len(Calls.shown) == 4
    for shown in Calls.shown:
        assert keystone.tokens[shown or ""]["OS-TRUST:trust"]["id"] == trust_id


def test_only_the_roles_that_the_operator_names_are_given(
    installation: Callable[..., World], keystone: StandIn
) -> None:
    installation(trusts_delegated_roles="reader").create("mine", NOTHING)
    assert [trust["roles"] for trust in keystone.trusts.values()] == [["reader"]]


def test_users_without_the_roles_cannot_create_stacks(
    installation: Callable[..., World], keystone: StandIn
) -> None:
    world = installation(trusts_delegated_roles="heat_stack_owner, member")
    with pytest.raises(OrchestratorError) as refused:
        world.create("mine", NOTHING)
    assert refused.value.heat_type == "MissingCredentialError"
    assert str(refused.value) == "Missing required credential: roles ['heat_stack_owner']"
    assert world.rows("SELECT 1 FROM stack") == []
    assert states(world) == []


@pytest.mark.parametrize(
    "token_of", [{"application_credential": {"id": "a"}}, {"OS-TRUST:trust": {"id": "t"}}]
)
def test_a_token_that_may_give_nothing_makes_no_stack_and_leaves_nothing(
    world: World, keystone: StandIn, token_of: dict[str, Any]
) -> None:
    keystone.trusts["t"] = {"id": "t", "trustor_user_id": "u1", "allow_redelegation": False}
    sign_in(world, keystone, "ada", **token_of)
    with pytest.raises(Forbidden, match="does not allow your token to create a trust"):
        world.create("mine", NOTHING)
    assert world.rows("SELECT 1 FROM stack") == []
    tidy(world)
    assert states(world) == []
    assert list(keystone.trusts) == ["t"]


def test_a_trust_may_be_given_by_a_trust_that_says_so(
    installation: Callable[..., World], keystone: StandIn
) -> None:
    world = installation(allow_trusts_redelegation=True)
    world.create("first", NOTHING)
    [trust_id] = keystone.trusts
    assert keystone.trusts[trust_id]["allow_redelegation"]
    sign_in(world, keystone, "ada", **{"OS-TRUST:trust": {"id": trust_id}})
    world.create("second", NOTHING)
    assert len(keystone.trusts) == 2


def test_an_application_credential_does_as_well(
    installation: Callable[..., World], keystone: StandIn
) -> None:
    Calls.shown.clear()
    world = installation(deferred_auth_method="application_credential")
    world.create("mine", CALLS)
    [supplied] = keystone.application_credentials.values()
    assert (supplied["unrestricted"], supplied["roles"]) == (True, ["member", "reader"])
    world.deliver_all()
    shown = keystone.tokens[Calls.shown[0] or ""]
    assert shown["application_credential"]["id"] == supplied["id"]
    world.delete("mine")
    world.deliver_all()
    assert tidy(world) == 1
    assert not keystone.application_credentials
    sign_in(world, keystone, "ada", application_credential={"id": "a", "restricted": True})
    with pytest.raises(Forbidden, match="an application credential"):
        world.create("other", NOTHING)


def test_nothing_is_given_where_nothing_is_wanted(
    installation: Callable[..., World], keystone: StandIn
) -> None:
    world = installation(deferred_auth_method="none")
    uuid = world.create("mine", CALLS)
    assert not keystone.trusts
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    [reason] = [row.reason for row in world.rows("SELECT reason FROM failure")]
    assert "the stack has no credentials for the cloud" in reason


@pytest.mark.parametrize("method", ["trusts", "application_credential"])
def test_a_keystone_without_such_rights_is_no_hindrance(
    installation: Callable[..., World], keystone: StandIn, method: str
) -> None:
    keystone.offers_rights = False
    world = installation(deferred_auth_method=method)
    uuid = world.create("mine", NOTHING)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    world.update("mine", {**NOTHING, "two": NOTHING["one"]})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    later(world)
    tidy(world)
    assert states(world) == []


def test_an_update_by_another_user_takes_theirs(world: World, keystone: StandIn) -> None:
    world.create("mine", NOTHING)
    world.deliver_all()
    [first] = keystone.trusts
    world.update("mine", {**NOTHING, "two": NOTHING["one"]})
    assert list(keystone.trusts) == [first]
    sign_in(world, keystone, "bob")
    world.update("mine", NOTHING)
    world.deliver_all()
    assert tidy(world) == 1
    [trust] = keystone.trusts.values()
    assert trust["trustor_user_id"] == "id of bob"
    assert states(world) == ["held"]


@pytest.mark.parametrize(
    ("user", "token"),
    [("bob", {"application_credential": {"id": "a"}}), ("admin", {"project": "of the admins"})],
)
def test_an_update_by_a_caller_who_cannot_delegate_is_refused_and_leaves_nothing(
    world: World, keystone: StandIn, user: str, token: dict[str, Any]
) -> None:
    world.create("mine", NOTHING)
    world.deliver_all()
    [first] = keystone.trusts
    sign_in(world, keystone, user, **token)
    with pytest.raises(Forbidden):
        world.update("mine", {**NOTHING, "two": NOTHING["one"]})
    assert [row.number for row in world.rows("SELECT number FROM revision")] == [1]
    tidy(world)
    assert list(keystone.trusts) == [first]
    assert states(world) == ["held"]


def test_a_stack_without_a_credential_gets_it_by_its_next_update(
    installation: Callable[..., World], keystone: StandIn
) -> None:
    installation(deferred_auth_method="none").create("mine", NOTHING)
    world = installation()
    world.update("mine", NOTHING)
    assert len(keystone.trusts) == 1
    assert states(world) == ["held"]


def test_a_credential_is_its_stacks_alone(world: World, keystone: StandIn) -> None:
    world.create("mine", NOTHING)
    world.create("other", NOTHING)
    ids = [row.id for row in world.rows("SELECT id FROM stack ORDER BY id")]
    with world.database.borrow() as db:
        result = [delegated_credentials.in_force(db, id_) for id_ in ids]
    trusts = [Delegation(**world.cipher.open(item.sealed)).trust_id for item in result if item]
    assert set(trusts) == set(keystone.trusts)
    cloud = cloud_of_stack(world.database.borrow, world.cipher, Settings(**keystone.settings()), ids[0])
    assert cloud is not None
    shown = keystone.tokens[cloud.session().get_token() or ""]
    assert shown["OS-TRUST:trust"]["id"] == trusts[0]
