"""Plan the first traversal of a small stack: read once, written once.

The children of a large tree are such stacks, a thousand alike: what is the same for all of them, the
template, the registry, is read from the database once by each process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.check.hooks import Hooks
from orchestrator.engine.check.visit import Visit
from orchestrator.engine.validation.type_resolution import with_implicit
from orchestrator.errors import Superseded
from orchestrator.graph.build import build_anyhow
from orchestrator.graph.layout import FINISH, lay_out
from orchestrator.operations.children.child_stacks import ChildStackLoader
from orchestrator.operations.planning.definitions import PlannedDefinitions
from orchestrator.operations.runtime.parameter_cache import ParameterCache
from orchestrator.store.nodes import repository
from orchestrator.store.nodes.repository import Settled
from orchestrator.store.planning import small_create
from orchestrator.store.planning.bulk_writer import NodeRow

MOST: Final = 200  # resources
LARGEST: Final = 256 * 1024  # bytes of a template


def plan_small(
    db: Connection[TupleRow],
    visit: Visit,
    lease: int | None,
    stacks: ChildStackLoader,
    parameters: ParameterCache,
    queue: Callable[[str], str],
    ring: int,
    largest: int,
    read: small_create.PlanInputs | None = None,
) -> Settled | None:
    """Plan a stack's first traversal, ringing `ring` nodes at most; None when it takes more than that, or
    its template has more than `largest` bytes. It is made from what was `read`, if that is known.

    Raises:
        Superseded: the traversal is over, or another planner took over.
        InvalidTemplate: with its values the template is wrong.
    """
    stack = visit.stack
    read = read or small_create.read(db, stack.id, visit.traversal, stack.revision_id)
    if read is None:
        raise Superseded(f"traversal {visit.traversal} is over")
    if read.is_begun or read.length > min(LARGEST, largest):
        return None
    values = parameters.put(stack, read.parameters, read.sealed)
    template = stacks.template(read.template_hash, values, MOST)
    if template is None:
        return None
    around = stacks.inherited_context_of(stack.revision_id, read.environment, read.files, read.depth)
    if Hooks(around.kinds.registry, stack.action):
        return None
    template = with_implicit(template, around.kinds)
    drafts = PlannedDefinitions(template, values, around.kinds, read.files)
    names = list(drafts.wanted)
    layout = lay_out(build_anyhow(names, [drafts.wanted[name].requires for name in names]))
    if not names or len(layout.needed_by) > layout.size:
        return None
    ids = read.ids if len(names) <= len(read.ids) else small_create.new_ids(db, len(names))
    rows = []
    for position in layout.order:
        name = names[position]
        definition_id, resource_id, node_id = ids[position]
        wanted = drafts.wanted[name]
        needed_by = [read.finish_id if one == FINISH else ids[one][2] for one in layout.needed_by[position]]
        node = NodeRow(
            node_id,
            "update",
            resource_id,
            definition_id,
            queue(wanted.kind),
            name,
            needed_by,
            layout.blocked_by[position],
        )
        written = drafts.type_of(name)
        runs_as = None if wanted.kind == written else wanted.kind
        rows.append((node, drafts.definition_row(name, definition_id), (written, runs_as)))
    root = stacks.root_of(stack)
    done = small_create.write(db, (visit.node_id, lease), read.finish_id, layout.finish_blockers, rows, ring)
    settled = repository.settled(done, root)
    if not settled.held:
        raise Superseded("another planner took over")
    return settled
