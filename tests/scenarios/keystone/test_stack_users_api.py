"""The permissions of stack users with tokens from Keystone: the signal and the metadata of a single resource,
signal and metadata, and nothing else.
"""

# ruff: noqa: F401, F811 - fixtures are imported
from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.plugins.stand_in_domain import SETTINGS
from tests.plugins.stand_in_keystone import StandIn, identity
from tests.scenarios.keystone.access_world import served
from tests.scenarios.keystone.test_stack_users import (
    HANDLE,
    SIGNAL,
    handle,
    installation,
    keystone,
    tidy,
    world,
)
from tests.scenarios.signals.test_wait_conditions import condition, drain
from tests.scenarios.world import World

# The library reads requests with WebOb, which imports `cgi`.
pytestmark = pytest.mark.filterwarnings("ignore:'cgi' is deprecated:DeprecationWarning")

STACK = {"handle": handle(), "other": handle(), "wait": condition(1, handle="handle")}
DONE = {"status": "SUCCESS"}


@pytest.fixture
def api(world: World, keystone: StandIn) -> FlaskClient:
    return served(world, **keystone.settings(**SETTINGS))


def sign_in(reported: dict[str, Any]) -> dict[str, str]:
    """Authenticate as an agent does, with its configuration; return the headers with the token."""
    user = {"id": reported["user_id"], "password": reported["password"]}
    auth = {
        "identity": {"methods": ["password"], "password": {"user": user}},
        "scope": {"project": {"id": reported["project_id"]}},
    }
    requests = urllib.request.Request(
        f"{reported['auth_url']}/auth/tokens",
        json.dumps({"auth": auth}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(requests) as answer:
        return {"X-Auth-Token": answer.headers["X-Subject-Token"]}


@pytest.fixture
def agent(world: World) -> tuple[str, dict[str, str], dict[str, Any]]:
    """The path of a stack below its project, the headers of the handle's user, and the user's
    configuration.
    """
    uuid = world.create("s", STACK, outputs=SIGNAL)
    drain(world)  # the condition waits
    [handed] = world.rows("SELECT id, name FROM resource WHERE name = 'handle'")
    reported = _stored_metadata(world, handed.id)
    return f"stacks/s/{uuid}", sign_in(reported), reported


def _stored_metadata(world: World, resource_id: int) -> dict[str, Any]:
    [row] = world.rows("SELECT sealed FROM resource WHERE id = :id", id=resource_id)
    reported: dict[str, Any] = json.loads(world.cipher.open(row.sealed)["attributes"]["signal"])
    return reported


Agent = tuple[str, dict[str, str], dict[str, Any]]


@pytest.mark.parametrize("where", ["the stack's project", "the user's project"])
def test_a_users_token_signals_its_resource_and_reads_its_metadata(
    world: World, api: FlaskClient, agent: Agent, where: str
) -> None:
    stack, headers, reported = agent
    project = "p1" if where == "the stack's project" else reported["project_id"]
    base = f"/v1/{project}/{stack}/resources/handle"
    assert api.post(f"{base}/signal", json=DONE, headers=headers).status_code == 200
    world.deliver_all()
    assert world.rows("SELECT status FROM stack")[0].status == "COMPLETE"
    answer = api.get(f"{base}/metadata", headers=headers)
    assert answer.json["metadata"]["1"]["status"] == "SUCCESS"
    body = api.get(f"/v1/{project}/stacks/s", headers=headers)
    assert (body.status_code, body.headers["Location"].rsplit("/v1/")[1]) == (302, f"p1/{stack}")


def test_and_nothing_else(world: World, api: FlaskClient, agent: Agent) -> None:
    stack, headers, reported = agent
    other = world.create("t", HANDLE)
    drain(world)
    requests = [
        ("POST", f"{stack}/resources/other/signal"),
        ("GET", f"{stack}/resources/other/metadata"),
        ("POST", f"stacks/t/{other}/resources/handle/signal"),
        ("GET", f"stacks/t/{other}/resources/handle/metadata"),
        ("GET", stack),
        ("GET", "stacks"),
        ("POST", "stacks"),
        ("DELETE", stack),
        ("GET", f"{stack}/resources"),
        ("GET", f"{stack}/resources/handle"),
        ("GET", f"{stack}/template"),
        ("PATCH", f"{stack}/resources/handle"),
    ]
    for project in ("p1", reported["project_id"]):
        for verb, path in requests:
            answer = api.open(f"/v1/{project}/{path}", method=verb, json={}, headers=headers)
            assert answer.status_code == (404 if "stacks/t" in path else 403), (verb, path, answer.json)
    assert api.get("/v1/p2/stacks/s", headers=headers).status_code == 403
    assert world.rows("SELECT count(*) AS n FROM signal")[0].n == 0


def test_a_users_token_opens_nothing_once_its_resource_is_gone_or_while_it_is_suspended(
    world: World, api: FlaskClient, agent: Agent
) -> None:
    stack, headers, _ = agent
    metadata, signal = (f"/v1/p1/{stack}/resources/handle/{keyword}" for keyword in ("metadata", "signal"))
    assert api.post(signal, json=DONE, headers=headers).status_code == 200
    world.deliver_all()
    world.act("s", "suspend")
    world.deliver_all()
    assert api.get(metadata, headers=headers).status_code == 403
    world.act("s", "resume")
    world.deliver_all()
    assert api.get(metadata, headers=headers).status_code == 200
    world.update("s", {"other": handle()})
    world.deliver_all()
    for path in (metadata, signal):
        assert (
            api.open(path, method="GET" if path is metadata else "POST", headers=headers).status_code == 403
        )


def test_stack_users_have_no_other_role(
    world: World, api: FlaskClient, agent: Agent, keystone: StandIn
) -> None:
    stack, _, reported = agent
    both = ["admin", "member", "reader", "heat_stack_user"]
    stranger = keystone.knows("a stranger's", project="p1", roles=both)
    assert api.get(f"/v1/p1/{stack}", headers=stranger).status_code == 403
    assert api.get(f"/v1/p1/{stack}/resources/handle/metadata", headers=stranger).status_code == 403
    additional = keystone.knows("the user's, with more", project="p1", roles=both)
    keystone.tokens["the user's, with more"]["user"]["id"] = reported["user_id"]
    assert api.get(f"/v1/p1/{stack}", headers=additional).status_code == 403
    assert api.get(f"/v1/p1/{stack}/resources/handle/metadata", headers=additional).status_code == 200


def test_agents_that_poll_and_signal_through_the_api_sign_in_as_users(
    world: World, api: FlaskClient, keystone: StandIn
) -> None:
    server = {
        "type": "OS::Heat::DeployedServer",
        "properties": {"software_config_transport": "POLL_SERVER_HEAT"},
    }
    deployment = {
        "type": "OS::Heat::SoftwareDeployment",
        "properties": {
            "server": {"get_resource": "server"},
            "config": {"get_resource": "config"},
            "signal_transport": "HEAT_SIGNAL",
        },
    }
    config = {"type": "OS::Heat::SoftwareConfig", "properties": {"config": "true"}}
    settings = {"settings": {"value": {"get_attr": ["server", "os_collect_config"]}}}
    uuid = world.create("s", {"server": server, "deploy": deployment, "config": config}, outputs=settings)
    drain(world)
    assert len(keystone.stack_domain.users) == 2
    [row] = world.rows("SELECT physical_id, sealed FROM resource WHERE name = 'server'")
    polls = world.cipher.open(row.sealed)["attributes"]["os_collect_config"]["heat"]
    headers = sign_in(polls)
    stack = f"stacks/s/{uuid}"
    for path in (f"software_deployments/metadata/{row.physical_id}", f"{stack}/resources/server/metadata"):
        answer = api.get(f"/v1/{polls['project_id']}/{path}", headers=headers)
        assert answer.status_code == 200, answer.json
    assert answer.json["metadata"]["os-collect-config"]["heat"] == polls
    [published] = answer.json["metadata"]["deployments"]
    reported = {item["name"].removeprefix("deploy_"): item["value"] for item in published["inputs"]}
    assert reported["region_name"] == "RegionOne"
    signal = f"/v1/{reported['project_id']}/{stack}/resources/deploy/signal"
    assert api.post(signal, json={"deploy_status_code": 0}, headers=headers).status_code == 403
    done = api.post(signal, json={"deploy_status_code": 0}, headers=sign_in(reported))
    assert done.status_code == 200
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    world.delete("s")
    drain(world)
    assert tidy(world) == 3
    assert not keystone.stack_domain.users
