"""Connections to the broker: those for sending, lent to one thread at a time, and the transport of workers.

Opening a connection costs a request as much as the rest of its publication, and an API process has many
threads of which few send at the same time. Hence the threads share the open connections.

A worker receives through kombu's transport. In every turn of the event loop this registers each of its
sockets with the poller again, which refuses all of them: a system call and an exception for each, and a
message takes two or three turns. `Transport` registers them only when necessary.

A broker can answer and refuse every change: as a replica, while a script runs, or without a place for its
data. A worker connects and fails then in every turn. `BrokerChannel` takes such a broker for unreachable, so
that the worker waits as for a broker that is away.

kombu decodes the envelope of a message once and its body twice, with a call of a Python function for each
object. With orjson they take a third of that time.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty
from typing import Any, Final

import kombu
import orjson
import redis
from kombu import serialization
from kombu import transport as transports
from kombu.transport import TRANSPORT_ALIASES, virtual
from kombu.transport import redis as redis_transport
from kombu.transport.redis import Channel
from kombu.transport.redis import Transport as RedisTransport
from kombu.utils import json as kombu_json

from orchestrator.logs import logger

log = logger()

REGISTER_SECONDS: Final = 1.0  # until known sockets are registered again: a poller forgets closed ones
ABSENT_KEY: Final = "orchestrator.absent"  # its deletion changes nothing, and needs the permission to write
KOMBU_TYPE: Final = "__type__"  # key of an object in which kombu wraps a type that JSON lacks


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


class Turn:
    """The part of a turn that requests messages, and registers the sockets if that is necessary."""

    def __init__(
        self,
        cycle: Any,
        registered: Collection[int],
        request_and_register: Callable[[], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`cycle` has the sockets of the transport; `registered` are those that the event loop knows."""
        self._cycle, self._registered, self._clock = cycle, registered, clock
        self._request_and_register = request_and_register
        self._due_at = clock()

    def __call__(self) -> None:
        """Request messages; register the sockets if one is new, and every REGISTER_SECONDS."""
        now = self._clock()
        if now < self._due_at:
            self._cycle.on_poll_start()
            if all(socket in self._registered for socket in self._cycle.fds):
                return
        self._due_at = now + REGISTER_SECONDS
        self._request_and_register()


class UnackedMessages(virtual.QoS):
    """The messages that a worker has received and not yet processed."""

    def restore_unacked_once(self, stderr: object = None) -> None:
        """Put them back at the end of a connection. A message that cannot be put back is lost, and the sweep
        sends it again; kombu would write it to a file and log an alarm.
        """
        del stderr
        self._on_collect.cancel()
        self._flush()
        if getattr(self._delivered, "restored", None):
            return
        try:
            lost = self.restore_unacked()
        finally:
            self._delivered.restored = True
        if lost:
            log.info("messages_left_to_sweep", count=len(lost), reason=str(lost[0][0]))


class BrokerChannel(Channel):
    """A channel to a broker that accepts changes.

    A read takes, after the message that it waits for, up to `further` messages of the queue `further_queue`
    that are already there. Both commands are sent at once: the further messages cost no round trip.
    """

    further_queue = ""
    further = 0
    _reads_further = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Connect.

        Raises:
            redis.ConnectionError: the broker is unreachable or accepts no messages.
        """
        try:
            super().__init__(*arguments, **options)
            self.QoS = UnackedMessages
            self.client.delete(ABSENT_KEY)
        except redis.ResponseError as error:
            self._disconnect_pools()
            raise redis.ConnectionError(f"the broker accepts no messages: {error}") from error

    def _brpop_start(self, timeout: float | None = None) -> None:
        super()._brpop_start(timeout)
        if self.further and self._in_poll:
            key = f"{self.global_keyprefix}{self.further_queue}"
            self.client.connection.send_command("RPOP", key, self.further)
            self._reads_further = True

    def _brpop_read(self, **options: Any) -> bool:
        """Deliver the messages of a read.

        Raises:
            Empty: there are none.
        """
        if not self._reads_further:
            return bool(super()._brpop_read(**options))
        self._reads_further = False
        found = True
        try:
            super()._brpop_read(**options)
        except Empty:
            found = False
        items = self._read_further(**options)
        for item in items:
            self.connection._deliver(decoded(item), self.further_queue)
        if not found and not items:
            raise Empty
        return True

    def _read_further(self, **options: Any) -> Sequence[bytes]:
        try:
            return self.client.parse_response(self.client.connection, "RPOP", **options) or ()
        except self.connection_errors:
            self.client.connection.disconnect()
            raise


class Transport(RedisTransport):
    """kombu's transport for Redis and Valkey."""

    Channel = BrokerChannel

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        """Take part in the turns of a worker's event loop."""
        before = set(loop.on_tick)
        super().register_with_event_loop(connection, loop)
        for own in loop.on_tick - before:
            loop.on_tick.discard(own)
            loop.on_tick.add(Turn(self.cycle, loop.readers, own))


def decoded(text: str | bytes) -> Any:
    """Return the value of a JSON text, as kombu's decoder does. Integers of more than 64 bits become floats;
    no message has them.

    Raises:
        ValueError: it is no JSON.
    """
    wrapped = KOMBU_TYPE in text if isinstance(text, str) else KOMBU_TYPE.encode() in text
    if wrapped:
        return kombu_json.loads(text)
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:  # NaN and Infinity, which only Python's decoder accepts, or no JSON
        return kombu_json.loads(text)


def install_transport() -> None:
    """Use `Transport` for Redis and Valkey, and `decoded` for messages, in later connections."""
    name = f"{__name__}:{Transport.__name__}"
    for scheme in ("redis", "rediss"):
        TRANSPORT_ALIASES[scheme] = name
        transports._transport_cache.pop(scheme, None)
    redis_transport.loads = decoded
    serialization.register("json", kombu_json.dumps, decoded, "application/json", "utf-8")
