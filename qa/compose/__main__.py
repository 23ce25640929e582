"""`make test-compose`: docker-compose.yml on a Docker engine, as docs/operations.md describes it.

A copy of the checkout is built and started. Checked are: a stack through the published port; a worker killed
during a create; four instead of two workers during a create, with tasks of all in Flower; metrics with the
token; data after `down` and `up`; no secret in `docker inspect`. Requires `docker` with the plugin `compose`.
Nothing remains but the image. With `--if-possible` a machine without engine or base images is no failure.
"""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx

from qa.compose.engine import ROOT, obstacle

API = "http://127.0.0.1:8004"
STACKS = f"{API}/v1/demo/stacks"
FLOWER = "http://127.0.0.1:5555"
SECRETS = re.compile(r"```\n(mkdir -m 700 secrets\n.*?)```", re.DOTALL)
LARGE = 1_000  # resources
SECONDS = 300.0


class Project:
    """A copy of the checkout, operated with `docker compose`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        files = run(ROOT, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
        for name in filter(None, files):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes((ROOT / name).read_bytes())
        snippet = SECRETS.search((folder / "docs" / "operations.md").read_text())
        assert snippet, "docs/operations.md does not describe the secrets"
        run(folder, "/bin/bash", "-euc", snippet[1])
        self.client = httpx.Client(timeout=60.0, follow_redirects=True)

    def compose(self, *arguments: str) -> str:
        """Run `docker compose`; return its output."""
        return run(self.folder, "docker", "compose", "--profile", "flower", *arguments)

    def build(self) -> None:
        """Build the image, with the builder that requires no registry."""
        name = json.loads(self.compose("config", "--format", "json"))["services"]["api"]["image"]
        run(self.folder, "docker", "build", "--quiet", "--tag", name, ".", DOCKER_BUILDKIT="0")
        programs = run(self.folder, "docker", "run", "--rm", name, "ls", "/opt/orchestrator/bin").split()
        assert not {"pytest", "ruff", "mypy", "uv", "pip"} & set(programs), programs

    def up(self, *services: str, workers: int = 2) -> None:
        """Start the services, and wait until they are healthy."""
        self.compose("up", "--detach", "--wait", "--scale", f"worker={workers}", *services)

    def sign_in(self) -> None:
        """Create a token for the following requests."""
        token = self.compose("exec", "-T", "api", "orchestrator", "token", "create", "--project", "demo")
        self.client.headers["X-Auth-Token"] = token.strip()

    def create(self, name: str, count: int) -> None:
        """Request a stack in which each resource depends on one of the first tenth."""
        resources: dict[str, Any] = {}
        for number in range(count):
            properties = {"value": f"v{number}", "action_wait_secs": {"create": 0.1}}
            resources[f"r{number}"] = {"type": "OS::Heat::TestResource", "properties": properties}
            if number >= 10:
                resources[f"r{number}"]["depends_on"] = f"r{number // 10}"
        template = {"heat_template_version": "2018-08-31", "resources": resources}
        self.client.post(STACKS, json={"stack_name": name, "template": template}).raise_for_status()

    def require_complete(self, name: str, count: int) -> None:
        """Wait for the end of a create, and check that each resource was created exactly once."""

        def settled() -> str:
            status: str = self.client.get(f"{STACKS}/{name}").json()["stack"]["stack_status"]
            return "" if status.endswith("IN_PROGRESS") else status

        status = eventually(settled)
        assert status == "CREATE_COMPLETE", status
        stack = self.client.get(f"{STACKS}/{name}").json()["stack"]["id"]
        created: list[str] = []
        marker = ""
        place = f"{STACKS}/{name}/{stack}/events?limit=1000"
        while events := self.client.get(place + marker).json()["events"]:
            created += [e["resource_name"] for e in events if e["resource_status"] == "CREATE_COMPLETE"]
            marker = f"&marker={events[-1]['id']}"
        created.remove(name)
        assert len(created) == len(set(created)) == count, (len(created), len(set(created)))

    def containers(self, service: str) -> list[str]:
        """Return the ids of the containers of a service."""
        return self.compose("ps", "--quiet", service).split()

    def process(self, container: str) -> int:
        """Return the process id of a container on this machine."""
        return int(run(self.folder, "docker", "inspect", "--format", "{{.State.Pid}}", container))


def run(folder: Path, *command: str, **env: str) -> str:
    """Return the output of a command; on failure its errors are shown."""
    ended = subprocess.run(
        command, cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise SystemExit(f"{' '.join(command[:6])} failed:\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def eventually(condition: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """Return the first true value of `condition`."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.5)
    return value


def kill_a_worker(project: Project) -> None:
    """Kill a worker during a create; Docker starts it again."""
    project.create("killed", LARGE)
    time.sleep(2)
    os.kill(project.process(project.containers("worker")[0]), signal.SIGKILL)
    project.require_complete("killed", LARGE)


def scale_during_a_create(project: Project) -> None:
    """Start two more workers during a create; Flower receives tasks of all four."""
    password = re.search(r"'admin:(.*?)'", (project.folder / "secrets" / "flower.py").read_text())
    assert password
    encoded = base64.b64encode(f"admin:{password[1]}".encode()).decode()
    flower = httpx.Client(base_url=FLOWER, headers={"Authorization": f"Basic {encoded}"}, timeout=30.0)
    project.create("scaled", LARGE)
    project.up(workers=4)
    names = {f"worker@{container[:12]}" for container in project.containers("worker")}
    assert len(names) == 4
    numbers = iter(range(20))

    def all_seen() -> bool:
        tasks = flower.get("/api/tasks", params={"limit": 10_000}).raise_for_status().json()
        seen = {task["worker"] for task in tasks.values()}
        if not names <= seen:
            project.create(f"more-{next(numbers)}", 200)
            time.sleep(5)
        return names <= seen

    project.require_complete("scaled", LARGE)
    eventually(all_seen)


def read_metrics(project: Project) -> None:
    """Read the metrics of the API, and a worker's from the network of the containers."""
    token = (project.folder / "secrets" / "metrics_token").read_text().strip()
    headers = {"Authorization": f"Bearer {token}"}
    assert httpx.get(f"{API}/metrics").status_code in {401, 403}
    assert "orchestrator_build_info" in httpx.get(f"{API}/metrics", headers=headers).raise_for_status().text
    fetch = (
        "import sys, urllib.request as r; print(r.urlopen(r.Request('http://worker:9105/metrics',"
        " headers={'Authorization': 'Bearer ' + sys.argv[1]})).read().decode())"
    )
    assert "orchestrator_checks_total" in project.compose("exec", "-T", "api", "python", "-c", fetch, token)


def require_no_secret_in_inspect(project: Project) -> None:
    """Check that `docker inspect` shows no secret, and that Flower has no file with other secrets."""
    shown = run(project.folder, "docker", "inspect", *project.compose("ps", "--all", "--quiet").split())
    for file in (project.folder / "secrets").iterdir():
        for word in re.findall(r"[A-Za-z0-9_=-]{40,}", file.read_text()):
            assert word not in shown, f"docker inspect shows the content of {file.name}"
    files = project.compose("exec", "-T", "flower", "ls", "/run/secrets").split()
    assert set(files) == {"broker_url", "flower_conf"}, files


def main(arguments: Sequence[str]) -> None:
    """Run all checks in order, and print the time of each."""
    if reason := obstacle():
        if "--if-possible" in arguments:
            print(f"test-compose is skipped: {reason}")
            return
        raise SystemExit(f"test-compose cannot run: {reason}")
    with tempfile.TemporaryDirectory(prefix="orchestrator-compose-") as name:
        project = Project(Path(name))
        try:
            steps: dict[str, Callable[[], None]] = {
                "image built": project.build,
                "healthy": project.up,
                "token created": project.sign_in,
                "stack requested": lambda: project.create("first", 100),
                "stack created": lambda: project.require_complete("first", 100),
                "worker killed, 1000 resources created once": lambda: kill_a_worker(project),
                "4 workers, tasks of all in Flower": lambda: scale_during_a_create(project),
                "metrics read": lambda: read_metrics(project),
                "no secret shown": lambda: require_no_secret_in_inspect(project),
                "stopped": lambda: project.compose("down") and None,
                "healthy again": project.up,
                "data kept": lambda: project.require_complete("killed", LARGE),
            }
            for title, step in steps.items():
                started = time.monotonic()
                step()
                print(f"{time.monotonic() - started:6.1f}s  {title}", flush=True)
            print("COMPOSE OK")
        finally:
            project.compose("down", "--volumes", "--timeout", "10")


if __name__ == "__main__":
    main(sys.argv[1:])
