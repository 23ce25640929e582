"""Valkey from its wheel: the message broker, on a unix socket in a directory without access for
other users, without persistence.

The loss of its contents is harmless (docs/internals/protocol.md rule 15), so it writes nothing to disk; it
must never evict messages.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import redis

from orchestrator.embedded.accounts import server_account
from orchestrator.embedded.binaries import valkey_server
from orchestrator.embedded.private_files import opened
from orchestrator.embedded.process import Child
from orchestrator.embedded.socket_paths import short_path
from orchestrator.errors import Misconfigured

SOCKET = "valkey.sock"
SCHEME = "redis+socket://"  # the scheme of Celery for unix sockets


class Valkey:
    """A server: its directory, its process and its URL."""

    def __init__(self, directory: Path, databases: int = 16) -> None:
        """Use `directory` for the socket; it is created if its parent exists."""
        self.directory = directory.parent.resolve() / directory.name
        self.databases = databases
        self.account = server_account()

    def url(self, database: int = 0) -> str:
        """Return the URL of the broker for Celery and for `connect`."""
        return f"{SCHEME}{short_path(self.directory, SOCKET) / SOCKET}?virtual_host={database}"

    def child(self) -> Child:
        """Return the server as a process to run."""
        options = {
            "port": "0",
            "unixsocket": SOCKET,  # relative: its account may have no access to the parent directories
            "unixsocketperm": "700",
            "dir": ".",
            "save": "",
            "appendonly": "no",
            "maxmemory-policy": "noeviction",
            "databases": str(self.databases),
            "tcp-backlog": "128",
        }
        arguments = (part for key, value in options.items() for part in (f"--{key}", value))
        return Child(
            name="valkey",
            argv=(str(valkey_server(self.account)), *arguments),
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"},
            cwd=self.directory,
            account=self.account,
            prepare=self.prepare,
            ready=self._ready,
            stop_seconds=5.0,
        )

    def prepare(self) -> None:
        """Create the directory, and remove the socket of an earlier server.

        Raises:
            Misconfigured: the directory cannot be created, is a link, or belongs to a different user.
        """
        try:
            with contextlib.suppress(FileExistsError):
                self.directory.mkdir(mode=0o700)
            with opened(self.directory, self.account) as directory:
                directory.adopt()
                os.fchmod(directory.fd, 0o700)
                directory.remove(SOCKET)
        except OSError as error:
            raise Misconfigured(
                f"cannot create the directory of the broker {self.directory}: {error.strerror}"
            ) from error

    def _ready(self, _pid: int) -> bool:
        try:
            with connect(self.url()) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False


def connect(url: str, timeout_seconds: float = 5.0) -> redis.Redis:
    """Return a client for a broker URL of Celery: `redis://`, `rediss://` or `redis+socket://`."""
    if url.startswith(SCHEME):
        path, _, query = url.removeprefix(SCHEME).partition("?")
        url = f"unix://{path}?{query.replace('virtual_host=', 'db=')}"
    client: redis.Redis = redis.Redis.from_url(url, socket_timeout=timeout_seconds)
    return client
