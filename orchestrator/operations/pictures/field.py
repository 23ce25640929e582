"""Build the field of a stack."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Iterator, Mapping
from itertools import accumulate, chain, repeat
from typing import Final

import orjson

from orchestrator.engine.pictures.field import Field, with_drift
from orchestrator.engine.pictures.groups import FineGroups, StackGraph, Tree, fine_groups
from orchestrator.engine.pictures.levels import levels, order_by_level
from orchestrator.store.connections.database import Database
from orchestrator.store.pictures import field as stored
from orchestrator.store.pictures.field import FieldRows
from orchestrator.store.stacks.stacks import StackRow

LARGE: Final = 20_000  # resources; a smaller field has no first picture


class Arrangement:
    """The resources of a field in their order, and their groups. It does not change."""

    def __init__(
        self,
        stack: StackRow,
        rows: FieldRows,
        order: array[int],
        below: array[int],
        requires: Mapping[int, tuple[str, str]] | None,
    ) -> None:
        """Take rows in the order of stack and name, the row of each position, and the levels of the rows. A
        first picture has neither levels nor requirements.
        """
        self.rows, self.order, self.is_draft = rows, order, requires is None
        self._stack, self._below, self._requires = stack, below, requires or {}
        self._groups: dict[bool, tuple[FineGroups, Tree]] = {}  # by `is_draft`
        self._locks = {True: threading.Lock(), False: threading.Lock()}

    @property
    def is_grouped(self) -> bool:
        """Whether the groups were computed."""
        return False in self._groups

    def groups(self, database: Database, *, takes_draft: bool = False) -> tuple[FineGroups, Tree, bool]:
        """Return the groups, and whether they are a first picture; the first call computes them. With
        `takes_draft`, levels of a large field that are not computed yet are by stack and type only.
        """
        is_draft = self.is_draft or (takes_draft and not self.is_grouped and len(self.order) > LARGE)
        with self._locks[is_draft]:
            if is_draft not in self._groups:
                self._groups[is_draft] = self._fine(database, is_draft=is_draft), self._tree()
                self._requires = self._requires if is_draft else {}
            return *self._groups[is_draft], is_draft

    def _fine(self, database: Database, *, is_draft: bool) -> FineGroups:
        rows = self.rows
        with database.borrow(hot=False) as db:
            types_by_hash = stored.type_names(db, rows.stacks)
        stacks = chain.from_iterable(repeat(stack_id, size) for stack_id, size in rows.sizes)
        types = map(types_by_hash.get, rows.types, repeat(""))
        if is_draft:
            return fine_groups(stacks, types, bytes(len(self.order)), self.order, ())
        return fine_groups(stacks, types, self._below, self.order, graphs_of(rows, self._requires))

    def _tree(self) -> Tree:
        """Return the names and owners of the stacks."""
        stacks = self.rows.stacks
        owners = {item.id: item.owner_id for item in stacks if item.owner_id is not None}
        names = {item.id: item.name for item in stacks}
        return Tree(self._stack.id, owners, names, {item.id: item.uuid for item in stacks})


class FieldBuilder:
    """Builds the field of a stack repeatedly. The order is computed again only if the resources differ, or if
    the requirements may have changed.
    """

    def __init__(self, database: Database, stack: StackRow) -> None:
        """Take a stack."""
        self._database, self._stack = database, stack
        self._levels: list[int] = []
        self.drifted: frozenset[int] = frozenset()  # ids of the resources that are out of sync
        self._arrangement: Arrangement | None = None

    @property
    def arrangement(self) -> Arrangement:
        """Return the arrangement of the field that was built last."""
        assert self._arrangement is not None
        return self._arrangement

    def build(self, *, rearranges: bool = False, takes_draft: bool = False) -> Field:
        """Read the present state of all resources; with `rearranges` also their requirements again.

        With `takes_draft`, a large field that is built for the first time is a first picture, without
        requirements: resources planned last come first, because a plan writes dependents before their
        requirements. The next call reads the requirements, and returns the same states.
        """
        before = self._arrangement
        with stored.snapshot(self._database) as db:
            completes = before is not None and before.is_draft
            rows = before.rows if before is not None and completes else stored.read(db, self._stack)
            if takes_draft and before is None and len(rows.ids) > LARGE:
                newest_first = sorted(range(len(rows.ids)), key=rows.ids.__getitem__, reverse=True)
                self._arrangement = Arrangement(self._stack, rows, array("i", newest_first), array("i"), None)
            elif rearranges or completes or before is None or rows.ids != before.rows.ids:
                self._arrange(rows, stored.requirements(db, rows.stacks))
        self.drifted = rows.drifted
        with_drift(rows.ids, rows.states, rows.drifted)
        order = self.arrangement.order
        ids = array("q", map(rows.ids.__getitem__, order))
        states = bytearray(map(rows.states.__getitem__, order))
        return Field(ids, states, self._levels, is_draft=self.arrangement.is_draft)

    def discard_draft(self) -> None:
        """Let the next call of `build` read everything, if the last one returned a first picture."""
        if self._arrangement is not None and self._arrangement.is_draft:
            self._arrangement = None

    def _arrange(self, rows: FieldRows, requires: Mapping[int, tuple[str, str]]) -> None:
        below = array("i")
        for graph in graphs_of(rows, requires):
            below += levels(graph.names, graph.nodes, graph.requires)
        _add_parents(rows, below)
        order, self._levels = order_by_level(below)
        self._arrangement = Arrangement(self._stack, rows, order, below, requires)


def graphs_of(rows: FieldRows, requires: Mapping[int, tuple[str, str]]) -> Iterator[StackGraph]:
    """Yield the graphs of the stacks, in the order of the rows."""
    for (stack_id, _), names in zip(rows.sizes, rows.names, strict=True):
        nodes, required = requires.get(stack_id, ("[]", "[]"))
        yield StackGraph(orjson.loads(names), orjson.loads(nodes), orjson.loads(required))


def _add_parents(rows: FieldRows, below: array[int]) -> None:
    """Raise the levels of nested stacks by the level of the resource that owns them."""
    owners = {item.parent_resource_id: item.id for item in rows.stacks if item.parent_resource_id is not None}
    if not owners:
        return
    places = {owners[id_]: place for place, id_ in enumerate(rows.ids) if id_ in owners}
    sizes = dict(rows.sizes)
    starts = dict(zip(sizes, accumulate(sizes.values(), initial=0), strict=False))
    for item in rows.stacks:  # parents first
        if item.id in places and item.id in starts and (above := below[places[item.id]]):
            start = starts[item.id]
            for place in range(start, start + sizes[item.id]):
                below[place] += above
