"""The end of a traversal: the stack's final state, its final event, and the messages that this causes
(docs/internals/protocol.md rules 12 and 13).

Every statement is guarded by its traversal, so that a late writer matches no row. A stack's final event is
written by the statement that writes its final state, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.messages import CheckMessage
from orchestrator.engine.states import NODE_ENDS, RESOURCE_KINDS, STATES_VISITED, TEMPLATE_ACTIONS, Outcome
from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.nodes import hooks
from orchestrator.store.nodes.visit_sql import IS_CHECKING
from orchestrator.store.tables.base import check_in, check_not_in
from orchestrator.store.traversals.stack_end import (
    COMPLETE_REASON,
    IS_HELD,
    MESSAGES,
    NOT_ENDED,
    StackEnd,
    render,
)

# The stack is locked before the node, as in START and END_FAILED: an update may arrive at this moment.
COMPLETE: Final = StackEnd(
    "complete",
    {
        "k": """
    SELECT s.id FROM stack s WHERE s.id = (SELECT g.stack_id FROM graph_node g WHERE g.id = %(node_id)s)
    FOR UPDATE""",
        "n": f"""
    UPDATE graph_node g
    SET state = 'ready', observed_ready = true, observed_ready_at = now(), lease = NULL, leased_until = NULL
    FROM k WHERE g.id = %(node_id)s AND g.stack_id = k.id AND g.{IS_CHECKING}
        AND g.lease = %(lease)s AND g.blocked_by = 0
    RETURNING g.stack_id, g.traversal""",
        "s": f"""
    UPDATE stack
    SET status = 'COMPLETE', status_reason = {COMPLETE_REASON} || CASE
            WHEN action = 'CHECK' AND EXISTS (
                SELECT 1 FROM resource r WHERE r.stack_id = stack.id AND r.action = 'CHECK'
                    AND r.status_reason LIKE 'CHECK not supported for %%')
            THEN '. ''CHECK'' not fully supported (see resources)' ELSE '' END,
        good_revision_id = CASE WHEN {check_in("action", TEMPLATE_ACTIONS)}
            THEN revision_id
            ELSE good_revision_id END,
        deleted_at = CASE WHEN action = 'DELETE' THEN now() END
    FROM n WHERE stack.id = ANY (ARRAY[n.stack_id]) AND stack.traversal = n.traversal
        AND stack.halted_traversal IS DISTINCT FROM n.traversal AND stack.{NOT_ENDED}
    RETURNING stack.*""",
    },
    "'complete'",
    f"SELECT action, {MESSAGES}, queued_action IS NOT NULL FROM s",
    effects={
        # The credentials of its user (`operations/keystone/delegated_credentials.py`).
        "released": f"""
    UPDATE credential c SET state = 'going', due_at = now() FROM s
    WHERE s.deleted_at IS NOT NULL AND c.stack_id = s.id AND c.{IS_HELD}""",
        # Children that the update has left alone belong to the author of the root now.
        "handed_on": f"""
    UPDATE stack c SET credential_id = s.credential_id FROM s
    WHERE s.owner_id IS NULL AND s.good_revision_id = s.revision_id AND c.root_id = ANY (ARRAY[s.id])
        AND c.id <> s.id AND c.credential_id IS DISTINCT FROM s.credential_id
        AND EXISTS (SELECT 1 FROM credential x WHERE x.stack_id = ANY (ARRAY[s.id]) AND x.{IS_HELD})""",
    },
)

# The end of a failed traversal: when none of its operations is open any more, or at once on request. The
# reason of the stack has the first causes, in the order of the failures, and the number of the rest. Without
# causes it was cancelled, perhaps with the stack around it.
END_FAILED: Final = StackEnd(
    "end_failed",
    {
        "failures": """
    SELECT id, reason FROM failure WHERE stack_id = %(stack_id)s AND traversal = %(traversal)s""",
        "causes": """
    SELECT (SELECT string_agg(CASE WHEN length(reason) > %(longest)s
                THEN left(reason, %(longest)s) || '…' ELSE reason END, '; ' ORDER BY id)
            FROM (SELECT id, reason FROM failures ORDER BY id LIMIT %(most)s) AS first)
        || CASE WHEN count(*) > %(most)s THEN '; and ' || count(*) - %(most)s || ' more' ELSE '' END AS text
    FROM failures""",
        "s": f"""
    UPDATE stack
    SET status = 'FAILED',
        status_reason = coalesce(%(reason)s, 'Resource ' || action || ' failed: ' || causes.text,
            'Stack ' || action || ' cancelled')
    FROM causes
    WHERE id = %(stack_id)s AND traversal = %(traversal)s AND halted_traversal = %(traversal)s
        AND status = 'IN_PROGRESS'
        AND (%(at_once)s OR NOT EXISTS (  -- no resource is claimed, and no operation is open
            SELECT 1 FROM graph_node n
            WHERE n.stack_id = %(stack_id)s AND n.traversal = %(traversal)s
                AND {check_in("n.kind", RESOURCE_KINDS)}
                AND {check_in("n.state", STATES_VISITED)} AND n.lease IS NOT NULL
            UNION ALL SELECT 1 FROM resource r WHERE r.stack_id = %(stack_id)s AND r.op IS NOT NULL))
    RETURNING stack.*""",
        "f": f"""
    UPDATE graph_node n
    SET state = 'failed', blocked_by = 0, due_at = NULL, enqueued_at = NULL, lease = NULL,
        leased_until = NULL, last_error = s.status_reason
    FROM s WHERE n.stack_id = s.id AND n.traversal = s.traversal AND n.kind = 'finish'
        AND {check_not_in("n.state", NODE_ENDS)}""",
    },
    "%(outcome)s",
    f"""SELECT action, disable_rollback, delete_on_failure, good_revision_id, {MESSAGES},
    queued_action IS NOT NULL FROM s""",
)
_COMPLETE: Final = render(COMPLETE)
_END_FAILED: Final = render(END_FAILED)

# Requests to groups that wait for an operation of the failed traversal (`signals/group_resize.py`). A later
# statement than END_FAILED: it finds the requests that began to wait until that had locked the stack.
RESUME_REQUESTS = """
UPDATE signal g SET due_at = now() FROM resource r
WHERE g.stack_id = %(stack_id)s AND g.due_at = 'infinity' AND r.id = g.resource_id
    AND r.op IN ('CREATE', 'UPDATE')
RETURNING g.id
"""

MAX_CAUSES = 10  # listed in a stack's reason

MAX_CAUSE_LENGTH = 1_000  # characters of each cause

POSTPONE = f"""
UPDATE graph_node SET state = 'waiting', due_at = clock_timestamp() + make_interval(secs => %(seconds)s),
    waiting_since = coalesce(waiting_since, now()), last_error = %(reason)s, enqueued_at = NULL,
    re_enqueues = 0, lease = NULL, leased_until = NULL
WHERE id = %(node_id)s AND {IS_CHECKING} AND lease = %(lease)s
"""


def postpone(db: Connection[TupleRow], node_id: int, lease: int, seconds: float, reason: str) -> None:
    """Postpone a claimed finish node: the end of the traversal waits for work outside of its graph."""
    db.execute(POSTPONE, {"node_id": node_id, "lease": lease, "seconds": seconds, "reason": reason})


@dataclass(frozen=True, slots=True)
class Completed:
    """The messages for nodes that a complete traversal wakes, and whether the stack has a queued action."""

    messages: list[CheckMessage]
    queued: bool


def complete(db: Connection[TupleRow], node_id: int, lease: int) -> Completed | None:
    """Settle a claimed finish node: the stack is COMPLETE. Return None if the traversal has failed or was
    superseded.
    """
    for row in fetch_prepared(db, _COMPLETE, {"node_id": node_id, "lease": lease}):
        return Completed(_messages(row[1]), queued=row[2])
    return None


def _messages(rows: Sequence[Sequence[Any]] | None) -> list[CheckMessage]:
    return [CheckMessage(*row) for row in rows or ()]


@dataclass(frozen=True, slots=True)
class EndedFailed:
    """A failed traversal, and the messages for nodes that its end wakes."""

    action: str
    rollback_disabled: bool
    delete_on_failure: bool
    good_revision_id: int | None
    messages: list[CheckMessage]
    queued: bool  # the stack has a queued action


def end_failed(
    db: Connection[TupleRow],
    stack_id: int,
    traversal: int,
    *,
    reason: str | None = None,
    at_once: bool = False,
    outcome: Outcome = "failed",
) -> EndedFailed | None:
    """End a halted traversal as FAILED if none of its operations is open; otherwise return None.

    `outcome` is recorded for its revision.
    """
    values: dict[str, object] = {
        "stack_id": stack_id,
        "traversal": traversal,
        "reason": reason,
        "at_once": at_once,
        "outcome": outcome,
        "most": MAX_CAUSES,
        "longest": MAX_CAUSE_LENGTH,
    }
    hooks.release_paused(db, stack_id)
    for row in fetch_prepared(db, _END_FAILED, values):
        fetch_prepared(db, RESUME_REQUESTS, {"stack_id": stack_id})
        return EndedFailed(row[0], row[1], row[2], row[3], _messages(row[4]), queued=row[5])
    return None


REFUSED_RESOURCES = f"""
SELECT n.label, left(n.last_error, %(longest)s), n.refusal, n.unreachable_tries > 0
FROM stack t JOIN stack s ON s.root_id = t.root_id AND (s.id = t.id OR t.owner_id IS NULL)
JOIN graph_node n ON n.stack_id = s.id AND n.traversal = s.traversal
WHERE t.id = %(stack_id)s AND s.status = 'IN_PROGRESS' AND {check_not_in("n.state", NODE_ENDS)}
    AND (n.unreachable_tries > 0 OR n.refusal IS NOT NULL)
ORDER BY n.id LIMIT %(most)s
"""


class RefusedResource(NamedTuple):
    """A resource whose last attempt was refused temporarily, or got no answer."""

    name: str
    error: str
    refusal: str | None  # its kind (engine/check/refusals.py), None in rows of older versions: no answer
    is_outage: bool


def refused_resources(db: Connection[TupleRow], stack_id: int) -> list[RefusedResource]:
    """Return the resources of a tree of stacks whose last attempt was refused; at most MAX_CAUSES."""
    values = {"stack_id": stack_id, "most": MAX_CAUSES, "longest": MAX_CAUSE_LENGTH}
    rows = db.execute(REFUSED_RESOURCES, values).fetchall()
    return [RefusedResource(*row) for row in rows]


MISSED_REVISION = """
SELECT v.number FROM stack s JOIN revision v ON v.id = s.revision_id
WHERE s.id = %(stack_id)s AND s.good_revision_id IS DISTINCT FROM s.revision_id
"""


def missed_revision(db: Connection[TupleRow], stack_id: int) -> int | None:
    """Return the number of the desired revision if the stack has not reached it."""
    row = db.execute(MISSED_REVISION, {"stack_id": stack_id}).fetchone()
    return None if row is None else row[0]


HAS_FAILURES = """
SELECT EXISTS (SELECT 1 FROM failure WHERE stack_id = %(stack_id)s AND traversal = %(traversal)s)
"""


def has_failures(db: Connection[TupleRow], stack_id: int, traversal: int) -> bool:
    """Whether any resource failed in a traversal."""
    row = db.execute(HAS_FAILURES, {"stack_id": stack_id, "traversal": traversal}).fetchone()
    return row is not None and row[0]
