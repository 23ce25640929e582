"""The queue of notifications in RabbitMQ, read without oslo.messaging's costs per message.

oslo.messaging acknowledges each message and hands it to another thread, which costs several times as much as
reading it. Here the broker forgets a message when it is sent: a lost notification does no harm. The queue is
bounded in length and time: in a flood the oldest notifications are dropped.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from kombu import Connection, Consumer, Queue

from orchestrator.logs import logger

log = logger()

SCHEMES: Final = frozenset({"rabbit", "amqp"})
MAX_LENGTH: Final = 10_000  # messages in the queue
MAX_AGE_SECONDS: Final = 60  # after that, the rounds have found a fault anyway
CONNECT_SECONDS: Final = 10.0
HEARTBEAT_SECONDS: Final = 60
BIND_SECONDS: Final = (2.0, 60.0)  # until a missing exchange is looked for again: its service creates it
RETRY_SECONDS: Final = (1.0, 30.0)  # the shortest and the longest pause after the loss of the broker
POLL_SECONDS: Final = 1.0  # without messages
NICENESS: Final = 10  # of the thread: users' requests come first

Message = Callable[[bytes], None]


class NotificationQueue:
    """Receives the messages of some exchanges in a thread. Workers share the queue."""

    def __init__(
        self, url: str, name: str, exchanges: Collection[str], topics: Collection[str], message: Message
    ) -> None:
        """`message` is called with the body of each message."""
        self._urls, self._name, self._message = broker_urls(url), name, message
        self._exchanges, self._topics = tuple(exchanges), tuple(topics)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="notification-queue", daemon=True)

    def start(self) -> None:
        """Receive until stopped."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()
        self._thread.join(2 * POLL_SECONDS)

    def _run(self) -> None:
        _lower_priority()
        pause, longest = RETRY_SECONDS
        while not self._stopped.is_set():
            started = time.monotonic()
            try:
                self._receive()
            except Exception as error:  # of the broker or its driver
                log.warning("notifications_unavailable", error=f"{type(error).__name__}: {error}"[:200])
            pause = RETRY_SECONDS[0] if time.monotonic() - started > longest else min(2 * pause, longest)
            self._stopped.wait(pause)

    def _receive(self) -> None:
        with Connection(
            self._urls, connect_timeout=CONNECT_SECONDS, heartbeat=HEARTBEAT_SECONDS
        ) as connection:
            channel = connection.channel()
            arguments = {"x-max-length": MAX_LENGTH, "x-message-ttl": MAX_AGE_SECONDS * 1_000}
            queue = Queue(self._name, durable=False, queue_arguments=arguments, channel=channel)
            queue.queue_declare()
            consumer = Consumer(channel, [queue], no_ack=True, on_message=self._take, auto_declare=False)
            consumer.consume()
            missing, look_at = set(self._exchanges), 0.0
            pause, longest = BIND_SECONDS
            while not self._stopped.is_set():
                if missing and time.monotonic() >= look_at:
                    missing -= set(self._bind(missing))
                    look_at, pause = time.monotonic() + pause, min(2 * pause, longest)
                try:
                    connection.drain_events(timeout=POLL_SECONDS)
                except TimeoutError:
                    connection.heartbeat_check()

    def _bind(self, exchanges: Collection[str]) -> Iterator[str]:
        """Bind the queue to those exchanges that exist; yield them. In a flood an answer on the connection of
        the messages would come behind all of them: this is another connection.
        """
        with Connection(self._urls, connect_timeout=CONNECT_SECONDS) as connection:
            for name in sorted(exchanges):
                channel = connection.channel()
                try:
                    channel.exchange_declare(name, "topic", passive=True)
                except connection.channel_errors:  # it does not exist; the channel is closed
                    continue
                for topic in self._topics:  # of any priority
                    channel.queue_bind(self._name, exchange=name, routing_key=f"{topic}.*")
                yield name

    def _take(self, message: Any) -> None:
        body = message.body
        try:
            self._message(body if isinstance(body, bytes) else bytes(body, "utf-8"))
        except Exception:  # a message must not end the thread
            log.exception("notification_error")


def broker_urls(url: str) -> str:
    """Return a URL of oslo.messaging, which may name several hosts, as kombu's URLs: one for each host."""
    parts = urlsplit(url)
    vhost = parts.path.removeprefix("/")
    query = f"?{parts.query}" if parts.query else ""
    users = ""
    urls = []
    for host in parts.netloc.split(","):
        user, at, place = host.rpartition("@")
        users = f"{user}@" if at else users
        urls.append(f"amqp://{users}{place}/{vhost or '/'}{query}")
    return ";".join(urls)


def _lower_priority() -> None:
    """Let all other threads come first: Linux has a priority per thread."""
    with contextlib.suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
