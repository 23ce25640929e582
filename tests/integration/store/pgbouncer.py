"""A real PgBouncer in front of a test's database, if this machine has the program."""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from orchestrator.embedded.postgres import ROLE, Postgres
from orchestrator.embedded.process import Child, running

PROGRAM = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin:/opt/homebrew/bin")
CONFIGURATION = """
[databases]
* = host=/proc/self/cwd user={role} {database_options}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
max_client_conn = 300
default_pool_size = 100
{options}
"""

requires_pgbouncer = pytest.mark.skipif(
    PROGRAM is None, reason="PgBouncer is not installed (Debian: apt-get install pgbouncer)"
)


@contextmanager
def pgbouncer(server: Postgres, mode: str, *, options: str = "", database_options: str = "") -> Iterator[int]:
    """Run PgBouncer with a pool mode for the duration of a block; yield its port."""
    assert PROGRAM is not None
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with tempfile.TemporaryDirectory(prefix="orchestrator-pgbouncer-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(
            0o755
        )  # PgBouncer refuses to run as root, and reads its file as the account of the server
        file = folder / "pgbouncer.ini"
        file.write_text(
            CONFIGURATION.format(
                port=port, mode=mode, role=ROLE, options=options, database_options=database_options
            )
        )
        file.chmod(0o644)
        child = Child(
            name="pgbouncer",
            argv=(PROGRAM, "-q", str(file)),
            cwd=server.directory,
            account=server.account,
            ready=lambda _pid: _answers(port),
        )
        with running(child, folder / "pgbouncer.log"):
            yield port


def through(port: int, url: str) -> str:
    """Return the URL of the same database behind a PgBouncer."""
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    return f"postgresql://{ROLE}@127.0.0.1:{port}/{name}"


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
