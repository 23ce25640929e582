"""Where a traversal is planned: small stacks in the plan node's own check, large ones in a process of their
own.

`python -m orchestrator.operations.planning.process NODE LEASE` plans one large stack and ends, so that
workers stay small. It takes over the plan node's lease from the worker that started it. If it dies, the lease
runs out and another takes up the plan where its last slice ended. It sends no messages: the sweep rings the
first nodes, and the checks the rest.
"""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator import gc_policy
from orchestrator.config import settings
from orchestrator.engine.check.visit import Visit
from orchestrator.engine.messages import CheckMessage
from orchestrator.engine.states import ACTS
from orchestrator.errors import Superseded
from orchestrator.logs import concerning, configure_logs, logger
from orchestrator.operations import stack_completion
from orchestrator.operations.children.child_stacks import ChildStackLoader
from orchestrator.operations.planning.planner import DELETE_ACTIONS, Planner, TooLarge
from orchestrator.operations.runtime.file_cache import FileCache
from orchestrator.operations.runtime.lease_keeper import Leases
from orchestrator.operations.runtime.parameter_cache import ParameterCache
from orchestrator.resources.registry import load_registry
from orchestrator.security.encryption import cipher
from orchestrator.store.connections.database import UNREACHABLE, open_database
from orchestrator.store.nodes import repository
from orchestrator.store.planning import bulk_writer, small_create
from orchestrator.store.stacks import resources
from orchestrator.template.group_template import Members, is_members

log = logger()

START_SECONDS = 30.0  # in which a process starts, on however busy a machine
SMALL = 2_000  # resources whose removal a worker plans by itself
MANY = 10_000  # leftovers, of which it needs to know less

STOP_SECONDS = 10.0  # in which it lets go of its node

_children: list[subprocess.Popen[bytes]] = []


def start_planner(node_id: int, lease: int) -> None:
    """Start a planner for a claimed plan node and return at once."""
    _children[:] = [child for child in _children if child.poll() is None]
    command = [sys.executable, "-m", "orchestrator.operations.planning.process", str(node_id), str(lease)]
    _children.append(subprocess.Popen(command, stdin=subprocess.DEVNULL))


def stop_planners() -> None:
    """Let the planners that this process started hand their plans over to others: it is about to end."""
    running = [child for child in _children if child.poll() is None]
    for child in running:
        child.terminate()
    deadline = time.monotonic() + STOP_SECONDS
    for child in running:
        try:
            child.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:  # its lease runs out
            child.kill()
            child.wait()


@dataclass(frozen=True, slots=True)
class PlanNodeHandler:
    """A check's visit to a plan node."""

    planner: Planner
    start_process: Callable[[int, int], None] = start_planner

    def __call__(self, visit: Visit, lease: int, allowance: int | None = None) -> list[CheckMessage]:
        """Plan in place when the stack is small, elsewhere when it is not; return what to enqueue, of a small
        one's first plan or removal `allowance` rings at most.
        """
        planner, stack = self.planner, visit.stack
        if visit.lost_leases > planner.settings.action_retry_limit:
            reason = "Planning failed repeatedly; see the log"
            return stack_completion.fail(planner.database, stack.id, visit.traversal, reason)
        db = planner.database.check_connection(durable=True)
        if is_small_plan_candidate(visit) and allowance is not None:
            small = planner.plan_in_one_statement(db, visit, lease, allowance)
            if small is not None:
                return small.rings
        if not self._is_large(db, visit):
            with suppress(TooLarge):
                return planner.run(db, visit, lease, members=SMALL)
        seconds = max(planner.settings.lease_seconds, START_SECONDS)
        repository.renew(db, [(visit.node_id, None, lease)], seconds)  # until it does so itself
        self.start_process(visit.node_id, lease)
        return []

    def small(
        self, db: Connection[TupleRow], visit: Visit, allowance: int, read: small_create.PlanInputs | None
    ) -> repository.Settled | None:
        """Plan a small stack's first traversal or its removal without a claim of the node; None when it takes
        more.
        """
        return self.planner.plan_in_one_statement(db, visit, None, allowance, read)

    def plan_cleanup(self, visit: Visit, lease: int) -> list[CheckMessage] | None:
        """Plan the removal of what nothing stands on any more; None when there is nothing left to remove."""
        db = self.planner.database.check_connection(durable=True)
        try:
            plan = self.planner.begin_removals(db, visit, lease)
        except Superseded:  # since it was looked at
            return repository.drop(db, [visit.node_id], lease, self.planner.stacks.root_of(visit.stack)).rings
        return None if plan is None else self(plan, lease)

    def _is_large(self, db: Connection[TupleRow], visit: Visit) -> bool:
        stack = visit.stack
        if visit.label == bulk_writer.CLEANUP_PLAN_LABEL:
            return bulk_writer.count_leftovers(db, stack.id, visit.traversal, MANY + 1) > MANY
        if stack.action in DELETE_ACTIONS or stack.action in ACTS:
            return resources.count_up_to(db, stack.id, SMALL + 1) > SMALL
        text = bulk_writer.template_text(db, stack.revision_id, self.planner.settings.inline_body_size)
        if text is None:
            return True
        if not is_members(text) or len(Members.parse(text).all) <= SMALL:
            return False
        pending = bulk_writer.pending_adoption(db, stack.id) is not None
        return visit.traversal == 1 or stack.converge or pending  # else it depends on how many differ


def is_small_plan_candidate(visit: Visit) -> bool:
    """Whether a plan can be written in one go if the stack is small: that of a first traversal, that of a
    removal.
    """
    stack = visit.stack
    if stack.action in DELETE_ACTIONS:
        return visit.label != bulk_writer.CLEANUP_PLAN_LABEL
    return visit.traversal == 1 and stack.action == "CREATE"


def limit_memory(limit: int) -> None:
    """Bound this process's address space, in bytes."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(
        resource.RLIMIT_AS, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard)
    )


def main(node_id: int, lease: int) -> None:
    """Plan one node."""
    configure_logs()
    chosen = settings()
    limit_memory(chosen.planner_memory_limit)
    gc_policy.rest()
    database = open_database(chosen, "orchestrator-planner")
    sealing = cipher(chosen)

    types = load_registry()
    stacks = ChildStackLoader(database, sealing, types, chosen, FileCache(database))
    planner = Planner(database, sealing, types, chosen, ParameterCache(database, sealing), stacks)
    db = database.connect(hot=True)
    visits = repository.read_claimed(db, [node_id], lease)
    if not visits:
        return
    concerning(visits[0].log_context)
    log.info("plan_apart", action=visits[0].stack.action)
    signal.signal(signal.SIGTERM, _stop)
    try:
        with Leases(database, chosen.lease_seconds).keep([(node_id, None, lease)]):
            planner.run(db, visits[0], lease, ring=False)
    except UNREACHABLE as error:
        log.warning("database_unreachable", error=str(error))
    except _Stopped:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        db.cancel()  # what it was about to write is not written
        db.close()
        repository.release(database.connect(hot=True), node_id, lease)
        log.info("plan_handed_over")


class _Stopped(BaseException):
    """We are to end: whoever takes up the plan goes on where the last slice ended."""


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise _Stopped


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
