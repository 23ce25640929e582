"""Build the field of a stack."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, repeat

import orjson

from orchestrator.engine.pictures.field import Field, with_drift
from orchestrator.engine.pictures.groups import FineGroups, StackGraph, Tree, fine_groups
from orchestrator.engine.pictures.levels import levels, order_by_level
from orchestrator.store.connections.database import Database
from orchestrator.store.pictures import field as stored
from orchestrator.store.pictures.field import FieldRows, TreeStack
from orchestrator.store.stacks.stacks import StackRow


class FieldBuilder:
    """Builds the field of a stack repeatedly. The order is computed again only if the resources differ, or if
    the requirements may have changed.
    """

    def __init__(self, database: Database, stack: StackRow) -> None:
        """Take a stack."""
        self._database, self._stack = database, stack
        self._rows: FieldRows | None = None
        self._requires: dict[int, tuple[str, str]] = {}  # until the groups are computed
        self._below = array("i")
        self._order, self._levels = array("i"), list[int]()
        self._fine: FineGroups | None = None

    def build(self, *, rearranges: bool = False) -> Field:
        """Read the present state of all resources; with `rearranges` also their requirements again."""
        with stored.snapshot(self._database) as db:
            rows = stored.read(db, self._stack)
            if rearranges or self._rows is None or rows.ids != self._rows.ids:
                self._arrange(rows, stored.requirements(db, rows.stacks))
        with_drift(rows.ids, rows.states, rows.drifted)
        order = self._order
        ids = array("q", map(rows.ids.__getitem__, order))
        return Field(ids, bytearray(map(rows.states.__getitem__, order)), self._levels)

    @property
    def rows(self) -> FieldRows:
        """Return the rows of the field that was built last."""
        assert self._rows is not None
        return self._rows

    @property
    def order(self) -> array[int]:
        """Return the row of each position of that field, in the order of stack and name."""
        return self._order

    def groups(self) -> tuple[FineGroups, Tree]:
        """Return the groups of the field that was built last; the first call computes them."""
        rows = self._rows
        assert rows is not None
        if self._fine is None:
            with self._database.borrow(hot=False) as db:
                types_by_hash = stored.type_names(db, rows.stacks)
            stacks = chain.from_iterable(repeat(stack_id, size) for stack_id, size in rows.sizes)
            types = map(types_by_hash.get, rows.types, repeat(""))
            self._fine = fine_groups(stacks, types, self._below, self._order, self._graphs(rows))
            self._requires = {}
        return self._fine, tree_of(self._stack, rows.stacks)

    def _arrange(self, rows: FieldRows, requires: dict[int, tuple[str, str]]) -> None:
        self._requires, self._fine = requires, None
        below = array("i")
        for graph in self._graphs(rows):
            below += levels(graph.names, graph.nodes, graph.requires)
        _add_parents(rows, below)
        self._order, self._levels = order_by_level(below)
        self._rows, self._below = rows, below

    def _graphs(self, rows: FieldRows) -> Iterator[StackGraph]:
        """Yield the graphs of the stacks, in the order of the rows."""
        for (stack_id, _), names in zip(rows.sizes, rows.names, strict=True):
            nodes, requires = self._requires.get(stack_id, ("[]", "[]"))
            yield StackGraph(orjson.loads(names), orjson.loads(nodes), orjson.loads(requires))


def tree_of(stack: StackRow, stacks: Sequence[TreeStack]) -> Tree:
    """Return the names and owners of the stacks below a stack."""
    owners = {item.id: item.owner_id for item in stacks if item.owner_id is not None}
    names = {item.id: item.name for item in stacks}
    return Tree(stack.id, owners, names, {item.id: item.uuid for item in stacks})


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
