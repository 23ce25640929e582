"""Levels of a graph: the length of the longest chain of requirements below each node."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

LOW: int = (1 << 32) - 1


def levels(size: int, edges: Sequence[int]) -> array[int]:
    """Return the level of each of `size` nodes; nodes without requirements have level 0.

    An edge is a number: the dependent in the upper 32 bits, its requirement in the lower 32. Nodes on a cycle
    keep the level that they have when no further node can be ordered.
    """
    result = array("i", bytes(4 * size))
    if not edges:
        return result
    unmet, starts = array("i", bytes(4 * size)), array("i", bytes(4 * (size + 1)))
    for edge in edges:
        unmet[edge >> 32] += 1
        starts[(edge & LOW) + 1] += 1
    for node in range(size):
        starts[node + 1] += starts[node]
    dependents, free = array("i", bytes(4 * len(edges))), array("i", starts)
    for edge in edges:
        required = edge & LOW
        dependents[free[required]] = edge >> 32
        free[required] += 1
    ready = [node for node in range(size) if not unmet[node]]
    while ready:
        following = []
        for node in ready:
            above = result[node] + 1
            for dependent in dependents[starts[node] : starts[node + 1]]:
                result[dependent] = max(result[dependent], above)
                unmet[dependent] -= 1
                if not unmet[dependent]:
                    following.append(dependent)
        ready = following
    return result


def order_by_level(levels_: Sequence[int]) -> tuple[array[int], list[int]]:
    """Return the nodes ordered by level, otherwise in their own order, and the number of nodes per level."""
    order = array("i", sorted(range(len(levels_)), key=levels_.__getitem__))
    return order, counts_of(levels_)


def counts_of(levels_: Iterable[int]) -> list[int]:
    """Return the number of nodes of each level."""
    counts: list[int] = []
    for level in levels_:
        if level >= len(counts):
            counts.extend([0] * (level + 1 - len(counts)))
        counts[level] += 1
    return counts
