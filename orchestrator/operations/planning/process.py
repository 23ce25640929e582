"""The check of a plan node: small stacks are planned in place, large stacks in a separate process.

`operations/planner_process.py` is that process; it keeps workers small. The worker that starts it renews the
lease of the plan node until it ends, and it ends with its worker. So a node has one planner at a time, and a
start of any duration on a busy machine costs no lease.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.check.visit import ControlVisit
from orchestrator.engine.messages import CheckMessage
from orchestrator.engine.states import ACTS
from orchestrator.errors import Superseded
from orchestrator.logs import logger
from orchestrator.operations import stack_completion
from orchestrator.operations.planning.planner import Planner
from orchestrator.operations.planning.template_plan import DELETE_ACTIONS, TooLarge
from orchestrator.operations.runtime import lease_keeper
from orchestrator.operations.runtime.lease_keeper import Leases
from orchestrator.process_control import die_with
from orchestrator.store.connections.database import UNREACHABLE
from orchestrator.store.nodes import repository
from orchestrator.store.planning import bulk_writer, plan_inputs, small_plans
from orchestrator.store.stacks import resources
from orchestrator.template.group_template import Members, is_members

MAX_INLINE_BYTES = 100_000  # a larger template is planned by its own process
MAX_RESOURCES_IN_PLACE = 2_000  # planned by a worker itself
MAX_DEPOSED_IN_PLACE = 10_000  # the plan of deposed resources reads less of each
STOP_SECONDS = 10.0  # time for a planner process to release its node

MODULE = "orchestrator.operations.planner_process"
log = logger()


class PlannerProcesses:
    """The planner processes that this process started."""

    def __init__(self, leases: Leases) -> None:
        """Keep the leases of their nodes with `leases`."""
        self._leases = leases
        self._running: dict[subprocess.Popen[bytes], threading.Thread] = {}

    def start(self, node_id: int, lease: int) -> None:
        """Start a planner process for a claimed plan node and return at once."""
        started = threading.Event()
        # A process ends with the thread that started it, so this thread also waits for it.
        follower = threading.Thread(target=self._follow, args=(node_id, lease, started), daemon=True)
        follower.start()
        started.wait()

    def stop(self) -> None:
        """Stop the planner processes; other workers resume their plans."""
        running = dict(self._running)
        for child in running:
            child.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for child, follower in running.items():
            try:
                child.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:  # its lease expires
                child.kill()
            follower.join()

    def _follow(self, node_id: int, lease: int, started: threading.Event) -> None:
        """Start a process, and renew its lease until it ends."""
        worker = os.getpid()
        command = (sys.executable, "-m", MODULE, str(node_id), str(lease))
        try:
            with self._leases.keep([(node_id, None, lease)]):
                child = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    preexec_fn=lambda: die_with(worker),  # noqa: PLW1509 - it must not outlive the lease
                )
                self._running[child] = threading.current_thread()
                started.set()
                status = child.wait()
            del self._running[child]
        except OSError as error:
            log.error("planner_failed", node=node_id, reason=str(error))
            return
        finally:
            started.set()
        if status == -signal.SIGTERM:  # stopped before it could release its node
            self._release(node_id, lease)
        elif status:
            log.error("planner_failed", node=node_id, reason=ending(status))

    def _release(self, node_id: int, lease: int) -> None:
        try:
            with self._leases.database.borrow() as db:
                repository.release(db, node_id, lease)
        except UNREACHABLE as error:  # the lease expires
            log.warning("database_unreachable", node=node_id, error=str(error))


def ending(status: int) -> str:
    """Return how a process ended, given its exit status as in `subprocess`."""
    if status >= 0:
        return f"ended with status {status}"
    return f"killed by {signal.Signals(-status).name}"


@dataclass(frozen=True, slots=True)
class PlanNodeHandler:
    """A check's visit to a plan node."""

    planner: Planner
    start_process: Callable[[int, int], None]

    def __call__(
        self, visit: ControlVisit, lease: int, max_enqueued: int | None = None
    ) -> list[CheckMessage]:
        """Plan a small stack in place, or start a process for a large stack; return the messages to send.

        A plan written in a single statement returns at most `max_enqueued` messages.
        """
        planner, stack = self.planner, visit.stack
        if visit.lost_leases > planner.settings.action_retry_limit:
            reason = "Planning failed repeatedly; see the log"
            log.error("planning_failed", node=visit.node_id, stack=stack.uuid, lost_leases=visit.lost_leases)
            return stack_completion.fail(planner.database, stack.id, visit.traversal, reason)
        db = planner.database.check_connection(durable=True)
        if is_small_plan_candidate(visit) and max_enqueued is not None:
            small = planner.plan_in_one_statement(db, visit, lease, max_enqueued)
            if small is not None:
                return small.messages
        repair = planner.plan_repair(db, visit, lease)
        if repair is not None:
            return repair
        if not self._is_large(db, visit):
            with suppress(TooLarge):
                return planner.run(db, visit, lease, max_members=MAX_RESOURCES_IN_PLACE)
        repository.renew(db, [(visit.node_id, None, lease)], lease_keeper.LEASE_SECONDS)
        self.start_process(visit.node_id, lease)
        return []

    def small(
        self,
        db: Connection[TupleRow],
        visit: ControlVisit,
        max_enqueued: int,
        inputs: small_plans.CreateInputs | None,
    ) -> repository.Settled | None:
        """Plan a small stack's first traversal or delete without a claim of the node; None when it needs
        slices.
        """
        return self.planner.plan_in_one_statement(db, visit, None, max_enqueued, inputs)

    def plan_cleanup(self, visit: ControlVisit, lease: int) -> list[CheckMessage] | None:
        """Plan the cleanups of deposed resources; None when no deposed resource is left."""
        db = self.planner.database.check_connection(durable=True)
        try:
            plan = self.planner.begin_removals(db, visit, lease)
        except Superseded:  # after the visit was read
            return repository.drop(
                db, [visit.node_id], lease, self.planner.stacks.root_of(visit.stack)
            ).messages
        return None if plan is None else self(plan, lease)

    def _is_large(self, db: Connection[TupleRow], visit: ControlVisit) -> bool:
        stack = visit.stack
        if visit.label == bulk_writer.CLEANUP_PLAN_LABEL:
            limit = MAX_DEPOSED_IN_PLACE
            return bulk_writer.count_unplanned_deposed(db, stack.id, visit.traversal, limit + 1) > limit
        if stack.action in DELETE_ACTIONS or stack.action in ACTS:
            limit = MAX_RESOURCES_IN_PLACE
            return resources.count_up_to(db, stack.id, limit + 1) > limit
        text = plan_inputs.template_text(db, stack.revision_id, MAX_INLINE_BYTES)
        if text is None:
            return True
        if not is_members(text) or len(Members.parse(text).all) <= MAX_RESOURCES_IN_PLACE:
            return False
        pending = plan_inputs.pending_adoption(db, stack.id) is not None
        # Otherwise the number of changed members decides: `Planner.run` raises TooLarge.
        return visit.traversal == 1 or stack.converge or pending


def is_small_plan_candidate(visit: ControlVisit) -> bool:
    """Whether a single statement can write the plan if the stack is small: a first traversal or a delete."""
    stack = visit.stack
    if stack.action in DELETE_ACTIONS:
        return visit.label != bulk_writer.CLEANUP_PLAN_LABEL
    return visit.traversal == 1 and stack.action == "CREATE"
