"""The folder of one installation: `postgres/ valkey/ run/ logs/ keys lock`. One `up` at a time."""

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
    """Where everything is; makes what is missing."""

    def __init__(self, root: Path) -> None:
        """Take `root`, made when missing.

        Raises:
            Misconfigured: it cannot be made or written to.
        """
        self.root = root.absolute()
        self.logs = self.root / "logs"
        self.run = (
            self.root / "run"
        )  # working directory of workers and API: empty, so it hides no module of theirs
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.logs.mkdir(mode=0o700, exist_ok=True)
            self.run.mkdir(mode=0o700, exist_ok=True)
            (self.root / "lock").touch(mode=0o600)
        except OSError as error:
            raise Misconfigured(
                f"cannot write to {self.root}: {error.strerror}; choose another folder with --data-dir"
            ) from error

    def postgres(self) -> Postgres:
        """Return the installation's database server."""
        return Postgres(self.root / "postgres")

    def valkey(self) -> Valkey:
        """Return the installation's broker."""
        return Valkey(self.root / "valkey")

    def keys_file(self) -> Path:
        """Return the file with the encryption keys; the first time, with one fresh key in it."""
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
        """Hold the folder for a block; it is let go also when the process is killed.

        Raises:
            Misconfigured: another process holds it.
        """
        with (self.root / "lock").open("r+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                holder = file.read().strip() or "another process"
                raise Misconfigured(
                    f"{self.root} is in use by process {holder}; stop it, or choose another with --data-dir"
                ) from error
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield

    @property
    def in_use(self) -> bool:
        """Whether a process holds the folder just now."""
        with (self.root / "lock").open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False
