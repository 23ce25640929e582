"""PostgreSQL 18 out of its wheel, in a folder of ours, on a private unix socket.

The server is started in its data folder and told to use its working directory, for data and socket alike: so
it needs no right to pass through the folders above, and nobody can serve data that lies in root's home.
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
from orchestrator.store.schema.provision import ensure_database

VERSION = "18"
ROLE = "orchestrator"
DATABASE = "orchestrator"
SOCKET = ".s.PGSQL.5432"
LEFTOVER_SECONDS = 30.0  # how long a server that lost its supervisor may take to shut down
SERVER_ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
OURS = "orchestrator.conf"
INCLUDES = f"""
include_if_exists = '{OURS}'  # written anew at every start
include_if_exists = 'local.conf'  # yours; wins
"""
LOCAL = "# Your settings. They win over orchestrator.conf; most need a restart.\n"


class Postgres:
    """One server: its folder, how to start it, how to reach it."""

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        """Keep the data in `directory`, made when missing (its parent exists); `settings` over `tuned()`."""
        self.directory = directory.resolve()
        self.account = server_account()
        self.settings = {**tuned(), **(settings or {})}

    def url(self, database: str = DATABASE) -> str:
        """Return how to connect, from this machine and as the user who started it."""
        return (
            f"postgresql://{ROLE}@/{database}?host={quote(str(short_path(self.directory, SOCKET)), safe='/')}"
        )

    def child(self) -> Child:
        """Return the server as a process to run; `prepare` makes the data folder when there is none."""
        return Child(
            name="postgres",
            argv=(str(self._bin() / "postgres"), "-D", self._here(self.directory), "-k", "."),
            env=SERVER_ENV,
            cwd=self.directory,
            account=self.account,
            prepare=self.prepare,
            ready=self._ready,
            stop_signal=signal.SIGINT,  # fast: clients are disconnected, a checkpoint is written
            kill_signal=signal.SIGQUIT,  # immediate: recovery at the next start, no shared memory left behind
            death_signal=signal.SIGINT,
            stop_seconds=30.0,
        )

    def prepare(self) -> None:
        """Make the data folder complete and free of an earlier server.

        Raises:
            Misconfigured: it is another version's, or cannot be made, or a server still runs in it.
        """
        if not (self.directory / "PG_VERSION").exists():
            self._initialise()
        found = (self.directory / "PG_VERSION").read_text().strip()
        if found != VERSION:
            raise Misconfigured(
                f"{self.directory} holds PostgreSQL {found} data and this is {VERSION}; dump and reload it"
            )
        lines = [f"{key} = '{value}'\n" for key, value in self.settings.items()]
        self._write(self.directory / OURS, "".join(lines))
        self._outlive_leftover()

    def _initialise(self) -> None:
        """Make the data folder beside its place and move it there when complete: half of one is no use."""
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
                os.sync()  # once, instead of initdb's own pass over every file
            if self.directory.exists():
                self.directory.rmdir()  # an empty one may have been made beforehand
            scratch.rename(self.directory)
        except OSError as error:
            raise Misconfigured(f"cannot make the database in {self.directory}: {error.strerror}") from error

    def _outlive_leftover(self) -> None:
        """Wait until a server that lost its supervisor is gone, then make sure its pid file stops nobody.

        PostgreSQL refuses to start while the pid in the file answers, be it a zombie or a stranger that got
        the number later. It ignores its parent's, so we write that; its check for shared memory in use stays.
        """
        pid_file = self.directory / "postmaster.pid"
        deadline = time.monotonic() + LEFTOVER_SECONDS
        while here := self._servers_here():
            pid = _pid_in(pid_file)
            if pid not in here:  # its children, which have nobody left to work for
                for orphan in here:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(orphan, signal.SIGQUIT)
            if time.monotonic() > deadline:
                raise Misconfigured(
                    f"a database server (process {pid}) still runs in {self.directory}; stop it first"
                )
            time.sleep(0.05)
        for leftover in (SOCKET, f"{SOCKET}.lock"):  # the second names a process too
            (self.directory / leftover).unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):  # the usual case: it removed its file when it stopped
            lines = pid_file.read_text().split("\n")
            self._write(pid_file, "\n".join([str(os.getpid()), *lines[1:]]))

    def _servers_here(self) -> set[int]:
        """Return the PostgreSQL processes, zombies apart, whose working directory is our folder."""
        if sys.platform != "linux":
            pid = _pid_in(self.directory / "postmaster.pid")
            return {pid} if pid is not None and pid != os.getpid() and _alive(pid) else set()
        found = set()
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # gone meanwhile, or a stranger's
                _, name, rest = re.split(r"[()]", (process / "stat").read_text(), maxsplit=2)
                alive = name == "postgres" and rest.split()[0] not in "ZX"
                if alive and (process / "cwd").samefile(self.directory):
                    found.add(int(process.name))
        return found

    def _ready(self, _pid: int) -> bool:
        """Whether it answers; makes our database when it is not there yet."""
        return ensure_database(self.url("postgres"), DATABASE)

    def _bin(self) -> Path:
        return postgres_bin(self.account)

    def _here(self, directory: Path) -> str:
        """Return what to call the working directory: for another user, without the path to it."""
        return "/proc/self/cwd" if self.account and sys.platform == "linux" else str(directory)

    def _write(self, path: Path, text: str) -> None:
        """Write a file of the server's own; an existing one keeps its owner."""
        path.write_text(text)
        if self.account:
            os.chown(path, self.account.uid, self.account.gid)


def tuned() -> dict[str, str]:
    """Return settings for a laptop that runs everything else too: modest memory, nothing unsafe."""
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
    """Return the pid a server left there; None when there is no such file."""
    try:
        return abs(int(pid_file.read_text().split("\n", 1)[0]))
    except (OSError, ValueError):
        return None
