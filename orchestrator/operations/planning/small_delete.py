"""Plan the removal of a small stack: read once, written once, and no template of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.check.hooks import Hooks
from orchestrator.engine.check.visit import Visit
from orchestrator.engine.plan_changes import plan_changes
from orchestrator.errors import Superseded
from orchestrator.graph.build import build_anyhow
from orchestrator.graph.layout import FINISH, lay_out
from orchestrator.operations.children.child_stacks import ChildStackLoader
from orchestrator.operations.planning.row_writer import ExistingRows, row_key
from orchestrator.store.nodes import repository
from orchestrator.store.nodes.repository import Settled
from orchestrator.store.planning import bulk_writer, small_delete
from orchestrator.store.planning.bulk_writer import NodeRow

MOST: Final = 200  # resources


def plan_small_removal(
    db: Connection[TupleRow],
    visit: Visit,
    lease: int | None,
    stacks: ChildStackLoader,
    queue: Callable[[str], str],
    ring: int,
) -> Settled | None:
    """Plan a stack's removal, ringing `ring` nodes at most; None when it takes more than that.

    Raises:
        Superseded: the traversal is over, or another planner took over.
    """
    stack = visit.stack
    bulk_writer.wait_for_older_checks(db)
    read = small_delete.read(db, stack.id, visit.traversal, stack.revision_id, MOST + 1)
    if read is None:
        raise Superseded(f"traversal {visit.traversal} is over")
    if read.is_begun or not 0 < len(read.rows) <= MOST:
        return None
    around = stacks.inherited_context_of(stack.revision_id, read.environment, read.files, read.depth)
    changes = plan_changes(read.rows, {})
    if changes.unmade or Hooks(around.kinds.registry, stack.action):
        return None
    work = ExistingRows([], changes.cleanups)
    above: dict[int, list[str]] = {row.id: [] for row in work.cleanups}
    for row in work.cleanups:  # who stands on it goes first
        for id_ in row.requires:
            if id_ in above:
                above[id_].append(row_key(row.id))
    layout = lay_out(build_anyhow(work.keys, [above[row.id] for row in work.cleanups]))
    if len(layout.needed_by) > layout.size:
        return None
    ids = read.ids
    if len(ids) < layout.size:
        ids = bulk_writer.new_ids(db, "graph_node", layout.size)
    rows = []
    for position in layout.order:
        row = work.cleanups[position]
        needed_by = [read.finish_id if one == FINISH else ids[one] for one in layout.needed_by[position]]
        blocked_by = layout.blocked_by[position]
        node = NodeRow(
            ids[position], "cleanup", row.id, None, queue(row.kind), row.name, needed_by, blocked_by
        )
        rows.append((node, row.id in changes.deposed_by))
    written = small_delete.write(
        db, (visit.node_id, lease), read.finish_id, layout.finish_blockers, rows, ring
    )
    settled = repository.settled(written, stacks.root_of(stack))
    if not settled.held:
        raise Superseded("another planner took over")
    return settled
