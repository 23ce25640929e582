"""The servers of a measurement: PostgreSQL, Valkey and `orchestrator up`, in a folder gone afterwards."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg

from orchestrator.config import PREFIX
from orchestrator.embedded.postgres import DATABASE, Postgres
from orchestrator.embedded.process import Child, Process, running
from orchestrator.embedded.valkey import Valkey

READY_SECONDS = 120.0
# databases of the same Valkey; never in use at the same time
SYSTEM_DATABASE, YARDSTICK_DATABASE = 0, 1


@dataclass(frozen=True, slots=True)
class Servers:
    """A database and a broker, set up as `orchestrator up` does it."""

    folder: Path
    postgres: Postgres
    valkey: Valkey
    pids: dict[int, str]  # process ids and roles


@dataclass(frozen=True, slots=True)
class System:
    """A running `orchestrator up` on those servers."""

    servers: Servers
    process: Process
    url: str

    @property
    def roots(self) -> dict[int, str]:
        """The processes to watch, by pid."""
        return {**self.servers.pids, self.process.pid: "up"}

    def last_words(self, lines: int = 6) -> str:
        """Return the end of the log of everything below `up`: why a stack does not come to its end."""
        said = []
        for log in sorted((self.servers.folder / "data" / "logs").glob("*.log")):
            end = log.read_text(errors="replace").strip().splitlines()[-lines:]
            said += [f"  {log.stem}: {text}" for text in end]
        return "\n".join(said)

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        """Open a connection for looking on; it reaches rows by their keys, so that looking costs little."""
        return psycopg.connect(
            self.servers.postgres.administrator_url(DATABASE),
            autocommit=True,
            options="-c enable_seqscan=off -c jit=off",
        )


def clean_environment() -> dict[str, str]:
    """Return the environment without settings of the orchestrator."""
    return {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}


@contextlib.contextmanager
def servers() -> Iterator[Servers]:
    """Keep a database and a broker running for a block."""
    with tempfile.TemporaryDirectory(prefix="orchestrator-bench-") as name:
        folder = Path(name)
        # as root, the database runs under another account, which must be able to enter the folder
        folder.chmod(0o711)
        postgres, valkey = Postgres(folder / "postgres"), Valkey(folder / "valkey")
        with (
            running(postgres.child(), folder / "postgres.log") as database,
            running(valkey.child(), folder / "valkey.log") as broker,
        ):
            yield Servers(folder, postgres, valkey, {database.pid: "postgres", broker.pid: "valkey"})


@contextlib.contextmanager
def system(on: Servers, workers: int) -> Iterator[System]:
    """Keep workers and API running for a block, through the same command as everybody else's."""
    port = _free_port()
    log = on.folder / "up.log"
    log.unlink(missing_ok=True)
    arguments = ("--port", str(port), "--workers", str(workers), "--data-dir", str(on.folder / "data"))
    child = Child(
        name="orchestrator up",
        argv=(sys.executable, "-m", "orchestrator.cli.main", "up", *arguments),
        env=clean_environment()
        | {
            f"{PREFIX}DATABASE_URL": on.postgres.url(),
            f"{PREFIX}BROKER_URL": on.valkey.url(SYSTEM_DATABASE),
            # the benchmark measures what the API can serve
            f"{PREFIX}QUOTAS": "requests_per_second=-1,signals_per_second=-1",
        },
        ready=lambda _pid: "Ready: " in log.read_text(errors="replace"),
        death_signal=signal.SIGTERM,  # the process must stop its children
        stop_seconds=60.0,
    )
    with running(child, log, ready_seconds=READY_SECONDS) as process:
        yield System(on, process, f"http://127.0.0.1:{port}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
