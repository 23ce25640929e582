"""Requests signed with a key of Keystone's: asked of a stand-in that checks them with Keystone's own code."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import pytest

from orchestrator.security.key_pairs import create_key_pair
from tests.integration.api.test_cfn_query import HOST, LIST, get, post, refusal, v2, v4
from tests.integration.api_world import Client, World, project, world  # noqa: F401 - fixtures
from tests.plugins.stand_in_keystone import StandIn, identity  # noqa: F401 - a fixture

# The library reads requests with WebOb, which imports `cgi`.
pytestmark = pytest.mark.filterwarnings("ignore:'cgi' is deprecated:DeprecationWarning")
KEYS = ("their-key", "their-secret")


@pytest.fixture(scope="module")
def keystone(world: World, identity: StandIn) -> Client:
    """A client of an application that asks it."""
    return world.client(**identity.settings())


@pytest.fixture
def known(identity: StandIn, project: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The project that the key opens."""
    monkeypatch.setattr(identity, "project", project)
    return project


def test_a_key_of_keystones_opens_its_users_project(keystone: Client, world: World, known: str) -> None:
    world.stack(known, "mine")
    for answer in (
        get(keystone, v2(KEYS, LIST)),
        post(keystone, v2(KEYS, LIST, "POST")),
        get(keystone, LIST, headers=v4(KEYS, "GET", LIST)),
        post(keystone, LIST, headers=v4(KEYS, form=LIST)),
    ):
        assert answer.status_code == 200, answer.text
        assert b"<StackName>mine</StackName>" in answer.data


def test_refusals_of_keystone_are_passed_on(keystone: Client, known: str) -> None:
    assert refusal(get(keystone, v2((KEYS[0], "guessed"), LIST))) == (403, "SignatureDoesNotMatch")
    assert refusal(get(keystone, v2(("nobody", KEYS[1]), LIST))) == (403, "InvalidClientTokenId")
    assert refusal(post(keystone, {**LIST, "More": "1"}, headers=v4(KEYS, form=LIST))) == (
        403,
        "SignatureDoesNotMatch",
    )
    assert refusal(get(keystone, LIST)) == (400, "IncompleteSignature")
    assert refusal(get(keystone, v2(KEYS, {**LIST, "Timestamp": None}))) == (400, "IncompleteSignature")


def test_roles_are_keystones(
    keystone: Client, identity: StandIn, known: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "roles", ("reader",))
    assert get(keystone, v2(KEYS, LIST)).status_code == 200
    assert refusal(get(keystone, v2(KEYS, {"Action": "DeleteStack"}))) == (403, "AccessDenied")


def test_while_keystone_is_away_only_our_own_keys_are_known(
    keystone: Client, world: World, identity: StandIn, known: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "works", False)
    assert refusal(get(keystone, v2(KEYS, LIST))) == (503, "ServiceUnavailable")
    own = create_key_pair(world.database, world.cipher, known, roles=["reader"])
    assert get(keystone, v2(own, LIST), base_url=f"http://{HOST}").status_code == 200
