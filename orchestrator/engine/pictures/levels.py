"""Levels of a graph: the length of the longest chain of requirements below each node.

A million nodes are ordered in about a second, so every step over all of them is a single loop or a function
of the standard library. Requirements are texts: lists would be traversed by the garbage collector.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Final

SEPARATOR: Final = "\x7f"  # between the names of requirements; a name that contains it is unknown
UNKNOWN: Final = 1 << 30  # above all levels
MOST_LEFT: Final = 0.7  # of the nodes after a visit; if more are left, the other direction is tried
SLOW_VISITS: Final = 3  # then the rest is sorted


def levels(names: Iterable[str], nodes: Sequence[str], requires: Sequence[str]) -> array[int]:
    """Return the level of each name. `requires` has the requirements of each node, joined by SEPARATOR.

    Nodes without requirements, and unknown names, have level 0. Requirements that are no nodes are ignored.
    Nodes on a cycle, and their dependents, have level 0.
    """
    found: dict[str, int] = {}
    slow, step = 0, -1  # a plan writes dependents before their requirements
    while nodes and slow < SLOW_VISITS:
        before = len(found)
        _visit(found, nodes[::step], requires[::step])
        if len(found) - before == len(nodes):
            nodes = ()
            break
        rest = [place for place, node in enumerate(nodes) if node not in found]
        if len(rest) > MOST_LEFT * len(nodes):
            slow, step = slow + 1, -step
        nodes, requires = [nodes[place] for place in rest], [requires[place] for place in rest]
    if nodes:
        _visit_in_order(found, dict(zip(nodes, requires, strict=True)))
    return array("i", map(found.get, names, repeat(0)))


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


def _visit(found: dict[str, int], nodes: Iterable[str], requires: Iterable[str]) -> None:
    """Add the levels of nodes whose requirements have one when they are reached."""
    level_of, unknown = found.get, repeat(UNKNOWN)
    for node, text in zip(nodes, requires, strict=True):
        if not text:
            found[node] = 0
            continue
        first, several, rest = text.partition(SEPARATOR)
        highest = level_of(first, UNKNOWN)
        if several and SEPARATOR in rest:
            highest = max(highest, *map(level_of, rest.split(SEPARATOR), unknown))
        elif several:  # two requirements: twice as fast as the general case
            highest = max(highest, level_of(rest, UNKNOWN))
        if highest < UNKNOWN:
            found[node] = highest + 1


def _visit_in_order(found: dict[str, int], requires: dict[str, str]) -> None:
    """Add the levels of further nodes in topological order."""
    needs = {
        node: [name for name in text.split(SEPARATOR) if name in requires or name in found]
        for node, text in requires.items()
    }
    dependents: dict[str, list[str]] = {}
    unmet = {}
    for node, required in needs.items():
        waits_for = [name for name in required if name not in found]
        unmet[node] = len(waits_for)
        for name in waits_for:
            dependents.setdefault(name, []).append(node)
    ready = [node for node, count in unmet.items() if not count]
    for node in ready:  # grows during the iteration
        found[node] = 1 + max((found[name] for name in needs[node]), default=-1)
        for dependent in dependents.get(node, ()):
            unmet[dependent] -= 1
            if not unmet[dependent]:
                ready.append(dependent)
