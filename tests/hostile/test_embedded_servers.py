"""Local users against the embedded servers: no access to data, database and broker."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pytest

from orchestrator.embedded import accounts
from orchestrator.embedded.accounts import server_account
from orchestrator.embedded.data_dir import DataDir
from orchestrator.embedded.postgres import Postgres
from orchestrator.embedded.process import Process, running
from orchestrator.embedded.valkey import Valkey, connect
from orchestrator.errors import Misconfigured
from orchestrator.store.schema import migrate
from tests.hostile.other_user import NOBODY, as_nobody, as_root

FAST = {"fsync": "off", "shared_buffers": "64MB"}


@dataclass(frozen=True)
class Installation:
    """A data directory with running servers."""

    root: Path
    keys: Path
    postgres: Postgres
    valkey: Valkey
    processes: tuple[Process, ...]


@pytest.fixture(scope="module")
def installation() -> Iterator[Installation]:
    """Servers in a data directory whose parent directories are accessible to all users."""
    with tempfile.TemporaryDirectory(prefix="orchestrator-hostile-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        folder = DataDir(Path(name) / "data")
        postgres, valkey = Postgres(folder.root / "postgres", FAST), folder.valkey()
        with (
            folder.lock(),
            running(postgres.child(), folder.logs / "postgres.log") as database,
            running(valkey.child(), folder.logs / "valkey.log") as broker,
        ):
            migrate.upgrade(postgres.url())
            yield Installation(folder.root, folder.keys_file(), postgres, valkey, (database, broker))


def server_uid() -> int:
    account = server_account()
    return os.geteuid() if account is None else account.uid


# Access.


@as_root
def test_a_different_user_reads_and_writes_no_file(installation: Installation) -> None:
    paths = [installation.root, *installation.root.rglob("*")]
    assert len(paths) > 500

    def attack() -> list[str]:
        reached = []
        for path in paths:
            for flags in (os.O_RDONLY, os.O_WRONLY):
                with contextlib.suppress(PermissionError, IsADirectoryError):
                    os.close(os.open(path, flags | os.O_NONBLOCK))
                    reached.append(f"{path} {flags}")
            with contextlib.suppress(PermissionError):
                reached += map(str, path.iterdir())
            if path != installation.root:
                with contextlib.suppress(PermissionError):
                    reached.append(str(path.lstat()))
        return reached

    assert as_nobody(attack) == []


@as_root
@pytest.mark.parametrize("role", ["orchestrator", "orchestrator_admin", "postgres", "nobody"])
def test_a_different_user_cannot_connect_to_the_database(installation: Installation, role: str) -> None:
    url = installation.postgres.url("orchestrator", role)

    def attack() -> str:
        try:
            psycopg.connect(url, connect_timeout=5).close()
        except psycopg.OperationalError as error:
            return str(error)
        return "connected"

    assert "Permission denied" in as_nobody(attack)


@as_root
def test_access_to_the_socket_alone_does_not_suffice(installation: Installation) -> None:
    """The server checks the user, too: here its socket is reachable through a different directory."""
    original = installation.postgres.directory / ".s.PGSQL.5432"
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        os.link(original, Path(name) / original.name)
        original.chmod(0o777)

        def attack() -> str:
            try:
                psycopg.connect(f"postgresql://orchestrator@/orchestrator?host={name}").close()
            except psycopg.OperationalError as error:
                return str(error)
            return "connected"

        try:
            assert 'Peer authentication failed for user "orchestrator"' in as_nobody(attack)
        finally:
            original.chmod(0o700)


@as_root
def test_a_different_user_cannot_reach_the_broker(installation: Installation) -> None:
    path = installation.valkey.directory / "valkey.sock"
    assert path.is_socket()

    def attack() -> bool:
        with socket.socket(socket.AF_UNIX) as client, contextlib.suppress(PermissionError):
            client.connect(str(path))
            return True
        return False

    assert as_nobody(attack) is False
    with connect(installation.valkey.url()) as client:
        assert client.config_get("port") == {"port": "0"}


@as_root
def test_a_different_user_cannot_inspect_the_servers(installation: Installation) -> None:
    pids = [process.pid for process in installation.processes]

    def attack() -> list[str]:
        reached = []
        for pid in pids:
            for name in ("environ", "mem"):
                with contextlib.suppress(PermissionError):
                    os.close(os.open(f"/proc/{pid}/{name}", os.O_RDONLY))
                    reached.append(f"{pid} {name}")
            with contextlib.suppress(PermissionError):
                reached.append(str(Path(f"/proc/{pid}/cwd").readlink()))
            with contextlib.suppress(PermissionError):
                reached += map(str, Path(f"/proc/{pid}/fd").iterdir())
            with contextlib.suppress(PermissionError):
                os.kill(pid, 0)
                reached.append(f"signal {pid}")
        return reached

    assert as_nobody(attack) == []


def test_the_servers_run_as_a_user_of_their_own(installation: Installation) -> None:
    assert server_uid() not in {0, NOBODY}
    for process in installation.processes:
        assert Path(f"/proc/{process.pid}").stat().st_uid == server_uid()


def test_no_secret_is_in_the_arguments_of_the_servers_or_in_the_logs(installation: Installation) -> None:
    keys = installation.keys.read_text().strip()
    shown = [Path(f"/proc/{process.pid}/cmdline").read_text() for process in installation.processes]
    shown += [path.read_text() for path in (installation.root / "logs").iterdir()]
    assert not [text for text in shown if keys in text or "password" in text.lower()]
    assert installation.keys.stat().st_mode & 0o777 == 0o600


# Roles.


def test_the_application_owns_the_database_and_is_no_superuser(installation: Installation) -> None:
    with psycopg.connect(installation.postgres.url(), autocommit=True) as db:
        owned = db.execute(
            "SELECT pg_get_userbyid(datdba) = current_user FROM pg_database WHERE datname = 'orchestrator'"
        )
        assert owned.fetchone() == (True,)
        attributes = db.execute(
            "SELECT rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls FROM pg_roles"
            " WHERE rolname = current_user"
        )
        assert attributes.fetchone() == (False,) * 5
        for forbidden in (
            "COPY (SELECT 1) TO PROGRAM 'id'",
            "SELECT pg_read_file('PG_VERSION')",
            "SELECT * FROM pg_authid",
            "ALTER SYSTEM SET listen_addresses = '*'",
            "CREATE ROLE intruder SUPERUSER",
            "SET ROLE orchestrator_admin",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute(forbidden)


def test_tcp_requires_a_password_that_no_role_has(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = Postgres(tmp_path / "postgres", FAST | {"listen_addresses": "127.0.0.1", "port": str(port)})
    ready = replace(server.child(), ready=lambda _pid: answers(f"{server.administrator_url()}&port={port}"))
    with running(ready, tmp_path / "log"):
        for role in ("orchestrator", "orchestrator_admin"):
            for password in ("", "orchestrator"):
                with pytest.raises(psycopg.OperationalError, match="password"):
                    psycopg.connect(
                        host="127.0.0.1", port=port, user=role, password=password, dbname="postgres"
                    )


# The account.


@as_root
def test_a_user_that_cannot_be_created_is_reported_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "NAME", "orchestrator-absent")
    monkeypatch.setattr(accounts.shutil, "which", lambda *_arguments, **_options: None)
    with pytest.raises(Misconfigured, match=r"create it with `useradd --system .*ordinary user"):
        server_account()


@as_root
@pytest.mark.parametrize("name", ["root", "nobody"])
def test_a_shared_user_is_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(accounts, "NAME", name)
    with pytest.raises(Misconfigured, match="has the uid of"):
        server_account()


def answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True
