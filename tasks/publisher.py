"""Enqueue what the core returned, after its commit: one round trip for all of it.

A message is rendered through Celery once for each queue and then only its ids are filled in: building each
anew costs 25 times as much. That leans on kombu's message layout, so a test compares a rendered message with
what `apply_async` sends.
"""

from __future__ import annotations

import base64
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final
from uuid import uuid4

import orjson
import redis
from celery import Celery
from kombu import Connection
from kombu.exceptions import OperationalError
from kombu.transport.redis import Channel

from orchestrator import metrics
from orchestrator.config import Settings
from orchestrator.engine.messages import CheckMessage, Message, SignalMessage
from orchestrator.errors import Misconfigured
from orchestrator.logs import logger
from tasks.celery_settings import celery_settings

TASK = "check"
SIGNAL_TASK = "signal"
SIGNAL_QUEUE = "provider"  # what takes a signal may call one

ARGUMENTS: Final[Mapping[str, tuple[Any, ...]]] = {TASK: ([0], 0), SIGNAL_TASK: (0,)}  # of a message to fill

log = logger()


def broker_url(settings: Settings) -> str:
    """Return the configured broker's URL.

    Raises:
        Misconfigured: none is set.
    """
    if settings.broker_url is None:
        raise Misconfigured(
            "set ORCHESTRATOR_BROKER_URL, or run `orchestrator up`, which starts a broker of its own"
        )
    return settings.broker_url.get_secret_value()


class Dispatcher:
    """Sends rings to one broker."""

    def __init__(self, broker_url: str, batch: int = 1) -> None:
        """Put up to `batch` nodes that became ready together into one message, on the queue of types that
        call nobody.

        The application here only builds messages: who sends needs nothing of what the task does.
        """
        self.app = Celery("orchestrator", set_as_current=False)
        self.app.conf.update(celery_settings(broker_url))
        self.app.task(name=TASK, shared=False)(_done_elsewhere)
        self.app.task(name=SIGNAL_TASK, shared=False)(_taken_in_elsewhere)
        self.batch = batch
        self._local = threading.local()
        self._prefix = ""

    def publish(self, rings: Sequence[Message], parent_id: str | None = None) -> None:
        """Enqueue; a broker that cannot be reached is logged, and the sweep rings again."""
        if not rings:
            return
        messages = self._messages(rings, parent_id)
        for tries_left in (1, 0):  # a connection that broke since the last time is replaced
            try:
                self._send(messages)
            except (redis.RedisError, OperationalError, OSError) as error:
                self.close()
                if not tries_left:
                    metrics.unpublished(sum(map(len, messages.values())))
                    log.warning("broker_unreachable", error=str(error), messages=len(rings))
            else:
                return

    def close(self) -> None:
        """Close this thread's connections; publishing opens new ones."""
        held = self._local.__dict__
        if held.pop("pid", None) == os.getpid():
            held.pop("redis").disconnect()
            held.pop("kombu").close()

    def _messages(self, rings: Sequence[Message], parent_id: str | None) -> dict[str, list[bytes]]:
        messages: dict[str, list[bytes]] = {}
        for group in self._groups([ring for ring in rings if isinstance(ring, CheckMessage)]):
            messages.setdefault(group[0].queue, []).append(self.render(group, parent_id))
        for ring in rings:
            if isinstance(ring, SignalMessage):
                messages.setdefault(SIGNAL_QUEUE, []).append(self.render_signal(ring, parent_id))
        return messages

    def _send(self, messages: Mapping[str, Sequence[bytes]]) -> None:
        connection = self._connected()
        if connection.can_read():  # nothing is ever answered: it is the end of the connection
            raise redis.ConnectionError("the broker closed the connection")
        for queue, bodies in messages.items():
            connection.send_command("LPUSH", self._prefix + queue, *bodies, check_health=False)  # type: ignore[no-untyped-call]

    def _groups(self, rings: Sequence[CheckMessage]) -> Iterable[Sequence[CheckMessage]]:
        if self.batch == 1:
            return ([ring] for ring in rings)
        return self._batches(rings)

    def _batches(self, rings: Sequence[CheckMessage]) -> Iterable[Sequence[CheckMessage]]:
        def together(ring: CheckMessage) -> tuple[str, int, str]:
            return ring.queue, ring.traversal, ring.root

        for (queue, _, _), same in groupby(sorted(rings, key=together), key=together):
            group = list(same)
            step = self.batch if queue == "check" else 1
            yield from (group[start : start + step] for start in range(0, len(group), step))

    def render(self, group: Sequence[CheckMessage], parent_id: str | None = None) -> bytes:
        """Return the message that makes a worker check these nodes, as it lies in the queue."""
        first = group[0]
        ids = [ring.node_id for ring in group]
        arguments = [ids, first.traversal]
        return self._filled(TASK, first.queue, arguments, describe(group), first.root, parent_id)

    def render_signal(self, ring: SignalMessage, parent_id: str | None = None) -> bytes:
        """Return the message that makes a worker take in a resource's signals."""
        shown = f"({ring.label})"
        return self._filled(SIGNAL_TASK, SIGNAL_QUEUE, [ring.resource_id], shown, ring.root, parent_id)

    def _filled(
        self, task: str, queue: str, arguments: list[Any], shown: str, root: str, parent_id: str | None
    ) -> bytes:
        templates: dict[tuple[str, str], dict[str, Any]] = self._local.__dict__.setdefault(
            "templates", {}
        )  # each thread fills in its own
        template = templates.get((task, queue))
        if template is None:
            template = templates[task, queue] = self._template(task, queue)
        task_id = str(uuid4())  # of the delivery, too: both are new to everybody
        body = orjson.dumps([arguments, {}, template["embed"]])
        message = template["message"]
        headers = message["headers"]
        headers["id"] = task_id
        headers["root_id"] = root or task_id
        headers["parent_id"] = parent_id
        headers["argsrepr"] = shown
        properties = message["properties"]
        properties["correlation_id"] = task_id
        properties["delivery_tag"] = task_id
        message["body"] = base64.b64encode(body).decode()
        return orjson.dumps(message)

    def _template(self, task: str, queue: str) -> dict[str, Any]:
        """Return a message as Celery and kombu build it, to be filled in."""
        caught: list[dict[str, Any]] = []
        with Connection("memory://") as connection:
            channel = connection.channel()
            channel._put = lambda _queue, message, **_: caught.append(message)
            channel.queue_declare(queue)
            with self.app.amqp.Producer(channel) as producer:
                self.app.tasks[task].apply_async(
                    ARGUMENTS[task],
                    queue=queue,
                    producer=producer,
                    retry=False,
                    root_id="root",
                    parent_id="parent",
                )
        [message] = caught
        embed = orjson.loads(base64.b64decode(message["body"]))[2]
        return {"message": message, "embed": embed}

    def _connected(self) -> redis.Connection:
        """Return this thread's connection, on which the broker answers nothing.

        Waiting for an answer would cost a check as much as sending; there is nothing to do about a bad one
        that the sweep does not do anyway. kombu makes the connection: it knows sockets, TLS and prefixes from
        the broker's URL.
        """
        local = self._local
        if getattr(local, "pid", None) != os.getpid():
            local.kombu = self.app.connection_for_write()
            channel = local.kombu.channel()  # tries once, where default_channel would try for seconds
            if not isinstance(channel, Channel):
                raise OSError("the broker must speak the Redis protocol")
            self._prefix = channel.global_keyprefix
            connection = channel.pool.make_connection()
            connection.connect()
            connection.send_command("CLIENT", "REPLY", "OFF")
            local.redis, local.pid = connection, os.getpid()
        made: redis.Connection = local.redis
        return made


def _done_elsewhere(node_ids: list[int], traversal: int) -> None:
    """The task as its senders know it; `check.py` has what it does."""


def _taken_in_elsewhere(resource_id: int) -> None:
    """The other task; `signal.py` has what it does."""


def describe(group: Sequence[CheckMessage]) -> str:
    """Return what Flower shows as a task's arguments: the resources by name."""
    names = ", ".join(ring.label for ring in group[:5])
    more = f" and {len(group) - 5} more" if len(group) > 5 else ""
    return f"({names}{more})"
