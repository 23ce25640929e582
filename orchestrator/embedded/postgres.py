"""PostgreSQL 18 from its wheel, in its own data directory, on a private unix socket.

The server is started in its data directory, and uses its working directory for data and socket. Its account
therefore needs no access to the parent directories: the data can be in root's home.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from orchestrator.embedded.binaries import postgres_bin
from orchestrator.embedded.process import Child, identity, server_account
from orchestrator.embedded.socket_paths import short_path
from orchestrator.errors import Misconfigured
from orchestrator.store.schema.migrate import ensure_database

VERSION = "18"
ROLE = "orchestrator"
DATABASE = "orchestrator"
SOCKET = ".s.PGSQL.5432"
ORPHAN_SECONDS = 30.0  # limit for the shutdown of a server whose supervisor died
SERVER_ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
CONFIG_FILE = "orchestrator.conf"
INCLUDES = f"""
include_if_exists = '{CONFIG_FILE}'  # replaced at every start
include_if_exists = 'local.conf'  # for your settings; overrides it
"""
LOCAL = "# Your settings. They override orchestrator.conf; most require a restart.\n"


class Postgres:
    """A server: its data directory, its process and its URL."""

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        """Use `directory` for the data; it is created if its parent exists. `settings` override `tuned()`."""
        self.directory = directory.resolve()
        self.account = server_account()
        self.settings = {**tuned(), **(settings or {})}

    def url(self, database: str = DATABASE) -> str:
        """Return the URL for connections from this machine by its own user."""
        return (
            f"postgresql://{ROLE}@/{database}?host={quote(str(short_path(self.directory, SOCKET)), safe='/')}"
        )

    def child(self) -> Child:
        """Return the server as a child process; `prepare` creates a missing data directory."""
        return Child(
            name="postgres",
            argv=(str(self._bin() / "postgres"), "-D", self._here(self.directory), "-k", "."),
            env=SERVER_ENV,
            cwd=self.directory,
            account=self.account,
            prepare=self.prepare,
            ready=self._ready,
            stop_signal=signal.SIGINT,  # fast shutdown: disconnects clients and writes a checkpoint
            kill_signal=signal.SIGQUIT,  # immediate shutdown; recovery at the next start
            death_signal=signal.SIGINT,
            stop_seconds=30.0,
        )

    def prepare(self) -> None:
        """Create the data directory if necessary, and wait for the end of an earlier server.

        Raises:
            Misconfigured: the data belong to a different version, or the directory cannot be created, or a
            server
                is still running in it.
        """
        if not (self.directory / "PG_VERSION").exists():
            self._initialise()
        version = (self.directory / "PG_VERSION").read_text().strip()
        if version != VERSION:
            raise Misconfigured(
                f"{self.directory} has data of PostgreSQL {version}, and this is PostgreSQL {VERSION}; "
                "dump and reload the data"
            )
        lines = [f"{key} = '{value}'\n" for key, value in self.settings.items()]
        self._write(self.directory / CONFIG_FILE, "".join(lines))
        self._wait_for_orphan()

    def _initialise(self) -> None:
        """Create the data directory under a temporary name, and rename it when it is complete."""
        scratch = self.directory.with_name(self.directory.name + ".new")
        shutil.rmtree(scratch, ignore_errors=True)
        try:
            scratch.mkdir(mode=0o700)
            if self.account:
                os.chown(scratch, self.account.uid, self.account.gid)
            initdb = subprocess.run(
                (
                    str(self._bin() / "initdb"),
                    *("-D", self._here(scratch), "--no-sync", "-A", "trust", "-U", ROLE, "-E", "UTF8"),
                    *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
                ),
                cwd=scratch,
                env=SERVER_ENV,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                **identity(self.account),
            )
            if initdb.returncode:
                raise Misconfigured(f"initdb failed in {scratch}:\n{initdb.stdout.strip()}")
            with (scratch / "postgresql.conf").open("a") as conf:
                conf.write(INCLUDES)
            self._write(scratch / "local.conf", LOCAL)
            if self.settings.get("fsync") != "off":
                os.sync()  # once, instead of a call of initdb per file
            if self.directory.exists():
                self.directory.rmdir()  # it may exist already, and be empty
            scratch.rename(self.directory)
        except OSError as error:
            raise Misconfigured(
                f"cannot create the database in {self.directory}: {error.strerror}"
            ) from error

    def _wait_for_orphan(self) -> None:
        """Wait for the end of a server whose supervisor died, and make its pid file harmless.

        PostgreSQL refuses to start while the process in its pid file exists, even if it is a zombie or an
        unrelated process with the same id. It ignores the id of its parent, so that id is written; the check
        for shared memory in use remains.
        """
        pid_file = self.directory / "postmaster.pid"
        deadline = time.monotonic() + ORPHAN_SECONDS
        while pids := self._running_servers():
            pid = _pid_in(pid_file)
            if pid not in pids:  # child processes whose server is gone
                for orphan in pids:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(orphan, signal.SIGQUIT)
            if time.monotonic() > deadline:
                raise Misconfigured(
                    f"a database server (process {pid}) is still running in {self.directory}; stop it first"
                )
            time.sleep(0.05)
        for name in (SOCKET, f"{SOCKET}.lock"):  # the second has a process id too
            (self.directory / name).unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):  # usually the server removed the file when it stopped
            lines = pid_file.read_text().split("\n")
            self._write(pid_file, "\n".join([str(os.getpid()), *lines[1:]]))

    def _running_servers(self) -> set[int]:
        """Return the PostgreSQL processes in the data directory, without zombies."""
        if sys.platform != "linux":
            pid = _pid_in(self.directory / "postmaster.pid")
            return {pid} if pid is not None and pid != os.getpid() and _alive(pid) else set()
        pids = set()
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended, or belongs to a different user
                _, name, rest = re.split(r"[()]", (process / "stat").read_text(), maxsplit=2)
                alive = name == "postgres" and rest.split()[0] not in "ZX"
                if alive and (process / "cwd").samefile(self.directory):
                    pids.add(int(process.name))
        return pids

    def _ready(self, _pid: int) -> bool:
        """Whether the server accepts connections; creates the database if it is missing."""
        return ensure_database(self.url("postgres"), DATABASE)

    def _bin(self) -> Path:
        return postgres_bin(self.account)

    def _here(self, directory: Path) -> str:
        """Return the name of the working directory for the account of the server, without access to its
        parents.
        """
        return "/proc/self/cwd" if self.account and sys.platform == "linux" else str(directory)

    def _write(self, path: Path, text: str) -> None:
        """Write a file in the data directory, for the account of the server."""
        path.write_text(text)
        if self.account:
            os.chown(path, self.account.uid, self.account.gid)


def tuned() -> dict[str, str]:
    """Return settings for a shared machine: moderate memory, and no loss of durability."""
    memory_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1024**2
    return {
        "listen_addresses": "",
        "unix_socket_permissions": "0700",
        "max_connections": "200",
        "shared_buffers": f"{min(max(memory_mb // 64, 64), 512)}MB",
        "effective_cache_size": f"{memory_mb // 2}MB",
        "work_mem": "16MB",
        "maintenance_work_mem": "128MB",
        "max_wal_size": "2GB",
        "min_wal_size": "256MB",
        "checkpoint_timeout": "15min",
        "wal_level": "minimal",
        "max_wal_senders": "0",
        "random_page_cost": "1.1",
        "jit": "off",
        "autovacuum_naptime": "15s",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "log_line_prefix": "%m [%p] %a ",
        "log_checkpoints": "off",
    }


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True


def _pid_in(pid_file: Path) -> int | None:
    """Return the process id in a pid file; None without a valid file."""
    try:
        return abs(int(pid_file.read_text().split("\n", 1)[0]))
    except (OSError, ValueError):
        return None
