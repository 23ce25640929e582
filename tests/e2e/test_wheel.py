"""The wheel, in its own environment outside the tree, runs the server."""

from __future__ import annotations

import re
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import httpx

from orchestrator.embedded.simulated_cloud import PORTS, auth_url, kept_password
from tests.e2e.running import Up, environment, eventually, free_ports


def test_it_carries_the_migrations_below_our_own_package(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "orchestrator/migrations/env.py" in names
    assert "orchestrator/migrations/versions/0052_baseline.py" in names
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {
        "orchestrator",
        "api",
        "tasks",
    }


def test_it_runs_the_server_away_from_the_tree(
    installed: Path, start_up: Callable[..., Up], tmp_path: Path
) -> None:
    where = subprocess.run(
        [installed / "bin" / "python", "-c", "import orchestrator, api, tasks; print(orchestrator.__file__)"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert Path(where).is_relative_to(installed)
    # A folder whose files are named as our packages are must not get in the way.
    for name in ("tasks", "api", "orchestrator"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong module')")
    command = (str(installed / "bin" / "orchestrator"),)
    up = start_up(Path("data"), command=command, cwd=tmp_path).wait_ready()
    assert httpx.get(f"{up.url}/healthcheck").text == "OK"
    page = httpx.get(f"{up.url}/ui", follow_redirects=True).text
    assert "<title>Overview" in page
    for style in re.findall(r'href="([^"]+\.css)"', page):
        assert httpx.get(f"{up.url}{style}").status_code == 200
    up.create("first")
    assert eventually(lambda: up.status("first") == "CREATE_COMPLETE")
    assert up.stop() == 0
    assert (tmp_path / "data" / "postgres").is_dir()


def test_its_simulated_cloud_keeps_its_objects_after_a_restart(
    installed: Path, start_up: Callable[..., Up], tmp_path: Path
) -> None:
    port = free_ports(PORTS)
    options = ("--cloud", "simulated", "--cloud-port", str(port))

    def start() -> Up:
        command = (str(installed / "bin" / "orchestrator"),)
        up = start_up(Path("data"), command=command, cwd=tmp_path, options=options)
        return up.wait_ready(120, "OS_REGION_NAME=RegionOne")

    up = start()
    password = kept_password(tmp_path / "data")
    user = {"name": "demo", "domain": {"name": "Default"}, "password": password}
    scope = {"project": {"name": "demo", "domain": {"name": "Default"}}}
    body = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}}
    token = httpx.post(f"{auth_url(port)}/auth/tokens", json=body).headers["X-Subject-Token"]
    nova = f"http://127.0.0.1:{port + 3}/v2.1"
    with httpx.Client(headers={"X-Auth-Token": token}) as cloud:
        cloud.post(f"{nova}/os-keypairs", json={"keypair": {"name": "kept"}}).raise_for_status()
        assert up.stop() == 0
        up = start()
        [pair] = cloud.get(f"{nova}/os-keypairs").json()["keypairs"]
    assert pair["keypair"]["name"] == "kept"
    assert up.stop() == 0
