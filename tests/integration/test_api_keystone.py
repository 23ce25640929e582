"""`auth = keystone`: a token is Keystone's word, asked of a stand-in for it that knows a few."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import datetime as dt
import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from api_world import Client, World, project, root, world  # noqa: F401 - fixtures

pytest.importorskip("keystonemiddleware")

# The library reads requests with WebOb, which imports `cgi`.
pytestmark = pytest.mark.filterwarnings("ignore:'cgi' is deprecated:DeprecationWarning")

SERVICE = "the service's own token"


class Identity(http.server.BaseHTTPRequestHandler):
    """As much of Keystone v3 as checking a token takes."""

    tokens: ClassVar[dict[str, dict[str, Any]]] = {}
    asked: ClassVar[list[str]] = []
    away = False

    def do_GET(self) -> None:
        if self.path.rstrip("/") == "/v3":
            link = {"rel": "self", "href": f"{self.place}/v3/"}
            return self.answer(200, {"version": {"id": "v3.14", "status": "stable", "links": [link]}})
        self.asked.append(self.headers["X-Subject-Token"])
        if self.away:
            return self.answer(500, {})
        assert self.headers["X-Auth-Token"] == SERVICE
        token = self.tokens.get(self.headers["X-Subject-Token"])
        return self.answer(404, {"error": {"message": "none"}}) if token is None else self.told(200, token)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["auth"]
        user = asked["identity"]["password"]["user"]
        assert (user["name"], user["password"]) == ("heat", "secret")
        self.told(201, token(project="service", roles=["service"], place=self.place))

    @property
    def place(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"  # type: ignore[attr-defined]

    def told(self, status: int, body: dict[str, Any]) -> None:
        self.answer(status, {"token": body}, {"X-Subject-Token": SERVICE})

    def answer(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {
            **(headers or {}),
            "Content-Type": "application/json",
            "Content-Length": str(len(data)),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


def token(
    project: str | None = None,
    roles: list[str] | None = None,
    minutes: int = 60,
    place: str = "",
    **more: Any,
) -> dict[str, Any]:
    """Return what a token is, as Keystone shows it."""
    now = dt.datetime.now(dt.UTC)
    domain = {"id": "default", "name": "Default"}
    catalog = [
        {
            "type": kind,
            "name": kind,
            "endpoints": [{"interface": "internal", "region": "RegionOne", "url": url}],
        }
        for kind, url in (("identity", f"{place}/v3"), ("orchestration", "http://here/v1"))
    ]
    scope = {"project": {"id": project, "name": project, "domain": domain}} if project else {}
    return {
        "methods": ["password"],
        "user": {"id": "u1", "name": "ada", "domain": domain},
        "audit_ids": ["x"],
        "expires_at": f"{now + dt.timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%S.000000Z}",
        "issued_at": f"{now:%Y-%m-%dT%H:%M:%S.000000Z}",
        "roles": [{"id": name, "name": name} for name in roles or ["member", "reader"]],
        "catalog": catalog,
        **scope,
        **more,
    }


@pytest.fixture(scope="module")
def identity() -> Iterator[type[Identity]]:
    """The stand-in, listening; its class holds what it knows."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Identity)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    Identity.port = server.server_port  # type: ignore[attr-defined]
    yield Identity
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def keystone(world: World, identity: Any) -> Client:
    """A client of an application that asks it."""
    return client(world, identity)


def client(world: World, identity: Any, **more: Any) -> Client:
    return world.client(
        auth="keystone",
        keystone_auth_url=f"http://127.0.0.1:{identity.port}/v3",
        keystone_username="heat",
        keystone_password="secret",
        **more,
    )


def knows(identity: type[Identity], text: str, **more: Any) -> dict[str, str]:
    """Have the stand-in know a token; return the headers that show it."""
    identity.tokens[text] = token(**more)
    return {"X-Auth-Token": text}


def test_a_token_opens_its_project_and_no_other(
    keystone: Client, identity: type[Identity], world: World, project: str
) -> None:
    world.stack(project, "mine")
    headers = knows(identity, "good", project=project)
    assert [
        stack["stack_name"] for stack in keystone.get(f"{root(project)}/stacks", headers=headers)["stacks"]
    ] == ["mine"]
    keystone.get(f"{root('another project')}/stacks", 403, headers=headers)


def test_a_good_token_is_asked_about_once(keystone: Client, identity: type[Identity], project: str) -> None:
    headers = knows(identity, "often", project=project)
    for _ in range(3):
        keystone.get(f"{root(project)}/stacks", headers=headers)
    assert identity.asked.count("often") == 1


@pytest.mark.parametrize("headers", [{}, {"X-Auth-Token": ""}, {"X-Auth-Token": "forged"}])
def test_without_a_good_token_it_is_401_in_the_token_checks_shape(
    keystone: Client, identity: Any, project: str, headers: dict[str, str]
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


def test_an_expired_token_is_401(keystone: Client, identity: type[Identity], project: str) -> None:
    headers = knows(identity, "old", project=project, minutes=-1)
    keystone.get(f"{root(project)}/stacks", 401, headers=headers)


def test_a_token_without_a_project_opens_none(keystone: Client, identity: type[Identity]) -> None:
    headers = knows(identity, "unscoped")
    keystone.get("/any/stacks", 403, headers=headers)


def test_headers_that_the_library_would_set_say_nothing(
    keystone: Client, identity: type[Identity], project: str
) -> None:
    forged = {
        "X-Identity-Status": "Confirmed",
        "X-Project-Id": project,
        "X-User-Name": "admin",
        "X-Roles": "admin",
    }
    keystone.get(f"{root(project)}/stacks", 401, headers=forged)
    headers = knows(identity, "modest", project="modest project")
    keystone.get(f"{root(project)}/stacks", 403, headers={**forged, **headers})


def test_while_keystone_is_away_the_answer_is_503(
    keystone: Client, identity: type[Identity], project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "away", True)
    headers = knows(identity, "unlucky", project=project)
    message = keystone.message("GET", f"{root(project)}/stacks", 503, headers=headers)
    assert message == "The Keystone service is temporarily unavailable."
    monkeypatch.setattr(identity, "away", False)
    keystone.get(f"{root(project)}/stacks", headers=headers)


def test_access_rules_of_application_credentials_hold(
    keystone: Client, identity: type[Identity], project: str
) -> None:
    rules = [{"id": "r", "service": "orchestration", "method": "GET", "path": f"/v1{root(project)}/stacks"}]
    headers = knows(
        identity, "ruled", project=project, application_credential={"id": "a", "access_rules": rules}
    )
    keystone.get(f"{root(project)}/stacks", headers=headers)
    keystone.get(f"{root(project)}/resource_types", 401, headers=headers)
    keystone.ask("POST", f"{root(project)}/stacks", 401, headers=headers, json={})


def test_roles_are_keystones_but_that_of_a_stacks_user(
    keystone: Client, identity: type[Identity], world: World, project: str
) -> None:
    stack = world.stack(project, "roled")
    world.resource(stack, "thing")
    metadata = f"{stack.path}/resources/thing/metadata"
    keystone.get(metadata, headers=knows(identity, "reading", project=project, roles=["reader"]))
    keystone.get(metadata, 403, headers=knows(identity, "within", project=project, roles=["heat_stack_user"]))
    reading = knows(identity, "reading", project=project, roles=["reader"])
    keystone.ask("DELETE", stack.path, 403, headers=reading)


def test_admins_are_made_in_the_admin_project(
    keystone: Client, identity: type[Identity], world: World, project: str
) -> None:
    stack = world.stack(project, "visited")
    admin = knows(identity, "root", project="admins", roles=["admin"])
    assert keystone.get(stack.path, headers=admin)["stack"]["stack_name"] == "visited"
    elsewhere = knows(identity, "local root", project="own", roles=["admin"], is_admin_project=False)
    keystone.get(stack.path, 403, headers=elsewhere)
    keystone.get(f"{root('own')}/stacks/{stack.name}/{stack.uuid}", 404, headers=elsewhere)
