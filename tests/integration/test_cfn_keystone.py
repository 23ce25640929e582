"""Requests signed with a key of Keystone's: asked of a stand-in that checks them with Keystone's own code."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from api_world import Client, World, project, world  # noqa: F401 - fixtures
from test_api_keystone import SERVICE, Identity, client, token
from test_cfn_query import HOST, LIST, get, post, refusal, v2, v4

from orchestrator.security.key_pairs import create_key_pair

utils = pytest.importorskip("keystoneclient.contrib.ec2.utils")

# The library reads requests with WebOb, which imports `cgi`.
pytestmark = pytest.mark.filterwarnings("ignore:'cgi' is deprecated:DeprecationWarning")
KEYS = ("their-key", "their-secret")


class Ec2Identity(Identity):
    """As much of Keystone v3 as checking a signature takes."""

    project, roles, works = "", ("member", "reader"), True

    def do_POST(self) -> None:
        if not self.path.endswith("/ec2tokens"):
            return super().do_POST()
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["credentials"]
        assert self.headers["X-Auth-Token"] == SERVICE
        if not self.works:
            return self.answer(500, {})
        if given["access"] != KEYS[0]:
            return self.refuse("EC2 access key not found.")
        if given["signature"] != utils.Ec2Signer(KEYS[1]).generate(given):
            return self.refuse("Invalid EC2 signature.")
        return self.told(200, token(project=self.project, roles=list(self.roles)))

    def refuse(self, why: str) -> None:
        self.answer(401, {"error": {"code": 401, "message": why, "title": "Unauthorized"}})


@pytest.fixture(scope="module")
def identity() -> Iterator[type[Ec2Identity]]:
    """The stand-in, listening; its class holds what it knows."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Ec2Identity)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    Ec2Identity.port = server.server_port  # type: ignore[attr-defined]
    yield Ec2Identity
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def keystone(world: World, identity: Any) -> Client:
    """A client of an application that asks it."""
    return client(world, identity)


@pytest.fixture
def known(identity: type[Ec2Identity], project: str, monkeypatch: pytest.MonkeyPatch) -> str:
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


def test_what_keystone_refuses_is_refused(keystone: Client, known: str) -> None:
    assert refusal(get(keystone, v2((KEYS[0], "guessed"), LIST))) == (403, "SignatureDoesNotMatch")
    assert refusal(get(keystone, v2(("nobody", KEYS[1]), LIST))) == (403, "InvalidClientTokenId")
    assert refusal(post(keystone, {**LIST, "More": "1"}, headers=v4(KEYS, form=LIST))) == (
        403,
        "SignatureDoesNotMatch",
    )
    assert refusal(get(keystone, LIST)) == (400, "IncompleteSignature")
    assert refusal(get(keystone, v2(KEYS, {**LIST, "Timestamp": None}))) == (400, "IncompleteSignature")


def test_roles_are_keystones(
    keystone: Client, identity: type[Ec2Identity], known: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "roles", ("reader",))
    assert get(keystone, v2(KEYS, LIST)).status_code == 200
    assert refusal(get(keystone, v2(KEYS, {"Action": "DeleteStack"}))) == (403, "AccessDenied")


def test_while_keystone_is_away_only_our_own_keys_are_known(
    keystone: Client, world: World, identity: Any, known: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "works", False)
    assert refusal(get(keystone, v2(KEYS, LIST))) == (503, "ServiceUnavailable")
    own = create_key_pair(world.database, world.cipher, known, roles=["reader"])
    assert get(keystone, v2(own, LIST), base_url=f"http://{HOST}").status_code == 200
