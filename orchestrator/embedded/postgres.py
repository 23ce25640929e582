"""PostgreSQL 18 from its wheel, in its own data directory, on a private unix socket.

Only the current user, and as root also the account of the server, can connect (peer authentication): as the
application role, which owns the database and is no superuser, or as the administrator. TCP is off; if it is
enabled in `local.conf`, it requires passwords, which no role has.

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
from collections.abc import Mapping, Set
from pathlib import Path
from urllib.parse import quote

from orchestrator.embedded.accounts import identity, server_account, user_names
from orchestrator.embedded.binaries import postgres_bin
from orchestrator.embedded.private_files import Directory, opened
from orchestrator.embedded.process import Child
from orchestrator.embedded.socket_paths import short_path
from orchestrator.errors import Misconfigured
from orchestrator.logs import logger
from orchestrator.store.schema.roles import ADMINISTRATOR, APPLICATION, ROLES, ensure_database

VERSION = "18"
ROLE = APPLICATION
DATABASE = "orchestrator"
SOCKET = ".s.PGSQL.5432"
PID_FILE = "postmaster.pid"
STOP_SECONDS = (
    30.0  # time for a shutdown; after that the server is killed, which means recovery at the next start
)
END_SECONDS = 10.0  # time for the end after a signal that kills
SERVER_ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
CONFIG_FILE = "orchestrator.conf"
INCLUDES = f"""
include_if_exists = '{CONFIG_FILE}'  # replaced at every start
include_if_exists = 'local.conf'  # for your settings; overrides it
"""
USER_MAP = "orchestrator"
ACCESS = f"""# Replaced at every start. Your own lines belong in local_hba.conf.
include_if_exists local_hba.conf
local all all peer map={USER_MAP}
host all all all scram-sha-256
"""
LOCAL = "# Your settings. They override orchestrator.conf; most require a restart.\n"


class Postgres:
    """A server: its data directory, its process and its URL."""

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        """Use `directory` for the data; it is created if its parent exists. `settings` override `tuned()`."""
        self.directory = directory.parent.resolve() / directory.name
        self.account = server_account()
        self.settings = {**tuned(), **(settings or {})}

    def url(self, database: str = DATABASE, role: str = ROLE) -> str:
        """Return the URL for connections from this machine by the user that started the server."""
        host = quote(str(short_path(self.directory, SOCKET)), safe="/")
        return f"postgresql://{role}@/{database}?host={host}"

    def administrator_url(self, database: str = "postgres") -> str:
        """Return the URL for the superuser."""
        return self.url(database, ADMINISTRATOR)

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
            stop_seconds=STOP_SECONDS,
        )

    def prepare(self) -> None:
        """Create the data directory if necessary, and end an earlier server whose supervisor died.

        Raises:
            Misconfigured: the data belong to a different version; the directory cannot be created, belongs
                to a different user or is a symbolic link; or a server is still running in it.
        """
        try:
            if not self._initialised():
                self._initialise()
            with opened(self.directory, self.account) as directory:
                version = directory.read("PG_VERSION").strip()
                if version != VERSION:
                    raise Misconfigured(
                        f"{self.directory} has data of PostgreSQL {version}, and this is PostgreSQL"
                        f" {VERSION}; dump and reload the data"
                    )
                self._end_orphan(directory)
                directory.adopt()
                self._configure(directory)
        except OSError as error:
            raise Misconfigured(
                f"cannot create the database in {self.directory}: {error.strerror or error}"
            ) from error

    def _initialised(self) -> bool:
        try:
            with opened(self.directory) as directory:
                return directory.has("PG_VERSION")
        except FileNotFoundError:
            return False

    def _configure(self, directory: Directory) -> None:
        """Write the settings, and the users that may connect."""
        settings = "".join(f"{key} = '{value}'\n" for key, value in self.settings.items())
        directory.write(CONFIG_FILE, settings)
        directory.write("pg_hba.conf", ACCESS)
        users = (f'{USER_MAP} "{name}" {role}\n' for name in user_names(self.account) for role in ROLES)
        directory.write("pg_ident.conf", "".join(users))

    def _initialise(self) -> None:
        """Create the data directory under a temporary name, and rename it when it is complete."""
        scratch = self.directory.with_name(self.directory.name + ".new")
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(mode=0o700)
        with opened(scratch, self.account) as directory:
            if self.account:
                os.fchown(directory.fd, self.account.uid, self.account.gid)
            self._run_initdb(scratch)
            directory.write("postgresql.conf", directory.read("postgresql.conf") + INCLUDES)
            directory.write("local.conf", LOCAL)
        if self.settings.get("fsync") != "off":
            os.sync()  # once, instead of a call of initdb per file
        if self.directory.exists():
            self.directory.rmdir()  # it may exist already, and be empty
        scratch.rename(self.directory)

    def _run_initdb(self, scratch: Path) -> None:
        initdb = subprocess.run(
            (
                *(str(self._bin() / "initdb"), "-D", self._here(scratch), "--no-sync", "-E", "UTF8"),
                *("-U", ADMINISTRATOR, "--auth-local=peer", "--auth-host=reject"),
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

    def _end_orphan(self, directory: Directory) -> None:
        """Wait for the end of a server whose supervisor died, and make its pid file harmless.

        The death of its supervisor has told the server to stop. One that does not end in time is killed, like
        the server of a living supervisor: PostgreSQL never ends a shutdown that was requested during crash
        recovery.

        PostgreSQL refuses to start while the process in its pid file exists, even if it is a zombie or an
        unrelated process with the same id. It ignores the id of its parent, so that id is written; the check
        for shared memory in use remains.
        """
        started = time.monotonic()
        killed_at = None
        while pids := self._running_servers():
            pid, now = _pid_in(directory), time.monotonic()
            if pid not in pids:  # child processes whose server is gone
                self._kill(pids)
            elif killed_at is None and now > started + STOP_SECONDS and self._is_ours(pid):
                logger().warning("database_killed", process=pid, directory=str(self.directory))
                self._kill({pid})
                killed_at = now
            if now > (killed_at or started + STOP_SECONDS) + END_SECONDS:
                raise Misconfigured(
                    f"a database server (process {pid}) is still running in {self.directory}; stop it first"
                )
            time.sleep(0.05)
        for name in (SOCKET, f"{SOCKET}.lock"):  # the second has a process id too
            directory.remove(name)
        with contextlib.suppress(FileNotFoundError):  # usually the server removed the file when it stopped
            lines = directory.read(PID_FILE).split("\n")
            directory.write(PID_FILE, "\n".join([str(os.getpid()), *lines[1:]]))

    def _running_servers(self) -> set[int]:
        """Return the PostgreSQL processes in the data directory, without zombies."""
        if sys.platform != "linux":
            with opened(self.directory) as directory:
                pid = _pid_in(directory)
            return {pid} if pid is not None and pid != os.getpid() and _alive(pid) else set()
        return {int(process.name) for process in Path("/proc").glob("[0-9]*") if self._runs_here(process)}

    def _runs_here(self, process: Path) -> bool:
        """Whether a process of `/proc` is a running PostgreSQL in the data directory."""
        with contextlib.suppress(OSError):  # it has ended, or belongs to a different user
            _, name, rest = re.split(r"[()]", (process / "stat").read_text(), maxsplit=2)
            alive = name == "postgres" and rest.split()[0] not in "ZX"
            return alive and (process / "cwd").samefile(self.directory)
        return False

    def _is_ours(self, pid: int) -> bool:
        """Whether a server was started by a supervisor: with its command, as its user."""
        process = Path(f"/proc/{pid}")
        uid = self.account.uid if self.account else os.geteuid()
        with contextlib.suppress(OSError):  # it has ended, or this is not Linux
            _, *arguments, _ = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            return process.stat().st_uid == uid and arguments == list(self.child().argv[1:])
        return False

    def _kill(self, pids: Set[int]) -> None:
        """Send PostgreSQL processes of the data directory the signal for an immediate shutdown."""
        for pid in pids:
            with contextlib.suppress(OSError):  # it has ended
                process = os.pidfd_open(pid)  # from here on the id cannot be that of a later process
                try:
                    if self._runs_here(Path(f"/proc/{pid}")):
                        signal.pidfd_send_signal(process, signal.SIGQUIT)
                finally:
                    os.close(process)

    def _ready(self, _pid: int) -> bool:
        """Whether the server accepts connections; creates roles and database if they are missing."""
        return ensure_database(self.url, DATABASE)

    def _bin(self) -> Path:
        return postgres_bin(self.account)

    def _here(self, directory: Path) -> str:
        """Return the name of the working directory for the account of the server, without access to its
        parents.
        """
        return "/proc/self/cwd" if self.account and sys.platform == "linux" else str(directory)


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


def _pid_in(directory: Directory) -> int | None:
    """Return the process id in the pid file of a server; None without a valid file."""
    try:
        return abs(int(directory.read(PID_FILE).split("\n", 1)[0]))
    except (OSError, ValueError):
        return None
