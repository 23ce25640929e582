"""Connections to the broker for sending, lent to one thread at a time.

Opening a connection costs a request as much as the rest of its publication, and an API process has many
threads of which few send at the same time. Hence the threads share the open connections.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import kombu
import redis
from kombu.transport.redis import Channel


@dataclass(frozen=True, slots=True)
class BrokerConnection:
    """An open connection, with replies turned off.

    Waiting for a reply would cost a check as much as sending, and the sweep handles lost messages anyway.
    """

    kombu: kombu.Connection
    redis: redis.Connection
    key_prefix: str

    def close(self) -> None:
        """Close it."""
        self.redis.disconnect()  # type: ignore[no-untyped-call]
        self.kombu.close()


class BrokerConnections:
    """The connections of a process."""

    def __init__(self, connect: Callable[[], kombu.Connection]) -> None:
        """`connect` returns a kombu connection: it reads sockets, TLS and prefixes from the broker's URL."""
        self._connect = connect
        self._idle: deque[BrokerConnection] = deque()
        self._pid = os.getpid()

    @contextmanager
    def lend(self) -> Iterator[BrokerConnection]:
        """Lend a connection; after an error it is closed.

        Raises:
            redis.RedisError, kombu.exceptions.OperationalError, OSError: the broker is unreachable.
        """
        if self._pid != os.getpid():  # the parent's connections belong to the parent
            self._idle, self._pid = deque(), os.getpid()
        connection = self._next_idle() or self._open()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)

    def close(self) -> None:
        """Close the idle connections."""
        if self._pid == os.getpid():
            while connection := self._next_idle():
                connection.close()

    def _next_idle(self) -> BrokerConnection | None:
        try:
            return self._idle.pop()
        except IndexError:  # also taken by other threads
            return None

    def _open(self) -> BrokerConnection:
        connection = self._connect()
        channel = connection.channel()  # tries once; default_channel would retry for seconds
        if not isinstance(channel, Channel):
            raise OSError("the broker must speak the Redis protocol")
        opened: redis.Connection = channel.pool.make_connection()
        opened.connect()  # type: ignore[no-untyped-call]
        opened.send_command("CLIENT", "REPLY", "OFF")  # type: ignore[no-untyped-call]
        return BrokerConnection(connection, opened, channel.global_keyprefix)
