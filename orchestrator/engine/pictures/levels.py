"""Levels of a graph: the length of the longest chain of requirements below each node.

Nodes are named by keys: 64-bit numbers. A million nodes are ordered in about a second, so every step over all
of them is a single loop or a function of the standard library.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, repeat
from typing import Final

UNKNOWN: Final = 1 << 30  # above all levels


@dataclass(frozen=True, slots=True)
class Requirements:
    """The requirements of nodes: their keys, one after another, `counts[n]` of node n."""

    nodes: array[int]
    counts: array[int]
    required: array[int]


def levels(keys: Iterable[int], graph: Requirements) -> array[int]:
    """Return the level of each key; nodes without requirements, and unknown keys, have level 0.

    Requirements outside of the graph are ignored. Nodes on a cycle, and their dependents, have level 0.
    """
    found: dict[int, int] = {}
    _visit(found, reversed(graph.nodes), reversed(graph.counts), reversed(graph.required))
    if len(found) < len(graph.nodes):
        _visit(found, graph.nodes, graph.counts, iter(graph.required))
    if len(found) < len(graph.nodes):
        _visit_rest(found, graph)
    return array("i", map(found.get, keys, repeat(0)))


def order_by_level(levels_: Sequence[int]) -> tuple[array[int], list[int]]:
    """Return the nodes ordered by level, otherwise in their own order, and the number of nodes per level."""
    order = array("i", sorted(range(len(levels_)), key=levels_.__getitem__))
    return order, counts_of(levels_)


def counts_of(levels_: Sequence[int]) -> list[int]:
    """Return the number of nodes of each level."""
    counts = [0] * (max(levels_, default=-1) + 1)
    for level in levels_:
        counts[level] += 1
    return counts


def _visit(
    found: dict[int, int], nodes: Iterable[int], counts: Iterable[int], required: Iterator[int]
) -> None:
    """Add the levels of nodes whose requirements have one when they are reached.

    A plan writes dependents before their requirements, so a single visit in reverse order finds nearly all.
    """
    level_of, take = found.get, required.__next__
    for node, count in zip(nodes, counts, strict=True):
        if count == 1:
            below = level_of(take(), UNKNOWN)
        elif count == 2:  # as the next case, without its iterators
            below = max(level_of(take(), UNKNOWN), level_of(take(), UNKNOWN))
        else:
            below = max(map(level_of, islice(required, count), repeat(UNKNOWN)), default=-1)
        if below < UNKNOWN:
            found[node] = below + 1


def _visit_rest(found: dict[int, int], graph: Requirements) -> None:
    """Add the levels of the remaining nodes in topological order."""
    rest = {node for node in graph.nodes if node not in found}
    ends = accumulate(graph.counts)
    needs = {
        node: [key for key in graph.required[end - count : end] if key in rest or key in found]
        for node, count, end in zip(graph.nodes, graph.counts, ends, strict=True)
        if node in rest
    }
    dependents: dict[int, list[int]] = {}
    unmet = {}
    for node, required in needs.items():
        waits_for = [key for key in required if key in rest]
        unmet[node] = len(waits_for)
        for key in waits_for:
            dependents.setdefault(key, []).append(node)
    ready = [node for node, count in unmet.items() if not count]
    for node in ready:  # grows during the iteration
        found[node] = 1 + max((found[key] for key in needs[node]), default=-1)
        for dependent in dependents.get(node, ()):
            unmet[dependent] -= 1
            if not unmet[dependent]:
                ready.append(dependent)
