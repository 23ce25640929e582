"""Web pages and guessed passwords get no token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from simulated_openstack.cloud import SimulatedCloud, running_cloud
from simulated_openstack.contents import ACCOUNTS, new_password
from simulated_openstack.storage import FileStorage

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


def test_a_page_with_a_rebound_name_reaches_no_service(cloud: SimulatedCloud) -> None:
    for service in cloud.services.values():
        for host in FOREIGN_HOSTS:
            assert httpx.get(f"{service.base}/", headers={"Host": host}).status_code == 421
        for host in OWN_HOSTS:
            assert httpx.get(f"{service.base}/", headers={"Host": host}).status_code != 421
    for host in FOREIGN_HOSTS:
        assert sign_in(cloud, cloud.password, Host=host).status_code == 421


def test_a_page_of_another_site_gets_no_token(cloud: SimulatedCloud) -> None:
    password = cloud.password
    for headers in PAGES:
        assert sign_in(cloud, password, **headers).status_code == 403
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        assert sign_in(cloud, password, **{"Content-Type": kind}).status_code == 415
    assert sign_in(cloud, password, **{"Sec-Fetch-Site": "none"}).status_code == 201
    assert sign_in(cloud, password).status_code == 201


def test_known_passwords_are_wrong(cloud: SimulatedCloud) -> None:
    for guess in ("simulated", "admin", "demo", "password", ""):
        assert sign_in(cloud, guess).status_code in {400, 401}
        for user in ACCOUNTS - {"demo"}:
            assert sign_in(cloud, guess, user).status_code in {400, 401}
    assert len({new_password() for _ in range(100)}) == 100


def test_a_shared_password_is_of_a_plain_member_only(cloud: SimulatedCloud) -> None:
    answer = sign_in(cloud, "simulated", "demo")
    assert answer.status_code == 201
    roles = {role["name"] for role in answer.json()["token"]["roles"]}
    assert roles <= {"member", "reader", "heat_stack_owner"}
    for headers in PAGES:
        assert sign_in(cloud, "simulated", "demo", **headers).status_code == 403
    for host in FOREIGN_HOSTS:
        assert sign_in(cloud, "simulated", "demo", Host=host).status_code == 421
    token = sign_in(cloud, cloud.password).headers["X-Subject-Token"]
    users = httpx.get(f"{cloud.auth_url}/users", headers={"X-Auth-Token": token}).json()["users"]
    assert all("password" not in name for user in users for name in set(user) - {"password_expires_at"})


def test_the_users_of_an_earlier_cloud_get_the_new_password(tmp_path: Path) -> None:
    for password in ("simulated", "random"):
        with running_cloud(storage=FileStorage(tmp_path / "objects"), password=password) as cloud:
            assert sign_in(cloud, password).status_code == 201
            users = {user["name"]: user["password"] for user in cloud.keystone.users.table}
            assert {users[name] for name in ACCOUNTS} == {password}
