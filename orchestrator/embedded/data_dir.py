"""The data directory: `postgres/ valkey/ run/ logs/ keys lock`. One `up` at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from orchestrator.embedded.postgres import Postgres
from orchestrator.embedded.valkey import Valkey
from orchestrator.errors import Misconfigured
from orchestrator.security.encryption import new_key


class DataDir:
    """The paths in the data directory; missing directories are created."""

    def __init__(self, root: Path) -> None:
        """Use `root`, which is created if missing.

        Raises:
            Misconfigured: it cannot be created or written to.
        """
        self.root = root.absolute()
        self.logs = self.root / "logs"
        # The working directory of workers and API: empty, so that no file there can replace a module of the
        # server.
        self.run = self.root / "run"
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.logs.mkdir(mode=0o700, exist_ok=True)
            self.run.mkdir(mode=0o700, exist_ok=True)
            (self.root / "lock").touch(mode=0o600)
        except OSError as error:
            raise Misconfigured(
                f"cannot write to {self.root}: {error.strerror}; choose a different directory with --data-dir"
            ) from error

    def postgres(self) -> Postgres:
        """Return the database server."""
        return Postgres(self.root / "postgres")

    def valkey(self) -> Valkey:
        """Return the broker."""
        return Valkey(self.root / "valkey")

    def keys_file(self) -> Path:
        """Return the file with the encryption keys; the first call creates it with a new key."""
        path = self.root / "keys"
        if not path.exists():
            scratch = path.with_name(f"keys.{os.getpid()}")
            with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(new_key() + "\n")
                file.flush()
                os.fsync(file.fileno())
            scratch.rename(path)
        return path

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the directory for a block; the lock ends with the process, even after SIGKILL.

        Raises:
            Misconfigured: another process has locked it.
        """
        with (self.root / "lock").open("r+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                holder = file.read().strip() or "another process"
                raise Misconfigured(
                    f"{self.root} is in use by process {holder}; stop it, or choose a different"
                    " directory with --data-dir"
                ) from error
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield

    @property
    def in_use(self) -> bool:
        """Whether a process has locked the directory."""
        with (self.root / "lock").open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False
