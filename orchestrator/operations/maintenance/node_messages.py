"""Messages for nodes that are due, whose lease expired, or whose message was lost or never sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orchestrator import backoff, metrics
from orchestrator.engine.messages import CheckMessage
from orchestrator.logs import logger
from orchestrator.operations.runtime import dispatch_window
from orchestrator.operations.runtime.maintenance_job import (
    AUDIT_SECONDS,
    MAX_ROWS,
    Maintenance,
    MaintenanceJob,
)
from orchestrator.store.connections.damaged_rows import apart
from orchestrator.store.maintenance import sweep_queries
from orchestrator.store.nodes import repository

log = logger()

MAX_LOGGED: Final = 20  # lost leases that a sweep logs one by one
ENQUEUED_WITHIN_SECONDS: Final = 2.0  # of the commit that marked the nodes
LEASE_EXPIRED: Final = "its worker or planner died, hung, or could not reach the database"


def enqueue_due(tools: Maintenance) -> list[CheckMessage]:
    """Return messages for due nodes, and for those whose lease expired."""
    shared_lists = {
        name: f"{type_.service}/{type_.lists}" for name, type_ in tools.types.items() if type_.lists
    }
    messages = sweep_queries.due(tools.db, MAX_ROWS, shared_lists)
    metrics.count_recovered("due", len(messages))
    queued, lost = sweep_queries.expired_leases(tools.db, MAX_ROWS)
    metrics.count_recovered("lease_lost", len(lost))
    if lost:
        log.warning("leases_lost", count=len(lost))
    for lease in lost[:MAX_LOGGED]:  # the log of the worker that held it says more, unless it was killed
        log.warning("lease_expired", **lease._asdict(), reason=LEASE_EXPIRED)
    return messages + queued


def enqueue_queued(tools: Maintenance) -> list[CheckMessage]:
    """Return messages for queued nodes whose messages were lost or not sent. Each statement is a transaction
    of its own: none is open while the broker is asked.
    """
    db, window, seconds = tools.db, dispatch_window.SIZE, backoff.RE_ENQUEUE_SECONDS
    roots = sweep_queries.roots(db)
    messages = _re_enqueue(tools, [root for root in roots if root.message_seconds > seconds])
    for root in roots:
        if root.has_unsent:
            with apart("stack", stack=root.uuid):
                topped = repository.refill_window(db, root.id, root.uuid, window).messages
                metrics.count_recovered("not_enqueued", len(topped))
                messages += topped
    return messages


def _re_enqueue(tools: Maintenance, roots: Sequence[sweep_queries.QueuedRoot]) -> list[CheckMessage]:
    """Return messages for queued nodes whose messages were lost: neither received nor waiting."""
    if not roots:
        return []
    messages: list[CheckMessage] = []
    ages = tools.waiting_seconds([root.uuid for root in roots])
    for root in roots:
        waiting = ages[root.uuid] + ENQUEUED_WITHIN_SECONDS if root.uuid in ages else 0.0
        if root.message_seconds < waiting:
            continue
        with apart("stack", stack=root.uuid):
            again = sweep_queries.re_enqueue(
                tools.db, root, backoff.RE_ENQUEUE_SECONDS, dispatch_window.SIZE, waiting
            )
            if again:
                log.info("re_enqueued", stack=root.uuid, count=len(again))
            metrics.count_recovered("unprocessed", len(again))
            messages += again
    return messages


def drop_superseded(tools: Maintenance) -> list[CheckMessage]:
    """Drop queued nodes of superseded traversals."""
    for root in sweep_queries.roots(tools.db):
        with apart("stack", stack=root.uuid):
            while sweep_queries.drop_superseded(tools.db, root.id, MAX_ROWS) == MAX_ROWS:
                pass
    return []


DUE: Final = MaintenanceJob("due_nodes", enqueue_due, sweep_queries.HAS_DUE, exclusive=True)
QUEUED: Final = MaintenanceJob("queued_nodes", enqueue_queued, sweep_queries.HAS_QUEUED)
SUPERSEDED: Final = MaintenanceJob("superseded_nodes", drop_superseded, every=AUDIT_SECONDS)
