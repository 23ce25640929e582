"""Web pages and other local users cannot use the API with the simulated cloud."""

from __future__ import annotations

import stat
from pathlib import Path

import httpx
import pytest

from orchestrator.embedded.simulated_cloud import PASSWORD_FILE, SIMULATED, kept_password, settings_of
from orchestrator.errors import Misconfigured
from simulated_openstack.cloud import SimulatedCloud
from tests.integration.api_world import World, project, root, world

__all__ = ["project", "world"]  # fixtures

FOREIGN_HOSTS = (
    "evil.example",
    "evil.example:18300",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "192.0.2.1",
)
OWN_HOSTS = ("localhost", "demo.localhost:80", "127.0.0.1", "127.5.5.5:1", "[::1]:18300")


def sign_in(cloud: SimulatedCloud) -> httpx.Response:
    """Ask Keystone for a token of the administrator in the project."""
    user = {"name": "admin", "domain": {"name": "Default"}, "password": cloud.password}
    scope = {"project": {"name": "demo", "domain": {"name": "Default"}}}
    body = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}}
    return httpx.post(f"{cloud.auth_url}/auth/tokens", json=body)


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


@pytest.mark.filterwarnings("ignore:'cgi' is deprecated:DeprecationWarning")
def test_the_api_of_a_simulated_cloud_serves_no_foreign_names(
    world: World, simulated_cloud: SimulatedCloud, project: str
) -> None:
    settings = settings_of(simulated_cloud.keystone.port, simulated_cloud.password)
    domain = ("stack_user_domain_name", "stack_domain_admin", "stack_domain_admin_password")
    given = {name: value for name, value in settings.items() if name not in domain}
    api = world.client(local=True, **given)
    token = sign_in(simulated_cloud)
    stacks = f"{root(token.json()['token']['project']['id'])}/stacks"
    headers = {"X-Auth-Token": token.headers["X-Subject-Token"]}
    for host in FOREIGN_HOSTS:
        for path in ("/v1" + stacks, "/ui/sign-in", "/", "/openapi.json"):
            assert api.http.get(path, headers={**headers, "Host": host}).status_code == 421
    for host in OWN_HOSTS:
        assert api.http.get("/v1" + stacks, headers={**headers, "Host": host}).status_code == 200
    remote = {"REMOTE_ADDR": "192.0.2.1"}  # permitted by --host, with a token
    assert api.http.get("/v1" + stacks, headers=headers, environ_overrides=remote).status_code == 200
