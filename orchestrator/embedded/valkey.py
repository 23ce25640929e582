"""Valkey out of its wheel: the message broker, on a private unix socket, keeping nothing.

Losing what it holds loses nothing (docs/internals/protocol.md rule 15), so it writes nothing to disk; it must
never evict.
"""

from __future__ import annotations

import os
from pathlib import Path

import redis

from orchestrator.embedded.binaries import valkey_server
from orchestrator.embedded.process import Child, server_account
from orchestrator.embedded.socket_paths import short_path
from orchestrator.errors import Misconfigured

SOCKET = "valkey.sock"
SCHEME = "redis+socket://"  # what Celery calls a unix socket


class Valkey:
    """One server: its folder, how to start it, how to reach it."""

    def __init__(self, directory: Path, databases: int = 16) -> None:
        """Keep the socket in `directory` (made when missing; its parent exists)."""
        self.directory = directory.resolve()
        self.databases = databases
        self.account = server_account()

    def url(self, database: int = 0) -> str:
        """Return the broker's URL for Celery; `connect` takes it too."""
        return f"{SCHEME}{short_path(self.directory, SOCKET) / SOCKET}?virtual_host={database}"

    def child(self) -> Child:
        """Return the server as a process to run."""
        options = {
            "port": "0",
            "unixsocket": SOCKET,  # relative: the folders above may be closed to the server's user
            "unixsocketperm": "700",
            "dir": ".",
            "save": "",
            "appendonly": "no",
            "maxmemory-policy": "noeviction",
            "databases": str(self.databases),
            "tcp-backlog": "128",
        }
        words = (word for key, value in options.items() for word in (f"--{key}", value))
        return Child(
            name="valkey",
            argv=(str(valkey_server(self.account)), *words),
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"},
            cwd=self.directory,
            account=self.account,
            prepare=self.prepare,
            ready=self._ready,
            stop_seconds=5.0,
        )

    def prepare(self) -> None:
        """Make the folder, without an earlier server's socket.

        Raises:
            Misconfigured: it cannot be made.
        """
        try:
            self.directory.mkdir(mode=0o700, exist_ok=True)
            if self.account:
                os.chown(self.directory, self.account.uid, self.account.gid)
            (self.directory / SOCKET).unlink(missing_ok=True)
        except OSError as error:
            raise Misconfigured(
                f"cannot make the broker's folder {self.directory}: {error.strerror}"
            ) from error

    def _ready(self, _pid: int) -> bool:
        try:
            with connect(self.url()) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False


def connect(url: str, timeout_seconds: float = 5.0) -> redis.Redis:
    """Return a client for a broker URL as Celery writes it: `redis://`, `rediss://` or `redis+socket://`."""
    if url.startswith(SCHEME):
        path, _, query = url.removeprefix(SCHEME).partition("?")
        url = f"unix://{path}?{query.replace('virtual_host=', 'db=')}"
    client: redis.Redis = redis.Redis.from_url(url, socket_timeout=timeout_seconds)
    return client
