"""The traversal that repairs marked resources, started automatically or on request (operations/adr/0019)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.store.observation import repair_starts
from orchestrator.store.traversals import children, traversals
from orchestrator.store.traversals.traversals import StartedTraversal

Db = Connection[TupleRow]

MAX_NAMES: Final = 5  # in the reason of a stack


def start(
    db: Db, root_id: int, stack_ids: Collection[int], purpose: str, names: Sequence[str], *, automatic: bool
) -> StartedTraversal:
    """Start an update of a locked stack to its present revision, which visits the marked resources of the
    stacks `stack_ids` in its tree. `names` are those of the resources.
    """
    children.mark_stale(db, root_id, *stack_ids)
    started = traversals.start_traversal(db, root_id, "UPDATE", automatic=automatic)
    assert started is not None  # it exists: it is locked
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    reason = f"Stack UPDATE started: {purpose} of {', '.join(names[:MAX_NAMES])}{more}"
    repair_starts.explain_start(db, root_id, started.traversal, reason)
    return started
