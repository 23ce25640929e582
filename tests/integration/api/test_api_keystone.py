"""`auth = keystone`: a token is Keystone's word, asked of a stand-in for it that knows a few."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import pytest

from tests.integration.api_world import Client, World, project, root, world  # noqa: F401 - fixtures
from tests.plugins.stand_in_keystone import StandIn, identity  # noqa: F401 - a fixture

# The library reads requests with WebOb, which imports `cgi`.
pytestmark = pytest.mark.filterwarnings("ignore:'cgi' is deprecated:DeprecationWarning")


@pytest.fixture(scope="module")
def keystone(world: World, identity: StandIn) -> Client:
    """A client of an application that asks it."""
    return world.client(**identity.settings())


def test_a_token_opens_its_project_and_no_other(
    keystone: Client, identity: StandIn, world: World, project: str
) -> None:
    world.stack(project, "mine")
    headers = identity.knows("good", project=project)
    assert [
        stack["stack_name"] for stack in keystone.get(f"{root(project)}/stacks", headers=headers)["stacks"]
    ] == ["mine"]
    keystone.get(f"{root('another project')}/stacks", 403, headers=headers)


def test_a_good_token_is_asked_about_once(keystone: Client, identity: StandIn, project: str) -> None:
    headers = identity.knows("often", project=project)
    for _ in range(3):
        keystone.get(f"{root(project)}/stacks", headers=headers)
    assert identity.asked.count("often") == 1


@pytest.mark.parametrize("headers", [{}, {"X-Auth-Token": ""}, {"X-Auth-Token": "forged"}])
def test_without_a_good_token_it_is_401_in_the_token_checks_shape(
    keystone: Client, identity: StandIn, project: str, headers: dict[str, str]
) -> None:
    response = keystone.http.get(f"/v1{root(project)}/stacks", headers=headers)
    assert response.status_code == 401
    assert response.get_json() == {
        "error": {
            "code": 401,
            "title": "Unauthorized",
            "message": "The request you have made requires authentication.",
        }
    }
    assert response.headers["WWW-Authenticate"] == f'Keystone uri="http://127.0.0.1:{identity.port}/v3"'


def test_an_expired_token_is_401(keystone: Client, identity: StandIn, project: str) -> None:
    headers = identity.knows("old", project=project, minutes=-1)
    keystone.get(f"{root(project)}/stacks", 401, headers=headers)


def test_a_token_without_a_project_opens_none(keystone: Client, identity: StandIn) -> None:
    headers = identity.knows("unscoped")
    keystone.get("/any/stacks", 403, headers=headers)


def test_headers_that_the_library_would_set_say_nothing(
    keystone: Client, identity: StandIn, project: str
) -> None:
    forged = {
        "X-Identity-Status": "Confirmed",
        "X-Project-Id": project,
        "X-User-Name": "admin",
        "X-Roles": "admin",
    }
    keystone.get(f"{root(project)}/stacks", 401, headers=forged)
    headers = identity.knows("modest", project="modest project")
    keystone.get(f"{root(project)}/stacks", 403, headers={**forged, **headers})


def test_while_keystone_is_away_the_answer_is_503(
    keystone: Client, identity: StandIn, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "away", True)
    headers = identity.knows("unlucky", project=project)
    message = keystone.message("GET", f"{root(project)}/stacks", 503, headers=headers)
    assert message == "The Keystone service is temporarily unavailable."
    monkeypatch.setattr(identity, "away", False)
    keystone.get(f"{root(project)}/stacks", headers=headers)


def test_access_rules_of_application_credentials_hold(
    keystone: Client, identity: StandIn, project: str
) -> None:
    rules = [{"id": "r", "service": "orchestration", "method": "GET", "path": f"/v1{root(project)}/stacks"}]
    headers = identity.knows(
        "ruled", project=project, application_credential={"id": "a", "access_rules": rules}
    )
    keystone.get(f"{root(project)}/stacks", headers=headers)
    keystone.get(f"{root(project)}/resource_types", 401, headers=headers)
    keystone.ask("POST", f"{root(project)}/stacks", 401, headers=headers, json={})


def test_roles_are_keystones_but_that_of_a_stacks_user(
    keystone: Client, identity: StandIn, world: World, project: str
) -> None:
    stack = world.stack(project, "roled")
    world.resource(stack, "thing")
    metadata = f"{stack.path}/resources/thing/metadata"
    keystone.get(metadata, headers=identity.knows("reading", project=project, roles=["reader"]))
    keystone.get(metadata, 403, headers=identity.knows("within", project=project, roles=["heat_stack_user"]))
    reading = identity.knows("reading", project=project, roles=["reader"])
    keystone.ask("DELETE", stack.path, 403, headers=reading)


def test_admins_are_made_in_the_admin_project(
    keystone: Client, identity: StandIn, world: World, project: str
) -> None:
    stack = world.stack(project, "visited")
    admin = identity.knows("root", project="admins", roles=["admin"])
    assert keystone.get(stack.path, headers=admin)["stack"]["stack_name"] == "visited"
    elsewhere = identity.knows("local root", project="own", roles=["admin"], is_admin_project=False)
    keystone.get(stack.path, 403, headers=elsewhere)
    keystone.get(f"{root('own')}/stacks/{stack.name}/{stack.uuid}", 404, headers=elsewhere)
