"""The rows of a plan: which definitions, resources and nodes it writes, a slice at a time."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.plan_changes import Changes, Row
from orchestrator.graph.layout import FINISH, Layout
from orchestrator.operations.planning.adopted_resources import AdoptedResources
from orchestrator.operations.planning.definitions import PlannedDefinitions
from orchestrator.store.planning import bulk_writer
from orchestrator.store.planning.bulk_writer import NodeRow, PlanTarget

SLICE = 5_000  # rows of each table a transaction writes


class ExistingRows:
    """What a layout of visits to what is there is about."""

    def __init__(self, visited: list[str], cleanups: Sequence[Row]) -> None:
        self.visited, self.cleanups = visited, cleanups
        self.keys = [*visited, *(row_key(row.id) for row in cleanups)]
        self.dirty = set(visited)


class PlanWriter:
    """What a plan writes besides nodes: definitions, new rows, and which rows are leftovers."""

    def __init__(
        self,
        db: Connection[TupleRow],
        target: PlanTarget,
        drafts: PlannedDefinitions,
        changes: Changes,
        in_force: Mapping[str, tuple[int, bytes, int]],
    ) -> None:
        self.db, self.target, self.drafts, self.changes, self.in_force = db, target, drafts, changes, in_force
        self.adopted: AdoptedResources | None = None
        self.visited, self.cleanups, self.dirty = changes.visited, changes.cleanups, changes.dirty
        self.keys = [*self.visited, *(row_key(row.id) for row in self.cleanups)]
        among = set(self.visited)
        going = {row.id for row in self.cleanups}
        above: dict[int, list[str]] = {id_: [] for id_ in going}
        for row in self.cleanups:  # who stands on it goes first
            for id_ in row.requires:
                if id_ in going:
                    above[id_].append(row_key(row.id))
        self.requires: list[Collection[str]] = [
            *(needed if needed <= among else needed & among for needed in map(self._needs, self.visited)),
            *(above[row.id] for row in self.cleanups),
        ]

    def write_row_changes(self) -> None:
        """Write, in slices, which rows stand for what, and the definitions that need no visit."""
        changes, among = self.changes, set(self.visited)
        for part in batched(list(changes.deposed_by)):
            with self._slice():
                bulk_writer.mark_deposed(self.db, {id_: changes.deposed_by[id_] for id_ in part})
        for part in batched(changes.restored):
            with self._slice():
                bulk_writer.restore_deposed(self.db, part)
        for part in batched(changes.unmade):
            with self._slice():  # one that a late worker looks at just now goes with the leftovers
                bulk_writer.mark_deposed(self.db, dict.fromkeys(part))
                bulk_writer.drop_rows(self.db, part)
        if self.drafts.template is None:
            return
        names = self.drafts.wanted
        for part in batched([name for name in self.in_force if name not in names]):
            with self._slice():
                bulk_writer.close_definitions(self.db, self.target, part)
        for part in batched([name for name in names if name not in among and self._is_redefined(name)]):
            with self._slice():
                self._define(part)

    def write(self, nodes: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Write the rows and definitions of some visits; return the ids of both for each."""
        names = [self.keys[node] for node in nodes]
        fresh = [name for name in names if name not in self.changes.current]
        new_rows = dict(zip(fresh, bulk_writer.new_ids(self.db, "resource", len(fresh)), strict=True))
        bulk_writer.copy_resources(
            self.db, self.target, [self._row(name, new_rows[name]) for name in fresh] if fresh else []
        )
        redefined = [name for name in names if self._is_redefined(name)]
        new_definitions = self._define(redefined)
        places = {}
        for node, name in zip(nodes, names, strict=True):
            row = new_rows[name] if name in new_rows else self.changes.current[name].id
            definition = new_definitions[name] if name in new_definitions else self.in_force[name][0]
            places[node] = row, definition
        if self.adopted is not None:
            self.adopted.write(self.db, {self.keys[node]: place for node, place in places.items()})
        return places

    def _row(self, name: str, id_: int) -> tuple[int, str, str, str | None]:
        return id_, name, *self.drafts.types_of(name)

    def _needs(self, name: str) -> frozenset[str]:
        return self.drafts.wanted[name].requires

    def _is_redefined(self, name: str) -> bool:
        known = self.in_force.get(name)
        return known is None or known[1] != self.drafts.wanted[name].digest

    def _define(self, names: Sequence[str]) -> dict[str, int]:
        known = [name for name in names if name in self.in_force]
        if known:
            bulk_writer.close_definitions(self.db, self.target, known)
        ids = dict(zip(names, bulk_writer.new_ids(self.db, "resource_definition", len(names)), strict=True))
        bulk_writer.copy_definitions(
            self.db, self.target, (self.drafts.definition_row(name, ids[name]) for name in names)
        )
        return ids

    def _slice(self) -> AbstractContextManager[None]:
        return bulk_writer.slice_of(self.db, self.target)


def row_key(row_id: int) -> str:
    """Return what stands for a row to be removed among the names of resources, none of which has a slash."""
    return f"/{row_id}"


def batched(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Yield a slice after the other."""
    for start in range(0, len(items), SLICE):
        yield items[start : start + SLICE]


class NodeIdAllocator:
    """Which node of a layout has which row; what an earlier plan wrote is known from its labels."""

    def __init__(
        self,
        db: Connection[TupleRow],
        target: PlanTarget,
        layout: Layout,
        work: PlanWriter | ExistingRows,
        *,
        fresh: bool = False,
    ) -> None:
        """`fresh`: what the traversal has under the same labels is another plan's."""
        self.target, self.layout, self.work = target, layout, work
        self._ids = array("q", bytes(8 * len(layout.needed_by)))  # 0: not written yet
        self.resumed = False
        if fresh:
            return
        nodes_written = bulk_writer.written(db, target.stack_id, target.traversal, "update")
        cleanups = bulk_writer.cleanups(db, target.stack_id, target.traversal)
        nodes_written |= {row_key(int(row)): node for row, node in cleanups.items()}
        joins_written = bulk_writer.written(db, target.stack_id, target.traversal, "join")
        self.resumed = bool(nodes_written or joins_written)
        for node in layout.order:
            is_join = node >= layout.size
            found = joins_written.get(self._label(node)) if is_join else nodes_written.get(work.keys[node])
            if found is not None:
                self._ids[node] = found

    def slices(self) -> Iterator[list[int]]:
        """Yield the nodes still to be written, a slice at a time; at least one slice, so that the finish is
        held.
        """
        left = [node for node in self.layout.order if not self._ids[node]]
        if not left and not self.resumed:
            yield []
        for start in range(0, len(left), SLICE):
            yield left[start : start + SLICE]

    def hold_finish_once(self, db: Connection[TupleRow]) -> None:
        """Count the finish node's feeders in the transaction of the first slice."""
        if not self.resumed:
            bulk_writer.hold_finish(db, self.target, self.layout.finish_blockers)
            self.resumed = True

    def assign(self, db: Connection[TupleRow], part: Sequence[int]) -> dict[int, int]:
        """Give a slice's nodes their row ids."""
        fresh = dict(zip(part, bulk_writer.new_ids(db, "graph_node", len(part)), strict=True))
        for node, id_ in fresh.items():
            self._ids[node] = id_
        return fresh

    def row(
        self, node: int, id_: int, resource_id: int | None, definition_id: int | None, queue: str
    ) -> NodeRow:
        """Return the row of a node that visits a resource."""
        work, key = self.work, self.work.keys[node]
        is_update = node < len(work.visited)
        return NodeRow(
            id_,
            "update" if is_update else "cleanup",
            resource_id,
            definition_id,
            queue,
            key if is_update else work.cleanups[node - len(work.visited)].name,
            self._needed_by(node),
            self.layout.blocked_by[node],
            not is_update or key in work.dirty,
        )

    def joins(self, part: Sequence[int], ids: Mapping[int, int]) -> list[NodeRow]:
        """Return the rows of a slice's joins."""
        return [
            NodeRow(
                ids[node],
                "join",
                None,
                None,
                "bulk",
                self._label(node),
                self._needed_by(node),
                self.layout.blocked_by[node],
                dirty=False,
            )
            for node in part
            if node >= self.layout.size
        ]

    def _label(self, node: int) -> str:
        return self.layout.labels[node]

    def _needed_by(self, node: int) -> list[int]:
        return [
            self.target.finish_id if target == FINISH else self._ids[target]
            for target in self.layout.needed_by[node]
        ]
