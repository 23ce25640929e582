"""The check task: visit nodes of a traversal.

A message carries node ids and their traversal; nothing else is read. Tasks that a worker receives together
share statements, commits and one publication (gathering.py, adr/0002); each has its own result. An unexpected
error in a check is logged and the message dropped: the lease expires, and the sweep re-enqueues the node.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

from orchestrator import metrics
from orchestrator.engine.messages import CheckMessage
from orchestrator.logs import logger
from orchestrator.operations.reconcile.check import Attempt, check_external, check_of
from orchestrator.operations.reconcile.checked_node import CheckedNode
from orchestrator.operations.runtime.lease_keeper import new_lease
from orchestrator.store.connections.database import UNREACHABLE
from tasks import task_events
from tasks.app import app, dispatcher, engine, projects
from tasks.celery_settings import QUEUES
from tasks.execution import Pace, isolated
from tasks.fair_queues import GATHERED, FinishedTasks
from tasks.publisher import OBSERVE_QUEUE, PROJECT_HEADER, TASK, Publication

log = logger()

pace = Pace()

# Seconds before each try; a broken connection is replaced at once, a restarting database needs longer.
PAUSES = (0.0, 0.2, 1.0, 2.0)


class CheckTask(NamedTuple):
    """A received check."""

    id: str
    root: str
    project: str
    queue: str
    node_ids: Sequence[int]
    traversal: int


class Result(NamedTuple):
    """The end of a check: the summary for Flower, or the error of its task."""

    summary: str | None
    error: Exception | None = None


@app.task(
    name=TASK,
    bind=True,
    max_retries=2,
    shared=False,
    Request=task_events.REQUEST,
    Strategy="tasks.gathering:strategy",
    throws=(task_events.ResourceFailed,),
)
def check(self: Any, node_ids: list[int], traversal: int) -> str | None:
    """Visit nodes and enqueue the nodes that became ready; return the summary for Flower.

    Raises:
        ResourceFailed: a resource failed. Everything is committed and published by then.
    """
    request = self.request
    queue = (request.delivery_info or {}).get("routing_key") or ""
    project = getattr(request, PROJECT_HEADER, None) or ""
    [(summary, error)] = carry_out(
        [CheckTask(request.id, request.root_id or "", project, queue, node_ids, traversal)]
    )
    if error is not None:
        raise error
    return summary


def carry_out(tasks: Sequence[CheckTask]) -> list[Result]:
    """Carry out checks of a queue; return their results in order. The nodes of a traversal are checked
    together, all messages are sent at once, also after an error.
    """
    started, used = time.perf_counter(), time.thread_time()
    results: dict[str, Result] = {}
    publications: list[Publication] = []
    for group in _groups(tasks, lambda task: (task.root, task.traversal)):
        if group[0].project and group[0].root:
            projects.remember(group[0].root, group[0].project)
        messages = _check_group(group, results)
        publications.append(Publication(messages, group[0].id))
    seconds = (time.perf_counter() - started) / len(tasks)
    if tasks[0].queue == GATHERED:
        pace.note(len(tasks), time.thread_time() - used)
    finished = [
        FinishedTasks([task.id for task in group], group[0].queue, group[0].project, seconds, pace.together)
        for group in _groups(tasks, lambda task: task.project)
    ]
    dispatcher.publish_all(publications, finished)
    for task in tasks:
        metrics.observe_check(task.queue if task.queue in QUEUES else metrics.OTHER, seconds)
    return [results[task.id] for task in tasks]


def _groups(tasks: Sequence[CheckTask], key: Callable[[CheckTask], Any]) -> list[list[CheckTask]]:
    return [list(group) for _, group in groupby(sorted(tasks, key=key), key)]


def _check_group(group: Sequence[CheckTask], results: dict[str, Result]) -> list[CheckMessage]:
    """Check the nodes of tasks of a traversal; add the results, and return the messages to send."""
    lease = new_lease()

    def failed(task: CheckTask, error: Exception) -> None:
        results[task.id] = Result(None, error)

    parts = isolated(
        group, lambda tasks, again: _check(tasks, Attempt(lease, repeats=again), results), failed
    )
    return [message for part in parts for message in part]


def _check(group: Sequence[CheckTask], attempt: Attempt, results: dict[str, Result]) -> list[CheckMessage]:
    visit = check_external if group[0].queue == OBSERVE_QUEUE else check_of(group[0].queue)
    node_ids = [id_ for task in group for id_ in task.node_ids]
    messages: list[CheckMessage] = []
    for pause in PAUSES:
        try:
            messages = visit(engine(), node_ids, group[0].traversal, attempt)
            break
        except UNREACHABLE as error:
            attempt = replace(attempt, repeats=True)
            log.warning("database_unreachable", nodes=node_ids, error=str(error))
            time.sleep(pause)
    else:  # the sweep re-enqueues the nodes
        attempt.checked.clear()
    for task in group:
        results[task.id] = _result([node for node in attempt.checked if node.node_id in task.node_ids])
    return messages


def _result(checked: list[CheckedNode]) -> Result:
    try:
        return Result(task_events.summary(checked))
    except task_events.ResourceFailed as error:
        return Result(None, error)
