"""`orchestrator api` and `worker` as processes, also in a directory with modules named like theirs."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest

from orchestrator.embedded.process import Child, running
from orchestrator.security.encryption import new_key

COMMAND = str(Path(sys.executable).with_name("orchestrator"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory whose modules would end every process that imports them."""
    for name in ("api", "tasks", "alembic", "celery", "gunicorn"):
        (tmp_path / f"{name}.py").write_text(
            f"raise SystemExit('{name} was imported from the current directory')\n"
        )
    return tmp_path


@pytest.fixture
def env(postgres_url: str, broker_url: str) -> Mapping[str, str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("ORCHESTRATOR_")}
    return clean | {
        "ORCHESTRATOR_AUTH": "none",
        "ORCHESTRATOR_DATABASE_URL": postgres_url,
        "ORCHESTRATOR_BROKER_URL": broker_url,
        "ORCHESTRATOR_ENCRYPTION_KEYS": new_key(),
    }


def test_the_api_serves_and_ends_with_sigterm(folder: Path, env: Mapping[str, str]) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    def ready(_pid: int) -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{port}/healthcheck", trust_env=False).is_success
        except httpx.HTTPError:
            return False

    child = Child(name="api", argv=(COMMAND, "api", "--port", str(port)), env=env, cwd=folder, ready=ready)
    with running(child, folder / "api.log") as process:
        assert httpx.get(f"http://127.0.0.1:{port}/v1/demo/stacks", trust_env=False).json() == {"stacks": []}
        process.signal(signal.SIGTERM)
        assert process.wait(30)
        assert process.returncode == 0


def test_a_worker_takes_messages_and_ends_with_sigterm(folder: Path, env: Mapping[str, str]) -> None:
    ready = folder / "ready"
    child = Child(
        name="worker",
        argv=(COMMAND, "worker", "--queues", "check,bulk", "--name", "check1@%h"),
        env={**env, "ORCHESTRATOR_READY_PATH": str(ready)},
        cwd=folder,
        ready=lambda pid: ready.exists() and ready.read_text() == str(pid),
    )
    with running(child, folder / "worker.log") as process:
        process.signal(signal.SIGTERM)
        assert process.wait(30)
        assert process.returncode == 0
    # Celery logs the node name after the signal `worker_ready`, which writes the ready file.
    assert "check1@" in (folder / "worker.log").read_text()
