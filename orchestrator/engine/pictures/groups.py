"""Groups of resources for a map: a summary graph with at most MAX_GROUPS boxes.

Fine groups have the same stack, type and level. A map combines them until they fit: nested stacks become one
group each, then one per level; levels become ranges; rare types become one. `expand` opens a nested stack or
a range.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from typing import Final, NamedTuple

from orchestrator.engine.pictures.field import DRIFT, STATE_BITS, STATES
from orchestrator.engine.pictures.levels import SEPARATOR

MAX_GROUPS: Final = 300
MAX_EDGES: Final = 1_200
MAX_EXPANDED: Final = 20  # values of `expand`
RANGES: Final = (100, 50, 25, 12, 6, 3)  # numbers of level ranges, tried in this order
FREQUENT_TYPES: Final = (20, 10, 5)  # numbers of types that keep their groups, tried in this order
OTHER: Final = "other types"
LOW: Final = (1 << 32) - 1
_EXPAND: Final = re.compile(r"stack:([0-9a-f-]{36})|levels:(\d{1,9})-(\d{1,9})")


class Kind(NamedTuple):
    """What the resources of a fine group have in common."""

    stack_id: int
    type: str
    level: int


@dataclass(frozen=True, slots=True)
class FineGroups:
    """The groups of a field, and the number of edges between them."""

    kinds: tuple[Kind, ...]
    of: array[int]  # group of each position of the field
    edges: Mapping[int, int]  # dependent << 32 | requirement -> number


@dataclass(frozen=True, slots=True)
class Tree:
    """The stacks of a field: the owner of each nested stack, the names and the public ids of all."""

    root_id: int
    owners: Mapping[int, int] = field(default_factory=dict)
    names: Mapping[int, str] = field(default_factory=dict)
    uuids: Mapping[int, str] = field(default_factory=dict)

    def child_within(self, stack_id: int, expanded: frozenset[int]) -> int:
        """Return the outermost stack around a stack that is not expanded; the stack itself if all are."""
        path = [stack_id]
        while path[-1] != self.root_id and path[-1] in self.owners:
            path.append(self.owners[path[-1]])
        for item in reversed(path):
            if item != self.root_id and item not in expanded:
                return item
        return stack_id


@dataclass(frozen=True, slots=True)
class Expansion:
    """The parts of a map that are shown in detail."""

    stacks: frozenset[int] = frozenset()
    levels: tuple[tuple[int, int], ...] = ()

    def shows(self, level: int) -> bool:
        """Whether a level is shown by itself."""
        return any(first <= level <= last for first, last in self.levels)


class Key(NamedTuple):
    """A box: resources of a stack, or whole nested stacks (`stack_id` of a single one, otherwise 0)."""

    nested: bool
    stack_id: int
    type: str
    first: int  # levels
    last: int


@dataclass(frozen=True, slots=True)
class Group:
    """A box of a map."""

    key: Key
    label: str
    counts: Mapping[str, int]  # by name of the state, and `drift`
    stacks: int = 0  # number of nested stacks
    expand: str = ""  # value of `expand` that opens it

    @property
    def size(self) -> int:
        """Return the number of resources."""
        return sum(number for name, number in self.counts.items() if name != "drift")


@dataclass(frozen=True, slots=True)
class StackMap:
    """The groups of a map, and edges between their positions: dependent, requirement, number."""

    groups: tuple[Group, ...]
    edges: tuple[tuple[int, int, int], ...]
    omitted_groups: int = 0
    omitted_resources: int = 0
    omitted_edges: int = 0


@dataclass(frozen=True, slots=True)
class StackGraph:
    """The resources of a stack: the names of its rows in order, and the requirements of names, as texts
    (`levels.py`).
    """

    names: Sequence[str]
    nodes: Sequence[str] = ()
    requires: Sequence[str] = ()


def fine_groups(
    stacks: Iterable[int],
    types: Iterable[str],
    levels: Sequence[int],
    order: Sequence[int],
    graphs: Iterable[StackGraph],
) -> FineGroups:
    """Return the groups of rows, given in the order of stack and name, for positions in `order`. `graphs` has
    the stacks in the same order.
    """
    numbers: dict[tuple[int, str, int], int] = {}
    of_row = array(
        "i", [numbers.setdefault(kind, len(numbers)) for kind in zip(stacks, types, levels, strict=True)]
    )
    between, first = Counter[tuple[int | None, int | None]](), 0
    for graph in graphs:
        last = first + len(graph.names)
        group_of = dict(zip(graph.names, of_row[first:last], strict=True)).get
        counts = (text.count(SEPARATOR) + 1 for text in graph.requires)
        dependents = chain.from_iterable(map(repeat, map(group_of, graph.nodes), counts))
        required = chain.from_iterable(text.split(SEPARATOR) for text in graph.requires)
        between.update(zip(dependents, map(group_of, required), strict=True))
        first = last
    edges = {
        dependent << 32 | required: number
        for (dependent, required), number in between.items()
        if dependent is not None and required is not None
    }
    of = array("i", map(of_row.__getitem__, order))
    return FineGroups(tuple(Kind(*kind) for kind in numbers), of, edges)


def parse_expansion(values: Iterable[str], tree: Tree) -> Expansion | None:
    """Return what the values of `expand` open, None if one is invalid or there are too many. A stack that no
    longer exists is ignored.
    """
    known = {uuid: id_ for id_, uuid in tree.uuids.items()}
    stacks, ranges = set[int](), list[tuple[int, int]]()
    for value in values:
        match = _EXPAND.fullmatch(value)
        if match is None:
            return None
        if match[1]:
            stacks.add(known.get(match[1], 0))
        else:
            ranges.append((int(match[2]), int(match[3])))
    if len(stacks) + len(ranges) > MAX_EXPANDED:
        return None
    return Expansion(frozenset(stacks - {0}), tuple(ranges))


@dataclass(frozen=True, slots=True)
class _Coarseness:
    merges_stacks: bool = False
    ranges: int = 0  # 0: every level by itself
    types: frozenset[str] | None = None  # those that keep their groups


def summarize(
    fine: FineGroups, numbers: Mapping[tuple[int, int], int], tree: Tree, expansion: Expansion
) -> StackMap:
    """Return the map of a field, given the number of its resources by fine group and byte."""
    sizes = Counter[int]()
    for (group, _), number in numbers.items():
        sizes[group] += number
    keys: list[Key] = []
    for coarse in _coarsenesses(fine, sizes):
        keys = _keys(fine, tree, expansion, coarse)
        if len(set(keys)) <= MAX_GROUPS:
            break
    counts: dict[Key, Counter[str]] = {}
    stacks: dict[Key, set[int]] = {}
    for number, key in enumerate(keys):
        counts.setdefault(key, Counter())
        if key.nested:
            stacks.setdefault(key, set()).add(
                tree.child_within(fine.kinds[number].stack_id, expansion.stacks)
            )
    for (number, byte), amount in numbers.items():
        its = counts[keys[number]]
        its[STATES[min(byte & STATE_BITS, len(STATES) - 1)]] += amount
        if byte & DRIFT:
            its["drift"] += amount
    groups = [_group(key, counts[key], stacks.get(key, ()), tree) for key in counts]
    return _bounded(groups, _edges(fine, keys))


def _coarsenesses(fine: FineGroups, sizes: Mapping[int, int]) -> Iterable[_Coarseness]:
    """Yield the attempts to draw a map, from the finest."""
    yield (coarse := _Coarseness())
    yield (coarse := replace(coarse, merges_stacks=True))
    levels = 1 + max((kind.level for kind in fine.kinds), default=0)
    for ranges in RANGES:
        if ranges < levels:
            yield (coarse := replace(coarse, ranges=ranges))
    by_type = Counter[str]()
    for number, kind in enumerate(fine.kinds):
        by_type[kind.type] += sizes[number]
    for most in FREQUENT_TYPES:
        yield (coarse := replace(coarse, types=frozenset(name for name, _ in by_type.most_common(most))))


def _keys(fine: FineGroups, tree: Tree, expansion: Expansion, coarse: _Coarseness) -> list[Key]:
    """Return the box of each fine group."""
    levels = 1 + max((kind.level for kind in fine.kinds), default=0)
    lowest: dict[int, int] = {}
    owner_of = {
        id_: tree.child_within(id_, expansion.stacks) for id_ in {kind.stack_id for kind in fine.kinds}
    }
    shown = {
        id_
        for id_, box in owner_of.items()
        if box == id_ and (id_ == tree.root_id or id_ in expansion.stacks)
    }
    for kind in fine.kinds:
        box = owner_of[kind.stack_id]
        lowest[box] = min(lowest.get(box, kind.level), kind.level)
    result = []
    for kind in fine.kinds:
        if kind.stack_id in shown:
            type_ = kind.type if coarse.types is None or kind.type in coarse.types else OTHER
            first, last = _range(kind.level, levels, expansion, coarse)
            result.append(Key(False, kind.stack_id, type_, first, last))
            continue
        box = owner_of[kind.stack_id]
        first, last = _range(lowest[box], levels, expansion, coarse)
        result.append(Key(True, 0 if coarse.merges_stacks else box, "", first, last))
    return result


def _range(level: int, levels: int, expansion: Expansion, coarse: _Coarseness) -> tuple[int, int]:
    if not coarse.ranges or expansion.shows(level):
        return level, level
    length = -(-levels // coarse.ranges)
    first = level - level % length
    return first, min(first + length, levels) - 1


def _group(key: Key, counts: Mapping[str, int], stacks: Iterable[int], tree: Tree) -> Group:
    inside = list(stacks)
    expand = "" if key.first == key.last else f"levels:{key.first}-{key.last}"
    if not key.nested:
        return Group(key, key.type, counts, 0, expand)
    if len(inside) == 1:
        return Group(key, tree.names.get(inside[0], ""), counts, 1, f"stack:{tree.uuids.get(inside[0], '')}")
    return Group(key, f"{len(inside)} nested stacks", counts, len(inside), expand)


def _edges(fine: FineGroups, keys: Sequence[Key]) -> Counter[tuple[Key, Key]]:
    result = Counter[tuple[Key, Key]]()
    for edge, number in fine.edges.items():
        pair = keys[edge >> 32], keys[edge & LOW]
        if pair[0] != pair[1]:
            result[pair] += number
    return result


def _bounded(groups: list[Group], edges: Counter[tuple[Key, Key]]) -> StackMap:
    """Leave out the smallest groups without failures, and the rarest edges."""
    ranked = sorted(groups, key=lambda group: (-group.counts.get("failed", 0), -group.size, group.key))
    shown = sorted(ranked[:MAX_GROUPS], key=lambda group: (group.key.first, group.key))
    omitted = ranked[MAX_GROUPS:]
    numbers = {group.key: number for number, group in enumerate(shown)}
    lines = [
        (numbers[dependent], numbers[required], number)
        for (dependent, required), number in edges.items()
        if dependent in numbers and required in numbers
    ]
    lines.sort(key=lambda line: (-line[2], line))
    return StackMap(
        tuple(shown),
        tuple(sorted(lines[:MAX_EDGES])),
        len(omitted),
        sum(group.size for group in omitted),
        len(edges) - min(len(lines), MAX_EDGES),
    )
