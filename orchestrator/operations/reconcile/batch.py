"""Check a batch of visits under a claim: visit each node, then write the outcomes by statement."""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import inf
from typing import Final, NamedTuple

from orchestrator import metrics
from orchestrator.engine.check.visit import ControlVisit, ResourceVisit, Visit
from orchestrator.engine.messages import CheckMessage
from orchestrator.logs import logger, set_log_context
from orchestrator.operations import stack_completion
from orchestrator.operations.reconcile.checked_node import CheckedNode
from orchestrator.operations.reconcile.outcome_writer import OutcomeWriter
from orchestrator.operations.reconcile.pending import (
    Drop,
    Enqueue,
    Join,
    NeedsLease,
    Pending,
    Separate,
)
from orchestrator.operations.reconcile.resource_visits import BatchContext, visit_resource
from orchestrator.schema.safe_regex import matching_budget
from orchestrator.store.connections.damaged_rows import DAMAGED
from orchestrator.store.planning import small_plans

log = logger()

TOGETHER_SECONDS: Final = 1.0  # for the visits after the first one of a batch that shares a list


class CheckedBatch(NamedTuple):
    """Result of a batch: messages to send, and visits to repeat with a lease."""

    messages: list[CheckMessage]
    needing_lease: list[ControlVisit]


def check_batch(
    batch: BatchContext, visits: Sequence[Visit], plan_inputs: small_plans.CreateInputs | None = None
) -> CheckedBatch:
    """Visit every node and write the outcomes; `plan_inputs` were read with a single plan node."""
    if not visits:
        return CheckedBatch([], [])
    results: list[Pending] = []
    until = inf
    for visit in visits:
        set_log_context(visit.log_context)
        result = _visit(batch, visit, plan_inputs) if time.monotonic() < until else Separate(visit)
        if result is not None:
            results.append(result)
        if batch.together and until == inf:  # the first visit may have waited for the list
            until = time.monotonic() + TOGETHER_SECONDS
    needing_lease = [result.visit for result in results if isinstance(result, NeedsLease)]
    writer = OutcomeWriter.of(batch, visits[0])
    messages = writer.write(results)
    messages += writer.refill(len(visits) - len(needing_lease))
    return CheckedBatch(messages, needing_lease)


def _visit(batch: BatchContext, visit: Visit, plan_inputs: small_plans.CreateInputs | None) -> Pending | None:
    with batch.worker.quarantine.guarding("node", visit.node_id), matching_budget():
        return _visit_node(batch, visit, plan_inputs)


def _visit_node(
    batch: BatchContext, visit: Visit, plan_inputs: small_plans.CreateInputs | None
) -> Pending | None:
    if isinstance(visit, ResourceVisit):
        return visit_resource(batch, visit)
    result: Pending
    try:
        result = _visit_control_node(batch, visit, plan_inputs)
    except DAMAGED as error:
        database, stack = batch.worker.database, visit.stack
        result = Enqueue(stack_completion.fail_damaged(database, stack.id, visit.traversal, error))
    metrics.count_visit(visit.kind, "visit", "done")
    stack = visit.stack
    batch.checked.append(CheckedNode(visit.node_id, stack.name, visit.kind, stack.action, "visit"))
    return result


def _visit_control_node(
    batch: BatchContext, visit: ControlVisit, plan_inputs: small_plans.CreateInputs | None
) -> Pending:
    """Visit a node without a resource: plan, join, finish, or a cleanup whose row is deleted already."""
    if visit.superseded or (visit.halted and visit.kind != "finish"):
        return Drop(visit)
    if reason := batch.worker.quarantine.reason("node", visit.node_id):
        return Enqueue(_fail(batch, visit, reason))
    if visit.kind == "plan":
        return _plan(batch, visit, plan_inputs)
    if batch.lease is None:
        return _finish_child(batch, visit)
    if visit.kind in {"join", "cleanup"}:
        return Join(visit)
    if visit.kind == "finish":
        return Enqueue(_finish(batch, visit, batch.lease))
    return Drop(visit)  # its row was lost: the stalled stack is planned again (protocol.md rule 16)


def _fail(batch: BatchContext, visit: ControlVisit, reason: str) -> list[CheckMessage]:
    log.error("node_quarantined", node=visit.node_id, kind=visit.kind, reason=reason)
    return stack_completion.fail(batch.worker.database, visit.stack.id, visit.traversal, reason)


def _plan(
    batch: BatchContext, visit: ControlVisit, plan_inputs: small_plans.CreateInputs | None
) -> Enqueue | NeedsLease:
    log.info("plan_started", action=visit.stack.action)
    worker, root_id = batch.worker, visit.stack.root_id
    budget = worker.windows.budget(root_id)
    if batch.lease is None:
        small = worker.plan.small(batch.db, visit, budget, plan_inputs)
        if small is None:
            return NeedsLease(visit)
        messages, remaining = small.messages, small.not_enqueued
    else:
        messages, remaining = worker.plan(visit, batch.lease, budget), 1  # more may remain
    worker.windows.enqueued(root_id, len(messages), remaining)
    return Enqueue(messages)


def _finish_child(batch: BatchContext, visit: ControlVisit) -> Enqueue | NeedsLease:
    """End the traversal of a child stack."""
    messages = stack_completion.end_child(batch.db, visit.node_id, batch.worker.stacks.root_of(visit.stack))
    return NeedsLease(visit) if messages is None else Enqueue(messages)


def _finish(batch: BatchContext, visit: ControlVisit, lease: int) -> list[CheckMessage]:
    """End the traversal, or start the cleanup of the resources that can be deleted only now (adr/0002)."""
    worker = batch.worker
    if not visit.halted:
        cleanup = worker.plan.plan_cleanup(visit, lease)
        if cleanup is not None:
            return cleanup
    return stack_completion.complete_or_drain(worker.database, visit, lease)
