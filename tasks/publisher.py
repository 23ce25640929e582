"""Publish the messages that the engine returned, after its commit, in a single round trip.

A message is rendered by Celery once for each task and queue; then only its ids are filled in. Rendering each
message through Celery costs 25 times as much. This depends on kombu's message layout, so a test compares a
rendered message with the message that `apply_async` sends.
"""

from __future__ import annotations

import base64
import copy
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final
from uuid import uuid4

import orjson
import psycopg
import redis
import sqlalchemy.exc
from celery import Celery
from kombu import Connection
from kombu.exceptions import OperationalError

from orchestrator import metrics
from orchestrator.config import Settings
from orchestrator.engine.messages import (
    CheckMessage,
    Message,
    ObservationMessage,
    RoundMessage,
    SignalMessage,
)
from orchestrator.errors import Misconfigured
from orchestrator.logs import logger
from orchestrator.operations.runtime.caches import BoundedCache
from orchestrator.store.connections.database import Database
from orchestrator.store.stacks import projects as stack_projects
from tasks import fair_queues
from tasks.broker_connections import BrokerConnections
from tasks.celery_settings import celery_settings
from tasks.fair_queues import SCRIPT, FinishedTasks, Group, WorkerReport

TASK = "check"
SIGNAL_TASK = "signal"
SIGNAL_QUEUE = "provider"  # a resource type that processes a signal may call its provider
OBSERVE_TASK = "observe"
OBSERVE_QUEUE = "observe"
ROUND_TASK = "observe_group"
PROJECT_HEADER = "project"  # of a message
# Nodes of a task that is answered by a shared list; fewer are not worth a list.
MIN_TOGETHER, MAX_TOGETHER = 3, 25
MAX_SHOWN = 5  # resources named in the arguments that Flower shows

TEMPLATE_ARGUMENTS: Final[Mapping[str, tuple[Any, ...]]] = {
    TASK: ([0], 0),
    SIGNAL_TASK: (0,),
    OBSERVE_TASK: (0,),
    ROUND_TASK: (0,),
}

log = logger()


def broker_url(settings: Settings) -> str:
    """Return the configured broker's URL.

    Raises:
        Misconfigured: none is set.
    """
    if settings.broker_url is None:
        raise Misconfigured(
            "set ORCHESTRATOR_BROKER_URL, or run `orchestrator up`, which starts its own broker"
        )
    return settings.broker_url.get_secret_value()


PROJECTS_KEPT: Final = 50_000  # stacks


class StackProjects:
    """The projects of the stacks that this process sends messages for; a stack never changes its project."""

    def __init__(self, database: Callable[[], Database]) -> None:
        """`database` is called in the process that reads."""
        self.database = database
        self._known: BoundedCache[str, str] = BoundedCache(PROJECTS_KEPT)

    def __call__(self, stacks: Collection[str]) -> Mapping[str, str]:
        """Return the projects of stacks by uuid, without unknown stacks and without all during an outage."""
        found = {uuid: project for uuid in stacks if (project := self._known.get(uuid)) is not None}
        missing = [uuid for uuid in stacks if uuid not in found]
        if missing:
            try:
                read = stack_projects.of_stacks(self.database(), missing)
            except (psycopg.Error, sqlalchemy.exc.SQLAlchemyError) as error:
                log.warning("stack_projects_unknown", stacks=len(missing), error=str(error))
                return found
            for uuid, project in read.items():
                self.remember(uuid, project)
            found.update(read)
        return found

    def remember(self, stack: str, project: str) -> None:
        """Keep the project of a stack."""
        self._known.put(stack, project)


def no_projects(_stacks: Collection[str]) -> Mapping[str, str]:
    """Return no projects: all messages share one turn."""
    return {}


@dataclass(frozen=True, slots=True)
class Target:
    """The task and the queue of a message, and its stack."""

    task: str
    queue: str
    root: str
    project: str
    parent_id: str | None


@dataclass(frozen=True, slots=True)
class Publication:
    """Messages, and the id of the task that they come from, None for other senders."""

    messages: Sequence[Message]
    parent_id: str | None = None


class Dispatcher:
    """Publishes messages to a broker."""

    def __init__(
        self,
        broker_url: str,
        projects: Callable[[Collection[str]], Mapping[str, str]] = no_projects,
    ) -> None:
        """`projects` returns the projects of stacks, by uuid.

        The Celery application here only builds messages: a sender does not import the task's code.
        """
        self.app = Celery("orchestrator", set_as_current=False)
        self.app.conf.update(celery_settings(broker_url))
        self.app.task(name=TASK, shared=False)(_check_stub)
        self.app.task(name=SIGNAL_TASK, shared=False)(_signal_stub)
        self.app.task(name=OBSERVE_TASK, shared=False)(_observe_stub)
        self.app.task(name=ROUND_TASK, shared=False)(_round_stub)
        self.projects = projects
        self._connections = BrokerConnections(self.app.connection_for_write)
        self._templates: dict[tuple[str, str], dict[str, Any]] = {}
        self._local = threading.local()

    def publish(
        self,
        messages: Sequence[Message],
        parent_id: str | None = None,
        report: WorkerReport | None = None,
    ) -> None:
        """Enqueue the messages. An unreachable broker is logged, and the sweep re-enqueues the nodes.

        `report` is the state of this worker: it makes the broker move waiting messages to the workers.
        """
        self.publish_all([Publication(messages, parent_id)], report=report)

    def publish_all(
        self,
        publications: Sequence[Publication],
        finished: Sequence[FinishedTasks] = (),
        report: WorkerReport | None = None,
    ) -> None:
        """Enqueue messages of several tasks in one request, as `publish` does.

        `finished` are tasks that ended: the broker moves waiting messages to the workers.
        """
        groups = [
            group
            for publication in publications
            for group in self._rendered(publication.messages, publication.parent_id)
        ]
        commands = fair_queues.arguments(groups, finished, report)
        if not commands:
            return
        messages = sum(len(publication.messages) for publication in publications)
        for tries_left in (1, 0):  # a connection that broke since its last use is replaced
            try:
                self._send(commands)
            except (redis.RedisError, OperationalError, OSError) as error:
                self.close()
                if messages and not tries_left:
                    metrics.count_unpublished(messages)
                    log.warning("broker_unreachable", error=str(error), messages=messages)
            else:
                return

    def close(self) -> None:
        """Close the idle connections; the next publication reconnects."""
        self._connections.close()

    def _rendered(self, messages: Sequence[Message], parent_id: str | None) -> list[Group]:
        """Return the rendered messages by queue and root stack."""
        if not messages:  # most tasks release nothing
            return []
        rounds = [message for message in messages if isinstance(message, RoundMessage)]
        stacks = frozenset(m.root for m in messages if m.root and not isinstance(m, RoundMessage))
        projects = {**self.projects(stacks), **{message.root: message.project for message in rounds}}
        groups: dict[tuple[str, str], dict[str, bytes]] = {}

        def add(queue: str, root: str, rendered: tuple[str, bytes]) -> None:
            task_id, body = rendered
            groups.setdefault((queue, root), {})[task_id] = body

        checks = [message for message in messages if isinstance(message, CheckMessage)]
        for group in self._groups(checks):
            root = group[0].root
            add(_queue_of(group), root, self.render(group, projects.get(root, ""), parent_id))
        for message in messages:
            if not isinstance(message, CheckMessage):
                queue = SIGNAL_QUEUE if isinstance(message, SignalMessage) else OBSERVE_QUEUE
                project = projects.get(message.root, "")
                add(queue, message.root, self.render_other(message, project, parent_id))
        return [
            Group(queue, projects.get(root, ""), root, rendered) for (queue, root), rendered in groups.items()
        ]

    def _send(self, commands: Sequence[str | bytes]) -> None:
        with self._connections.lend() as connection:
            if connection.redis.can_read():  # the broker never replies: readable means closed
                raise redis.ConnectionError("the broker closed the connection")
            arguments = ("EVAL", SCRIPT, 0, connection.key_prefix, *commands)
            connection.redis.send_command(*arguments, check_health=False)  # type: ignore[no-untyped-call]

    def _groups(self, messages: Sequence[CheckMessage]) -> Iterable[Sequence[CheckMessage]]:
        """Return the nodes by message: one, or those that a shared list answers."""
        if not any(message.shared_list for message in messages):
            return ([message] for message in messages)
        return self._batches(messages)

    def _batches(self, messages: Sequence[CheckMessage]) -> Iterable[Sequence[CheckMessage]]:
        def batch_key(message: CheckMessage) -> tuple[str, int, str, str]:
            return message.queue, message.traversal, message.root, message.shared_list

        for (_, _, _, shared_list), same in groupby(sorted(messages, key=batch_key), key=batch_key):
            group = list(same)
            step = MAX_TOGETHER if shared_list and len(group) >= MIN_TOGETHER else 1
            yield from (group[start : start + step] for start in range(0, len(group), step))

    def render(
        self, group: Sequence[CheckMessage], project: str = "", parent_id: str | None = None
    ) -> tuple[str, bytes]:
        """Return the message that makes a worker check these nodes, in the broker's format, after its id."""
        first = group[0]
        arguments = [[message.node_id for message in group], first.traversal]
        target = Target(TASK, _queue_of(group), first.root, project, parent_id)
        return self._filled(target, arguments, describe(group))

    def render_other(
        self,
        message: SignalMessage | ObservationMessage | RoundMessage,
        project: str = "",
        parent_id: str | None = None,
    ) -> tuple[str, bytes]:
        """Return the message that processes the signals of a resource, or observes it or a group, after its
        id.
        """
        match message:
            case SignalMessage(resource_id=id_):
                task, queue = SIGNAL_TASK, SIGNAL_QUEUE
            case ObservationMessage(resource_id=id_):
                task, queue = OBSERVE_TASK, OBSERVE_QUEUE
            case RoundMessage(group_id=id_):
                task, queue = ROUND_TASK, OBSERVE_QUEUE
        target = Target(task, queue, message.root, project, parent_id)
        return self._filled(target, [id_], f"({message.label})")

    def _filled(self, target: Target, arguments: list[Any], shown: str) -> tuple[str, bytes]:
        template = self._own_template(target.task, target.queue)
        task_id = str(uuid4())  # also the delivery tag: both need only be unique
        body = orjson.dumps([arguments, {}, template["embed"]])
        message = template["message"]
        headers = message["headers"]
        headers["id"] = task_id
        headers["root_id"] = target.root or task_id
        headers["parent_id"] = target.parent_id
        headers["argsrepr"] = shown
        headers["kwargsrepr"] = f"{{'root_stack': '{target.root}'}}" if target.root else "{}"
        headers[PROJECT_HEADER] = target.project
        properties = message["properties"]
        properties["correlation_id"] = task_id
        properties["delivery_tag"] = task_id
        message["body"] = base64.b64encode(body).decode()
        return task_id, orjson.dumps(message)

    def _own_template(self, task: str, queue: str) -> dict[str, Any]:
        """Return this thread's copy of a template, which it fills in place."""
        own: dict[tuple[str, str], dict[str, Any]] = self._local.__dict__.setdefault("templates", {})
        template = own.get((task, queue))
        if template is None:
            shared = self._templates.get((task, queue))
            if shared is None:
                shared = self._templates[task, queue] = self._template(task, queue)
            template = own[task, queue] = copy.deepcopy(shared)
        return template

    def _template(self, task: str, queue: str) -> dict[str, Any]:
        """Return a message as Celery and kombu build it, to be filled in."""
        caught: list[dict[str, Any]] = []
        with Connection("memory://") as connection:
            channel = connection.channel()
            channel._put = lambda _queue, message, **_: caught.append(message)
            channel.queue_declare(queue)
            with self.app.amqp.Producer(channel) as producer:
                self.app.tasks[task].apply_async(
                    TEMPLATE_ARGUMENTS[task],
                    queue=queue,
                    producer=producer,
                    retry=False,
                    root_id="root",
                    parent_id="parent",
                )
        [message] = caught
        embed = orjson.loads(base64.b64decode(message["body"]))[2]
        return {"message": message, "embed": embed}


def _check_stub(node_ids: list[int], traversal: int) -> None:
    """Signature of the check task for senders; the body is in `check.py`."""


def _signal_stub(resource_id: int) -> None:
    """Signature of the signal task for senders; the body is in `signal.py`."""


def _observe_stub(resource_id: int) -> None:
    """Signature of the observe task for senders; the body is in `observe.py`."""


def _round_stub(group_id: int) -> None:
    """Signature of the task for a round of the observation; the body is in `observe.py`."""


def _queue_of(group: Sequence[CheckMessage]) -> str:
    """Return the queue of a message: observations that share a task have their own."""
    return OBSERVE_QUEUE if len(group) > 1 and group[0].shared_list else group[0].queue


def describe(group: Sequence[CheckMessage]) -> str:
    """Return the names of the resources, which Flower shows as the task's arguments."""
    names = ", ".join(message.label for message in group[:MAX_SHOWN])
    suffix = f" and {len(group) - MAX_SHOWN} more" if len(group) > MAX_SHOWN else ""
    return f"({names}{suffix})"
