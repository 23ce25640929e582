"""PostgreSQL and an API process, in a temporary folder."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from orchestrator.config import PREFIX
from orchestrator.embedded.postgres import DATABASE, Postgres
from orchestrator.embedded.process import Child, running
from orchestrator.security.encryption import new_key
from tests import template_cluster
from tests.template_cluster import FAST_SETTINGS

STREAMS: Final = 32  # of the viewers


@dataclass(frozen=True, slots=True)
class Server:
    """A running API."""

    url: str
    administrator: str  # URL of the database
    pid: int


@contextlib.contextmanager
def database() -> Iterator[Postgres]:
    """Keep an empty database running for a block."""
    with tempfile.TemporaryDirectory(prefix="console-bench-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        template_cluster.copy_to(folder / "postgres", FAST_SETTINGS)
        postgres = Postgres(folder / "postgres", FAST_SETTINGS)
        with running(postgres.child(), folder / "postgres.log"):
            yield postgres


@contextlib.contextmanager
def server(postgres: Postgres) -> Iterator[Server]:
    """Keep an API process running for a block. Each begins without any picture."""
    with tempfile.TemporaryDirectory(prefix="console-bench-api-") as name:
        port = _free_port()
        child = Child(
            name="orchestrator api",
            argv=(sys.executable, "-m", "orchestrator.cli.main", "api", "--port", str(port)),
            env={key: value for key, value in os.environ.items() if not key.startswith(PREFIX)}
            | {
                f"{PREFIX}DATABASE_URL": postgres.url(),
                f"{PREFIX}ENCRYPTION_KEYS": new_key(),
                f"{PREFIX}AUTH": "none",
                f"{PREFIX}BROKER_URL": "redis://127.0.0.1:1/0",
                f"{PREFIX}MAX_EVENT_STREAMS": str(STREAMS),
                f"{PREFIX}QUOTAS": "event_streams=-1",
            },
            ready=lambda _pid: _accepts(port),
        )
        with running(child, Path(name) / "api.log", ready_seconds=120.0) as process:
            address = f"http://127.0.0.1:{port}"
            yield Server(address, postgres.administrator_url(DATABASE), process.pid)


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
