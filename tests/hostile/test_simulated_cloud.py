"""Web pages and other local users cannot use the simulated cloud."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import httpx
import pytest

from orchestrator.embedded.simulated_cloud import PASSWORD_FILE, SIMULATED, kept_password, settings_of
from orchestrator.errors import Misconfigured
from orchestrator.simulated.cloud import SimulatedCloud
from orchestrator.simulated.contents import ACCOUNTS, new_password
from orchestrator.simulated.server import LoopThread
from orchestrator.simulated.storage import FileStorage
from tests.integration.api_world import World, project, root, world

__all__ = ["project", "world"]  # fixtures

JSON = {"Content-Type": "application/json"}
FOREIGN_HOSTS = (
    "evil.example",
    "evil.example:18300",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "192.0.2.1",
)
OWN_HOSTS = ("localhost", "demo.localhost:80", "127.0.0.1", "127.5.5.5:1", "[::1]:18300")
PAGES = (
    {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
)


def sign_in(cloud: SimulatedCloud, password: str, name: str = "admin", **headers: str) -> httpx.Response:
    """Ask Keystone for a token of a user in the project."""
    user = {"name": name, "domain": {"name": "Default"}, "password": password}
    scope = {"project": {"name": "demo", "domain": {"name": "Default"}}}
    body = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}}
    content: Any = httpx.Request("POST", "http://x", json=body).content
    return httpx.post(f"{cloud.auth_url}/auth/tokens", content=content, headers={**JSON, **headers})


def test_a_page_with_a_rebound_name_reaches_no_service(simulated_cloud: SimulatedCloud) -> None:
    for service in simulated_cloud.services.values():
        for host in FOREIGN_HOSTS:
            assert httpx.get(f"{service.base}/", headers={"Host": host}).status_code == 421
        for host in OWN_HOSTS:
            assert httpx.get(f"{service.base}/", headers={"Host": host}).status_code != 421
    for host in FOREIGN_HOSTS:
        assert sign_in(simulated_cloud, simulated_cloud.password, Host=host).status_code == 421


def test_a_page_of_another_site_gets_no_token(simulated_cloud: SimulatedCloud) -> None:
    password = simulated_cloud.password
    for headers in PAGES:
        assert sign_in(simulated_cloud, password, **headers).status_code == 403
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        assert sign_in(simulated_cloud, password, **{"Content-Type": kind}).status_code == 415
    assert sign_in(simulated_cloud, password, **{"Sec-Fetch-Site": "none"}).status_code == 201
    assert sign_in(simulated_cloud, password).status_code == 201


def test_known_passwords_are_wrong(simulated_cloud: SimulatedCloud) -> None:
    for guess in ("simulated", "admin", "demo", "password", ""):
        assert sign_in(simulated_cloud, guess).status_code in {400, 401}
        for user in ACCOUNTS - {"demo"}:
            assert sign_in(simulated_cloud, guess, user).status_code in {400, 401}
    assert len({new_password() for _ in range(100)}) == 100


def test_a_shared_password_is_of_a_plain_member_only(simulated_cloud: SimulatedCloud) -> None:
    answer = sign_in(simulated_cloud, "simulated", "demo")
    assert answer.status_code == 201
    roles = {role["name"] for role in answer.json()["token"]["roles"]}
    assert roles <= {"member", "reader", "heat_stack_owner"}
    for headers in PAGES:
        assert sign_in(simulated_cloud, "simulated", "demo", **headers).status_code == 403
    for host in FOREIGN_HOSTS:
        assert sign_in(simulated_cloud, "simulated", "demo", Host=host).status_code == 421
    token = sign_in(simulated_cloud, simulated_cloud.password).headers["X-Subject-Token"]
    users = httpx.get(f"{simulated_cloud.auth_url}/users", headers={"X-Auth-Token": token}).json()["users"]
    assert all("password" not in name for user in users for name in set(user) - {"password_expires_at"})


def test_a_data_directory_keeps_its_password_for_its_owner_only(tmp_path: Path) -> None:
    password = kept_password(tmp_path, "first")
    assert (password, kept_password(tmp_path, "second"), kept_password(tmp_path)) == ("first",) * 3
    file = tmp_path / SIMULATED / PASSWORD_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.unlink()
    with pytest.raises(Misconfigured, match="cannot read"):
        kept_password(tmp_path)
    file.symlink_to("/etc/passwd")
    with pytest.raises(Misconfigured, match="cannot read"):
        kept_password(tmp_path)


def test_the_users_of_an_earlier_cloud_get_the_new_password(tmp_path: Path) -> None:
    thread = LoopThread()
    for password in ("simulated", "random"):
        cloud = SimulatedCloud(storage=FileStorage(tmp_path / "objects"), password=password)
        thread.run(cloud.listen())
        assert sign_in(cloud, password).status_code == 201
        users = {user["name"]: user["password"] for user in cloud.keystone.users.table}
        assert {users[name] for name in ACCOUNTS} == {password}
        thread.run(cloud.close())
    thread.stop()


@pytest.mark.filterwarnings("ignore:'cgi' is deprecated:DeprecationWarning")
def test_the_api_of_a_simulated_cloud_serves_no_foreign_names(
    world: World, simulated_cloud: SimulatedCloud, project: str
) -> None:
    settings = settings_of(simulated_cloud.keystone.port, simulated_cloud.password)
    domain = ("stack_user_domain_name", "stack_domain_admin", "stack_domain_admin_password")
    api = world.client(**{name: value for name, value in settings.items() if name not in domain})
    token = sign_in(simulated_cloud, simulated_cloud.password)
    stacks = f"{root(token.json()['token']['project']['id'])}/stacks"
    headers = {"X-Auth-Token": token.headers["X-Subject-Token"]}
    for host in FOREIGN_HOSTS:
        for path in ("/v1" + stacks, "/ui/sign-in", "/", "/openapi.json"):
            assert api.http.get(path, headers={**headers, "Host": host}).status_code == 421
    for host in OWN_HOSTS:
        assert api.http.get("/v1" + stacks, headers={**headers, "Host": host}).status_code == 200
    remote = {"REMOTE_ADDR": "192.0.2.1"}  # permitted by --host, with a token
    assert api.http.get("/v1" + stacks, headers=headers, environ_overrides=remote).status_code == 200
