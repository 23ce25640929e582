"""The writer for plans of any size: resumable slices of COPYs, each in a transaction."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.plan_changes import Changes, DesiredRow
from orchestrator.operations.planning.adopted_resources import AdoptedResources
from orchestrator.operations.planning.traversal_plan import QueueOf, TraversalPlan, VisitedRow
from orchestrator.store.planning import bulk_writer
from orchestrator.store.planning.bulk_writer import DefinitionRow, PlanTarget

SLICE = 5_000  # maximum rows of each table per transaction

DefinitionRowOf = Callable[[str, int], DefinitionRow]  # by name, with the id of the row
WriteVisited = Callable[[Sequence[int]], Mapping[int, VisitedRow]]


class Definitions(Protocol):
    """The desired resources of a plan."""

    @property
    def desired(self) -> Mapping[str, DesiredRow]:
        """The desired rows by name."""

    def types_of(self, name: str) -> tuple[str, str | None]:
        """Return a resource's type as written, and the type that runs it, None for the same type."""


class NodeWriter:
    """Writes the nodes of a plan; a later planner resumes after the last slice, by the nodes' labels."""

    def __init__(
        self,
        db: Connection[TupleRow],
        target: PlanTarget,
        plan: TraversalPlan,
        queue_of: QueueOf,
        *,
        resumes: bool = True,
    ) -> None:
        """`resumes` is False for the second plan of a traversal: existing nodes belong to the first plan."""
        self.db, self.target, self.plan, self.queue_of = db, target, plan, queue_of
        self._ids = array("q", bytes(8 * len(plan.layout.needed_by)))  # 0: not written yet
        self._holds_finish = False
        if resumes:
            self._read_written()

    def write(
        self,
        visited: WriteVisited,
        after_nodes: Callable[[Mapping[int, int]], None] | None = None,
    ) -> None:
        """Write all nodes that are missing.

        Inside the transaction of each slice, `visited` writes and returns the rows that a slice's updates
        visit, and `after_nodes` receives the row ids of the slice's nodes.
        """
        plan, updates = self.plan, len(self.plan.updates)
        for part in self._slices():
            with bulk_writer.slice_of(self.db, self.target):
                self._hold_finish_once()
                ids = self._assign_ids(part)
                rows = visited([node for node in part if node < updates])
                nodes = plan.node_rows(part, self._ids, self.target.finish_id, rows, self.queue_of)
                bulk_writer.copy_nodes(self.db, self.target, nodes)
                if after_nodes is not None:
                    after_nodes(ids)

    def _read_written(self) -> None:
        stack, traversal = self.target.stack_id, self.target.traversal
        written = {
            "update": bulk_writer.written(self.db, stack, traversal, "update"),
            "cleanup": bulk_writer.cleanups(self.db, stack, traversal),
            "join": bulk_writer.written(self.db, stack, traversal, "join"),
        }
        self._holds_finish = any(written.values())
        if not self._holds_finish:
            return
        for node in self.plan.layout.order:
            node_kind, key = self.plan.key(node)
            self._ids[node] = written[node_kind].get(key, 0)

    def _slices(self) -> Iterator[Sequence[int]]:
        """Yield the missing nodes in slices; an empty plan has an empty slice, which sets the finish node's
        blockers.
        """
        missing = [node for node in self.plan.layout.order if not self._ids[node]]
        if not missing and not self._holds_finish:
            yield []
        yield from batched(missing)

    def _hold_finish_once(self) -> None:
        """Set the finish node's blockers in the transaction of the first slice."""
        if not self._holds_finish:
            bulk_writer.hold_finish(self.db, self.target, self.plan.layout.finish_blockers)
            self._holds_finish = True

    def _assign_ids(self, part: Sequence[int]) -> dict[int, int]:
        fresh = dict(zip(part, bulk_writer.new_ids(self.db, "graph_node", len(part)), strict=True))
        for node, id_ in fresh.items():
            self._ids[node] = id_
        return fresh


class ResourceWriter:
    """Writes the resources and definitions of a template's plan, and which rows are deposed."""

    def __init__(
        self,
        db: Connection[TupleRow],
        target: PlanTarget,
        planned: Definitions,
        changes: Changes,
        in_force: Mapping[str, tuple[int, bytes, int]],
        definition_row: DefinitionRowOf | None = None,
        adopted: AdoptedResources | None = None,
    ) -> None:
        """`in_force` has the current definitions by name: id, digest, first revision. `definition_row`
        returns the row of a new definition; None: the definitions in force stay.
        """
        self.db, self.target, self.planned, self.definition_row = db, target, planned, definition_row
        self.changes, self.in_force, self.adopted = changes, in_force, adopted

    def write_row_changes(self) -> None:
        """Write, in slices, which rows are deposed or restored, and the definitions that need no visit."""
        changes, visited = self.changes, set(self.changes.visited)
        for part in batched(list(changes.deposed_by)):
            with self._slice():
                bulk_writer.mark_deposed(self.db, {id_: changes.deposed_by[id_] for id_ in part})
        for part in batched(changes.restored):
            with self._slice():
                bulk_writer.restore_deposed(self.db, part)
        for part in batched(changes.never_created):
            with self._slice():  # a row that a late worker is visiting stays and is deposed
                bulk_writer.mark_deposed(self.db, dict.fromkeys(part))
                bulk_writer.drop_rows(self.db, part)
        if self.definition_row is None:
            return
        names = self.planned.desired
        for part in batched([name for name in self.in_force if name not in names]):
            with self._slice():
                bulk_writer.close_definitions(self.db, self.target, part)
        for part in batched([name for name in names if name not in visited and self._is_redefined(name)]):
            with self._slice():
                self._define(part)

    def write_visited(self, nodes: Sequence[int]) -> dict[int, VisitedRow]:
        """Write the missing resources and definitions of some updates; return the rows that they visit."""
        names = {node: self.changes.visited[node] for node in nodes}
        fresh = [name for name in names.values() if name not in self.changes.current]
        new_rows = dict(zip(fresh, bulk_writer.new_ids(self.db, "resource", len(fresh)), strict=True))
        if fresh:
            rows = [(new_rows[name], name, *self.planned.types_of(name)) for name in fresh]
            bulk_writer.copy_resources(self.db, self.target, rows)
        new_definitions = self._define([name for name in names.values() if self._is_redefined(name)])
        visited, places = {}, {}
        for node, name in names.items():
            row = new_rows[name] if name in new_rows else self.changes.current[name].id
            definition = new_definitions[name] if name in new_definitions else self.in_force[name][0]
            visited[node] = VisitedRow(row, definition, self.planned.desired[name].resource_type)
            places[name] = row, definition
        if self.adopted is not None:
            self.adopted.write(self.db, places)
        return visited

    def _is_redefined(self, name: str) -> bool:
        if self.definition_row is None:
            return False
        current = self.in_force.get(name)
        return current is None or current[1] != self.planned.desired[name].digest

    def _define(self, names: Sequence[str]) -> dict[str, int]:
        definition_row = self.definition_row
        if definition_row is None:
            return {}
        changed = [name for name in names if name in self.in_force]
        if changed:
            bulk_writer.close_definitions(self.db, self.target, changed)
        ids = dict(zip(names, bulk_writer.new_ids(self.db, "resource_definition", len(names)), strict=True))
        bulk_writer.copy_definitions(
            self.db, self.target, (definition_row(name, ids[name]) for name in names)
        )
        return ids

    def _slice(self) -> AbstractContextManager[None]:
        return bulk_writer.slice_of(self.db, self.target)


def batched(items: Sequence[object]) -> Iterator[Sequence[Any]]:
    """Yield `items` in slices."""
    for start in range(0, len(items), SLICE):
        yield items[start : start + SLICE]
