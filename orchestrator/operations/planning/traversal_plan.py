"""The nodes of a traversal before they are written: pure, and the same for every writer.

`row_writer.py` writes a plan in resumable slices, `small_plans.py` in one statement. Both take the rows of
the nodes from `TraversalPlan.node_rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from orchestrator.engine.plan_changes import Changes, DesiredRow, Row
from orchestrator.graph.build import build_anyhow
from orchestrator.graph.layout import FINISH, Layout, lay_out
from orchestrator.store.planning.bulk_writer import NodeRow

# Open operations that need no visit before the resource is deleted: nothing requires the resource yet.
REMOVABLE_OPERATIONS = frozenset({"CREATE", "DISCARD", "DELETE"})

QueueOf = Callable[[str], str]  # the queue that checks resources of a type, by the type's name


class VisitedRow(NamedTuple):
    """The resource row that an update node visits."""

    resource_id: int
    definition_id: int | None  # None: the action needs no definition
    type_name: str


@dataclass(frozen=True, slots=True)
class TraversalPlan:
    """Nodes 0 … of `layout` are updates, then come cleanups, and the rest are joins.

    A plan may have a million nodes: it keeps no object per node.
    """

    updates: Sequence[str]  # labels: the names of resources
    cleanups: Sequence[Row]
    dirty: Collection[str]  # labels of the updates to visit even if no input changes
    layout: Layout
    early: Mapping[int, Collection[int]] = field(default_factory=dict)  # dependents released early, by update

    def key(self, node: int) -> tuple[str, str]:
        """Return the kind of a node and a text that is unique among the traversal's nodes of that kind."""
        if node >= self.layout.size:
            return "join", self.layout.labels[node]
        if node >= len(self.updates):
            return "cleanup", str(self.cleanups[node - len(self.updates)].id)
        return "update", self.updates[node]

    def node_rows(
        self,
        nodes: Iterable[int],
        ids: Mapping[int, int] | Sequence[int],
        finish_id: int,
        visited: Mapping[int, VisitedRow],
        queue_of: QueueOf,
    ) -> Iterator[NodeRow]:
        """Yield the rows of some nodes.

        `ids` has the row ids of these nodes and of all nodes that they release; `visited` has the resource
        rows of the updates among them.
        """
        layout, updates = self.layout, len(self.updates)
        for node in nodes:
            id_, blocked_by = ids[node], layout.blocked_by[node]
            needed_by = [finish_id if other == FINISH else ids[other] for other in layout.needed_by[node]]
            if node < updates:
                row, label = visited[node], self.updates[node]
                yield NodeRow(
                    id_,
                    "update",
                    row.resource_id,
                    row.definition_id,
                    queue_of(row.type_name),
                    label,
                    needed_by,
                    blocked_by,
                    label in self.dirty,
                    self._early_needed_by(node, ids) if node in self.early else None,
                )
            elif node < layout.size:
                deposed = self.cleanups[node - updates]
                queue = queue_of(deposed.resource_type)
                yield NodeRow(id_, "cleanup", deposed.id, None, queue, deposed.name, needed_by, blocked_by)
            else:
                label = layout.labels[node]
                yield NodeRow(id_, "join", None, None, "bulk", label, needed_by, blocked_by, dirty=False)

    def _early_needed_by(self, node: int, ids: Mapping[int, int] | Sequence[int]) -> list[int] | None:
        """Return the rows of the dependents released early; a join releases its own when all are ready."""
        direct = self.layout.needed_by[node]
        return [ids[other] for other in direct if other in self.early[node]] or None


def _early_edges(changes: Changes, desired: Mapping[str, DesiredRow]) -> Mapping[int, Collection[int]]:
    """Return the dependents that are released early, by the position of their requirement."""
    if not any(desired[name].early for name in changes.visited):
        return {}
    positions = {name: position for position, name in enumerate(changes.visited)}
    early: dict[int, set[int]] = {}
    for name, position in positions.items():
        for required in desired[name].early:
            if required in positions:
                early.setdefault(positions[required], set()).add(position)
    return early


def plan_of_changes(changes: Changes, desired: Mapping[str, DesiredRow]) -> TraversalPlan:
    """Return the plan that carries out `changes`.

    Updates follow their requirements among the visited resources. Cleanups follow the cleanups of their
    dependents.
    """
    among = set(changes.visited)
    requires: list[Collection[str]] = []
    for name in changes.visited:
        needed = desired[name].requires
        requires.append(needed if needed <= among else needed & among)
    dependents: dict[int, list[str]] = {row.id: [] for row in changes.cleanups}
    for row in changes.cleanups:
        for id_ in row.requires:
            if id_ in dependents:
                dependents[id_].append(_row_key(row.id))
    requires += (dependents[row.id] for row in changes.cleanups)
    keys = [*changes.visited, *(_row_key(row.id) for row in changes.cleanups)]
    early = _early_edges(changes, desired)
    layout = lay_out(build_anyhow(keys, requires), also_last=early)
    return TraversalPlan(changes.visited, changes.cleanups, changes.dirty, layout, early)


def plan_of_action(rows: Sequence[Row], action: str) -> tuple[TraversalPlan, Mapping[int, VisitedRow]]:
    """Return the plan that runs an action on all current resources, and the rows that its updates visit.

    A resource is visited after its requirements, for a SUSPEND after its dependents. An operation still open
    on a deposed resource is followed to its end.
    """
    current = [row for row in rows if not row.deposed]
    names = {row.id: row.name for row in current}
    requires = {row.name: [names[id_] for id_ in row.requires if id_ in names] for row in current}
    if action == "SUSPEND":
        requires, forward = {row.name: [] for row in current}, requires
        for name, needed in forward.items():
            for required in needed:
                requires[required].append(name)
    operating = [row for row in rows if row.deposed and row.op is not None]
    followed = [row for row in operating if row.op not in REMOVABLE_OPERATIONS]
    cleanups = [row for row in operating if row.op in REMOVABLE_OPERATIONS]
    updates = [*(row.name for row in current), *(_row_key(row.id) for row in followed)]
    keys = [*updates, *(_row_key(row.id) for row in cleanups)]
    layout = lay_out(build_anyhow(keys, [requires.get(key, ()) for key in keys]))
    visited = {
        node: VisitedRow(row.id, None, row.resource_type) for node, row in enumerate([*current, *followed])
    }
    return TraversalPlan(updates, cleanups, set(updates), layout), visited


def _row_key(row_id: int) -> str:
    """Return a key for a deposed row; it differs from all names of resources, which have no slash."""
    return f"/{row_id}"
