"""The check of a plan node: small stacks are planned in place, large ones in a process of their own.

`operations/planner_process.py` is that process. It takes over the plan node's lease from the worker that
starts it, so that workers stay small.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.check.visit import Visit
from orchestrator.engine.messages import CheckMessage
from orchestrator.engine.states import ACTS
from orchestrator.errors import Superseded
from orchestrator.operations import stack_completion
from orchestrator.operations.planning.planner import DELETE_ACTIONS, Planner, TooLarge
from orchestrator.store.nodes import repository
from orchestrator.store.planning import bulk_writer, small_create
from orchestrator.store.stacks import resources
from orchestrator.template.group_template import Members, is_members

START_SECONDS = 30.0  # in which a process starts, on however busy a machine
SMALL = 2_000  # resources whose removal a worker plans by itself
MANY = 10_000  # leftovers, of which it needs to know less

STOP_SECONDS = 10.0  # in which it lets go of its node

_children: list[subprocess.Popen[bytes]] = []


def start_planner(node_id: int, lease: int) -> None:
    """Start a planner for a claimed plan node and return at once."""
    _children[:] = [child for child in _children if child.poll() is None]
    command = [sys.executable, "-m", "orchestrator.operations.planner_process", str(node_id), str(lease)]
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
