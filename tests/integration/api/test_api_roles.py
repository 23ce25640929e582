"""Authorization over HTTP: roles of tokens, admins, policies of the operator."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from api.middleware.authorization import ASKING, NAMES, name_of
from orchestrator.security.policy import TABLE
from orchestrator.security.tokens import create_token
from orchestrator.store.tables.software import SoftwareConfig
from tests.integration.api.test_api_isolation import OPEN, requests
from tests.integration.api_world import Client, Made, World, project, root, world  # noqa: F401 - fixtures


@pytest.fixture(scope="module")
def theirs(world: World) -> Made:
    """A stack of some project with something of everything."""
    stack = world.stack("their project", "their-stack")
    world.resource(stack, "thing")
    world.event(stack, "thing")
    return stack


def token(world: World, project: str, *roles: str) -> dict[str, str]:
    return {"X-Auth-Token": create_token(world.database, project, "ada", roles=roles)}


def test_every_route_has_a_name_in_the_policy_and_no_other_has(world: World, theirs: Made) -> None:
    named = set()
    for rule, method, _ in requests(world.client(), theirs, "any"):
        if "project_id" in rule.arguments and (
            rule.endpoint not in OPEN | ASKING or rule.endpoint == "stacks.update"
        ):
            name = name_of(rule.endpoint, method)
            assert name in TABLE, f"{rule} ({method}) has none: api/middleware/authorization.py"
            named |= {rule.endpoint, f"{rule.endpoint} {method}"}
    assert set(NAMES) <= named


def test_a_reader_may_have_a_stack_looked_at_and_not_suspended(world: World, theirs: Made) -> None:
    api, headers = world.client(auth="token"), token(world, theirs.project, "reader")
    actions = f"{theirs.path}/actions"
    api.ask("POST", actions, 200, headers=headers, json={"check": None})
    message = api.message("POST", actions, 403, headers=headers, json={"suspend": None})
    assert message == "You are not authorized to use actions:suspend."
    assert api.message("POST", actions, 400, headers=headers, json={"dance": None}) == (
        "Invalid action dance specified"
    )


def test_an_operator_decides_which_roles_may_signal(world: World, theirs: Made, tmp_path: Path) -> None:
    reader = token(world, theirs.project, "reader")
    signal = f"{theirs.path}/resources/thing/signal"
    message = world.client(auth="token").message("POST", signal, 403, headers=reader, json={})
    assert message == "You are not authorized to use resource:signal."
    member = token(world, theirs.project, "member")
    world.client(auth="token").ask("POST", signal, 200, headers=member, json={})
    rules = tmp_path / "policy.yaml"
    rules.write_text("resource:signal: [reader, heat_stack_user]\n")
    world.client(auth="token", policy_file=rules).ask("POST", signal, 200, headers=reader, json={})


NOTHING = ({}, {"existing": True, "files": {}, "environment": {"parameters": {}}, "stack_name": "s"})
SOMETHING = ({"parameters": {"a": 1}}, {"converge": True}, {"timeout_mins": None}, {"template": {"a": 1}})


def test_running_an_update_once_more_has_a_rule_of_its_own(
    world: World, theirs: Made, tmp_path: Path
) -> None:
    rules = tmp_path / "policy.yaml"
    rules.write_text("stacks:update_patch: [admin]\n")
    api, headers = world.client(auth="token", policy_file=rules), token(world, theirs.project, "member")
    for body in NOTHING:
        api.ask("PATCH", theirs.path, 202, headers=headers, json=body)
    for body in SOMETHING:
        message = api.message("PATCH", theirs.path, 403, headers=headers, json=body)
        assert message == "You are not authorized to use stacks:update_patch."
    rules = tmp_path / "other.yaml"
    rules.write_text("stacks:update_no_change: []\n")
    api = world.client(auth="token", policy_file=rules)
    message = api.message("PATCH", theirs.path, 403, headers=headers, json={})
    assert message == "You are not authorized to use stacks:update_no_change."
    api.ask("PATCH", theirs.path, 202, headers=headers, json=SOMETHING[0])


def test_an_admin_acts_on_any_projects_stack_by_its_id(world: World, theirs: Made) -> None:
    api, headers = world.client(auth="token"), token(world, "admins", "admin")
    place = f"/stacks/{theirs.name}/{theirs.uuid}"
    for path in (theirs.path, f"{root('admins')}{place}", f"{root('third')}{place}"):
        assert api.get(path, headers=headers)["stack"]["stack_name"] == theirs.name
    result = api.http.get(f"{api.base}{root('admins')}/stacks/{theirs.uuid}", headers=headers)
    assert result.status_code == 302
    assert result.headers["Location"].endswith(f"/their%20project{place}")
    api.get(f"{root('admins')}/stacks/{theirs.name}", 404, headers=headers)  # names are each project's own
    api.ask("PUT", f"{root('admins')}{place}", 202, headers=headers, json={})
    assert world.neighbour.projects[-1] == theirs.project
    api.ask("DELETE", theirs.path, 204, headers=headers)


def test_an_admin_creates_stacks_in_the_admins_project_for_any_path(world: World) -> None:
    api, headers = world.client(auth="token"), token(world, "admins", "admin")
    made = api.ask("POST", f"{root('third')}/stacks", 201, headers=headers, json={"stack_name": "s"})
    assert "/v1/admins/stacks/" in made["stack"]["links"][0]["href"]
    assert world.neighbour.projects[-1] == "admins"


def test_an_admin_lists_every_projects_stacks_with_their_projects(world: World, theirs: Made) -> None:
    api = world.client(auth="token")
    headers = token(world, "admins", "admin")
    listed = api.get(f"{root('admins')}/stacks?with_count=true", headers=headers)
    assert theirs.project in {stack["project"] for stack in listed["stacks"]}
    assert listed["count"] == len(listed["stacks"])
    mine = api.get(f"{root('admins')}/stacks?tenant=their%20project", headers=headers)["stacks"]
    assert {stack["project"] for stack in mine} == {theirs.project}
    headers = token(world, theirs.project, "member")
    assert "project" not in api.get(f"{root(theirs.project)}/stacks", headers=headers)["stacks"][0]


def test_all_projects_at_once_are_for_whom_an_operator_names(
    world: World, theirs: Made, tmp_path: Path
) -> None:
    (tmp_path / "policy.yaml").write_text("stacks:global_index: [auditor]\nstacks:index: [auditor]\n")
    path = f"{root('auditors')}/stacks?global_tenant=true"
    for shipped, role in ((world.client(auth="token"), "admin"), (world.client(auth="token"), "member")):
        message = shipped.message("GET", path, 403, headers=token(world, "auditors", role))
        assert message == "You are not authorized to use stacks:global_index."
    api = world.client(auth="token", policy_file=tmp_path / "policy.yaml")
    headers = token(world, "auditors", "auditor")
    assert theirs.name in {stack["stack_name"] for stack in api.get(path, headers=headers)["stacks"]}
    assert api.get(f"{root('auditors')}/stacks", headers=headers) == {"stacks": []}
    api.get(f"{root('auditors')}/stacks", 403, headers=token(world, "auditors", "reader"))


def test_an_admin_sees_every_projects_configs(world: World) -> None:
    id_ = uuid.uuid4()
    values = {"uuid": id_, "project_id": "config project", "name": "c", "group": "g"}
    world.insert(SoftwareConfig, {**values, "sealed": world.cipher.seal({})})
    api = world.client(auth="token")
    path = f"{root('admins')}/software_configs"
    [config] = api.get(path, headers=token(world, "admins", "admin"))["software_configs"]
    assert (config["id"], config["project"]) == (str(id_), "config project")
    assert api.get(path, headers=token(world, "admins", "member")) == {"software_configs": []}
    api.get(f"{path}?global_tenant=true", 403, headers=token(world, "admins", "admin"))


def test_types_for_admins_are_neither_listed_nor_shown_to_other_users(world: World, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("resource_types:Test::Plain: [admin]\n")
    api = world.client(auth="token", policy_file=tmp_path / "policy.yaml")
    member, admin = token(world, "p", "member"), token(world, "p", "admin")
    types = f"{root('p')}/resource_types"
    assert api.get(types, headers=member) == {"resource_types": []}
    assert api.get(types, headers=admin) == {"resource_types": ["Test::Plain"]}
    for path in (f"{types}/Test::Plain", f"{types}/Test::Plain/template"):
        message = api.message("GET", path, 403, headers=member)
        assert message == "You are not authorized to use resource_types:Test::Plain."
        api.get(path, headers=admin)
    # Even if the service is not there.
    message = api.message("GET", f"{types}/OS::Keystone::User", 403, headers=member)
    assert message == "You are not authorized to use OS::Keystone::User."
    api.get(f"{types}/OS::Keystone::User", 400, headers=admin)


def test_without_authentication_admins_are_only_where_the_setting_says_so(
    world: World, theirs: Made, project: str
) -> None:
    path = f"{root(project)}/stacks/{theirs.name}/{theirs.uuid}"
    world.client().get(path, 404)
    assert world.client(anonymous_admin=True).get(path)["stack"]["stack_name"] == theirs.name


def test_a_resource_credential_opens_no_other_resource(world: World, theirs: Made) -> None:
    """The rest of it is in tests/scenarios/keystone/test_signal_access.py, where resources give something."""
    api = world.client(auth="token")
    api.get(f"{root(theirs.project)}/stacks", 401, headers={"X-Auth-Token": "signal.forged"})
