"""Large bodies: parsed, validated and stored by a short-lived process with its own memory limit.

An API process runs at most MAX_PROCESSES of them at a time, and at most half for the same project.

The caller waits for the answer of `stacks/create_delete.py` or `stacks/update.py`; its own process stays
small and responsive. The process that accepted a create or an update plans it afterwards, with the template
that it has parsed already. If it dies then, its lease on the plan node expires and a worker plans the stack.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

from orchestrator import config, gc_policy
from orchestrator.clients.openstack.sdk import MODULES as SDK_MODULES
from orchestrator.config import Settings
from orchestrator.engine.messages import CheckMessage
from orchestrator.errors import LimitExceeded, OrchestratorError
from orchestrator.fair_share import FairShare, NoFreeSlot, fair_slots
from orchestrator.json_types import JsonObject
from orchestrator.logs import bind_request, configure_logs, logger, request_id, set_log_context
from orchestrator.operations import planner_process
from orchestrator.operations.bootstrap import build_planner
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.diagnosis import revision_diff
from orchestrator.operations.planner_process import limit_process
from orchestrator.operations.preview import create as create_preview
from orchestrator.operations.preview import update as update_preview
from orchestrator.operations.preview.create import CreatePreview
from orchestrator.operations.preview.update import UpdatePreview
from orchestrator.operations.runtime import lease_keeper, turns
from orchestrator.operations.runtime.lease_keeper import Leases, new_lease
from orchestrator.operations.snapshots import snapshots
from orchestrator.operations.stacks import actions
from orchestrator.operations.stacks import create_delete as stacks
from orchestrator.operations.stacks import update as updates
from orchestrator.operations.stacks.create_delete import Accepted
from orchestrator.operations.validation import template_report
from orchestrator.process_control import die_with, yield_processor
from orchestrator.rate_errors import TooManyLargeRequests
from orchestrator.resources.registry import load_registry
from orchestrator.security.caller import Caller
from orchestrator.security.encryption import cipher
from orchestrator.store.access.idempotency import ClientToken
from orchestrator.store.connections.database import UNREACHABLE, Database
from orchestrator.store.nodes import repository
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.store.traversals.traversals import StartedTraversal
from orchestrator.template.template import Template
from orchestrator.watchdog.watch import LONG_LIMIT_SECONDS, watch

log = logger()

ANSWER_SECONDS = 600.0
# Processor time of a request: twice the time for a YAML list of short values, the slowest text per byte.
MAX_PROCESSES: Final = 4  # at a time in an API process; a project uses at most half of them
BASE_CPU_SECONDS: Final = 60
BYTES_PER_CPU_SECOND: Final = 512 * 1024
EXIT_SECONDS: Final = 5.0  # until the exit status of a process is known
TOO_LONG: Final = (
    "The request needs more than {} seconds of processor time, the limit for its size. Use fewer or smaller "
    "values and nested templates, or several stacks."
)
SLOT_SECONDS: Final = 60.0  # longest wait for the end of other large requests
REFUSAL_SECONDS: Final = 1.0  # delay of a refusal: the request is sent again, and its body read again
SLOT_RETRY_SECONDS: Final = 10  # for a caller that was refused
NICENESS: Final = 10  # of a subprocess: it yields the processor to small requests and to workers
MAX_WAITING: Final = 8  # large requests of a project that wait, per API process


@dataclass(frozen=True, slots=True)
class _Job:
    """The input of the subprocess; it builds everything else itself."""

    settings: Settings
    database_url: str
    caller: Caller
    path: Path | None
    cpu_seconds: int
    memory_bytes: int
    patience_seconds: float = 0.0
    request_id: str | None = None
    client_token: ClientToken | None = None


def create(context: OperationContext, body: Body) -> Accepted:
    """Accept a new stack; a large body is handled in a subprocess."""
    if body.path is None:
        return stacks.create(context, body)
    accepted: Accepted = _run_in_subprocess(context, body.path, _create)
    return accepted


def update(context: OperationContext, stack: StackRow, body: Body, *, patch: bool = False) -> Accepted:
    """Accept an update; a large body is handled in a subprocess."""
    if body.path is None:
        return updates.update(context, stack, body, patch=patch)
    accepted: Accepted = _run_in_subprocess(context, body.path, partial(_update, stack=stack, patch=patch))
    return accepted


def preview_create(context: OperationContext, body: Body) -> CreatePreview:
    """Preview a create; a large body is handled in a subprocess."""
    if body.path is None:
        return create_preview.preview_create(context, body)
    preview: CreatePreview = _run_in_subprocess(context, body.path, _preview_create)
    return preview


def preview_update(
    context: OperationContext,
    stack: StackRow,
    body: Body,
    *,
    patch: bool = False,
    show_nested: bool = False,
) -> UpdatePreview:
    """Preview an update; a large body is handled in a subprocess."""
    if body.path is None:
        return update_preview.preview_update(context, stack, body, patch=patch, show_nested=show_nested)
    work = partial(_preview_update, stack=stack, patch=patch, show_nested=show_nested)
    preview: UpdatePreview = _run_in_subprocess(context, body.path, work)
    return preview


def validate(context: OperationContext, body: Body, **how: bool) -> JsonObject:
    """Validate a template; a large body is handled in a subprocess."""
    if body.path is None:
        return template_report.validate(context, body, **how)
    work = partial(_validate, how=how)
    result: JsonObject = _run_in_subprocess(context, body.path, work)
    return result


def differ(context: OperationContext, stack: StackRow, before: int, after: int) -> JsonObject:
    """Compare two revisions; large templates are compared in a subprocess."""
    size = revision_diff.size(context, stack, before, after)
    if size <= config.INLINE_BODY_SIZE:
        return revision_diff.diff_revisions(context, stack, before, after)
    work = partial(_differ, stack=stack, before=before, after=after)
    differences: JsonObject = _run_in_subprocess(context, None, work, 2 * size)
    return differences


def restore(context: OperationContext, stack: StackRow, snapshot_id: str) -> list[CheckMessage]:
    """Start to restore a snapshot; a large template is handled in a subprocess."""
    size = snapshots.template_size(context, stack, snapshot_id)
    if size <= config.INLINE_BODY_SIZE:
        return snapshots.restore(context, stack, snapshot_id)
    messages: list[CheckMessage] = _run_in_subprocess(
        context, None, partial(_restore, stack=stack, snapshot_id=snapshot_id), size
    )
    return messages


def roll_back(context: OperationContext, stack: StackRow, number: int) -> list[CheckMessage]:
    """Start a rollback; the types of a large revision are judged in a subprocess."""
    if actions.checked_size(context, stack, number) <= config.INLINE_BODY_SIZE:
        return actions.roll_back(context, stack, number)
    messages: list[CheckMessage] = _run_in_subprocess(
        context, None, partial(_roll_back, stack=stack, number=number)
    )
    return messages


def preload_forkserver(*, cloud: bool = False) -> None:
    """Preload the modules that subprocesses share: each starts within milliseconds. With a `cloud`, they
    look up names in it.
    """
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload([__name__, *(SDK_MODULES if cloud else ())])


def _run_in_subprocess(
    context: OperationContext,
    path: Path | None,
    work: Callable[[_Job, Connection], None],
    size: int | None = None,
) -> Any:
    """Run `work` in a subprocess; return its answer or raise its error. Its processor time is limited by the
    `size` of the texts that it reads, usually the body's size.

    Raises:
        TooManyLargeRequests: no slot became free in time.
        LimitExceeded: the work needs too much time or memory.
    """
    seconds = cpu_seconds(Body(path=path).size if size is None else size)
    with turns.paused():
        return _answer_of_subprocess(context, path, work, seconds)


def cpu_seconds(size: int) -> int:
    """Return the processor time for a request with texts of this size, in seconds."""
    return BASE_CPU_SECONDS + math.ceil(size / BYTES_PER_CPU_SECOND)


def _answer_of_subprocess(
    context: OperationContext, path: Path | None, work: Callable[[_Job, Connection], None], seconds: int
) -> Any:
    slots, project = _slots(MAX_PROCESSES), context.caller.project_id
    try:
        slots.acquire(project, SLOT_SECONDS)
    except NoFreeSlot as error:
        time.sleep(REFUSAL_SECONDS)
        raise TooManyLargeRequests(SLOT_RETRY_SECONDS) from error
    try:
        process, here = _start(context, path, work, seconds)
    except BaseException:
        slots.release(project)
        raise
    threading.Thread(target=_release_at_exit, args=(process, slots, project), daemon=True).start()
    try:
        if not here.poll(ANSWER_SECONDS):
            process.terminate()
            raise LimitExceeded(f"The template could not be checked within {ANSWER_SECONDS:.0f} seconds.")
        answer = here.recv()
    except EOFError as error:
        process.join(EXIT_SECONDS)
        if process.exitcode == -signal.SIGXCPU:
            raise LimitExceeded(TOO_LONG.format(seconds)) from error
        raise LimitExceeded("The template needs more memory than the limit for requests.") from error
    finally:
        here.close()
    if isinstance(answer, Exception):
        raise answer
    return answer


def _start(
    context: OperationContext, path: Path | None, work: Callable[[_Job, Connection], None], seconds: int
) -> tuple[BaseProcess, Connection]:
    """Start the subprocess; also return the connection that receives its answer."""
    processes, database = multiprocessing.get_context("forkserver"), context.database
    here, remote_end = processes.Pipe(duplex=False)
    patience = database.patience_seconds
    job = _Job(
        context.settings,
        database.url,
        context.caller,
        path,
        seconds,
        planner_process.MEMORY_BYTES,
        patience,
        request_id(),
        context.client_token,
    )
    process = processes.Process(target=_run, args=(work, job, remote_end), daemon=True, name="intake")
    process.start()
    remote_end.close()
    return process, here


@cache
def _slots(count: int) -> FairShare:
    """Return the slots of this process; a project may occupy half of them."""
    return fair_slots(count, max(1, count // 2), MAX_WAITING)


def _release_at_exit(process: BaseProcess, slots: FairShare, project: str) -> None:
    """Wait for the end of a subprocess, which may be long after its answer, and release its slot."""
    wait([process.sentinel])
    slots.release(project)


def _run(work: Callable[[_Job, Connection], None], job: _Job, answer: Connection) -> None:
    configure_logs()
    bind_request(job.request_id)
    die_with(os.getppid())  # the fork server, which ends with the process that received the request
    yield_processor(NICENESS, new_session=True)
    limit_process(job.memory_bytes, job.cpu_seconds)
    gc_policy.disable_collection()
    try:
        work(job, answer)
    except MemoryError:
        answer.send(LimitExceeded("The template needs more memory than the limit for requests."))
    except (OrchestratorError, *UNREACHABLE) as error:
        if answer.closed:  # the request is answered already: a worker continues the plan
            log.warning("plan_interrupted", error=str(error))
        else:
            answer.send(error)
    except Exception as error:
        log.exception("offload_error")
        if not answer.closed:
            answer.send(RuntimeError(str(error)))


def _context(job: _Job) -> OperationContext:
    database = Database(job.database_url, "orchestrator-intake", patience_seconds=job.patience_seconds)
    return OperationContext(
        database, cipher(job.settings), job.caller, job.settings, load_registry(), job.client_token
    )


def _validate(job: _Job, answer: Connection, *, how: Mapping[str, bool]) -> None:
    answer.send(template_report.validate(_context(job), Body(path=job.path), **how))


def _update(job: _Job, answer: Connection, *, stack: StackRow, patch: bool) -> None:
    context, lease = _context(job), new_lease()
    body = Body(path=job.path)
    opened, template, warnings = updates.accept(context, stack, body, patch=patch, lease=lease)
    answer.send(Accepted(str(stack.uuid), stack.name, [], warnings))
    answer.close()
    _continue_planning(context, opened, lease, template)


def _differ(job: _Job, answer: Connection, *, stack: StackRow, before: int, after: int) -> None:
    answer.send(revision_diff.diff_revisions(_context(job), stack, before, after))


def _preview_create(job: _Job, answer: Connection) -> None:
    answer.send(create_preview.preview_create(_context(job), Body(path=job.path)))


def _preview_update(
    job: _Job, answer: Connection, *, stack: StackRow, patch: bool, show_nested: bool
) -> None:
    context, body = _context(job), Body(path=job.path)
    answer.send(update_preview.preview_update(context, stack, body, patch=patch, show_nested=show_nested))


def _restore(job: _Job, answer: Connection, *, stack: StackRow, snapshot_id: str) -> None:
    answer.send(snapshots.restore(_context(job), stack, snapshot_id))


def _roll_back(job: _Job, answer: Connection, *, stack: StackRow, number: int) -> None:
    answer.send(actions.roll_back(_context(job), stack, number))


def _create(job: _Job, answer: Connection) -> None:
    context, lease = _context(job), new_lease()
    opened, stack, template, warnings = stacks.validate_and_insert(context, Body(path=job.path), lease)
    answer.send(Accepted(str(stack.uuid), stack.name, [], warnings))
    answer.close()
    del stack  # frees the memory of its texts before the plan
    _continue_planning(context, opened, lease, template)


def _continue_planning(
    context: OperationContext, opened: StartedTraversal, lease: int, template: Template
) -> None:
    """Plan the accepted traversal after the answer, for which the caller no longer waits."""
    watch("planner", seconds=LONG_LIMIT_SECONDS)
    limit_process(planner_process.MEMORY_BYTES, planner_process.CPU_SECONDS)
    database, settings = context.database, context.settings
    planner = build_planner(database, context.cipher, context.types, settings)
    with Leases(database, lease_keeper.LEASE_SECONDS).keep([(opened.plan_node_id, None, lease)]):
        db = database.connect(hot=True)
        visit = repository.read_claimed_plan(db, opened.plan_node_id, lease)
        if visit is not None:
            set_log_context(visit.log_context)
            log.info("plan_started", action=visit.stack.action)
            planner.run(db, visit, lease, template, enqueue=False)
