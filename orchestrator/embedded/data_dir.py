"""The data directory: `postgres/ valkey/ run/ logs/ keys lock`. One `up` at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from orchestrator.embedded.postgres import Postgres
from orchestrator.embedded.private_files import ADVICE, make, open_regular, opened, require_private
from orchestrator.embedded.valkey import Valkey
from orchestrator.errors import Misconfigured
from orchestrator.security.encryption import new_key


class DataDir:
    """The paths in the data directory; missing directories are created."""

    def __init__(self, root: Path) -> None:
        """Use `root`, which is created if missing.

        Raises:
            Misconfigured: it cannot be created or written to, or other users could write to it.
        """
        self.root = root.absolute()
        self.logs = self.root / "logs"
        # The working directory of workers and API: empty, so that no file there can replace a module of the
        # server.
        self.run = self.root / "run"
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            require_private(self.root)
            make(self.logs)
            make(self.run)
            with self._open_lock():
                pass
        except OSError as error:
            raise Misconfigured(
                f"cannot write to {self.root}: {error.strerror or error}; {ADVICE}"
            ) from error

    def postgres(self) -> Postgres:
        """Return the database server."""
        return Postgres(self.root / "postgres")

    def valkey(self) -> Valkey:
        """Return the broker."""
        return Valkey(self.root / "valkey")

    def keys_file(self) -> Path:
        """Return the file with the encryption keys; the first call creates it with a new key."""
        with opened(self.root) as directory:
            if not directory.has("keys"):
                directory.write("keys", new_key() + "\n", durable=True)
            try:
                fd = open_regular("keys", os.O_RDONLY, dir_fd=directory.fd)
            except OSError as error:
                raise Misconfigured(f"cannot read {self.root / 'keys'}: {error.strerror or error}") from error
            os.fchmod(fd, 0o600)
            os.close(fd)
        return self.root / "keys"

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the directory for a block; the lock ends with the process, even after SIGKILL.

        Raises:
            Misconfigured: another process has locked it.
        """
        with self._open_lock() as file:
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
        with self._open_lock() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def _open_lock(self) -> TextIO:
        fd = open_regular(self.root / "lock", os.O_RDWR | os.O_CREAT)
        return os.fdopen(fd, "r+")
