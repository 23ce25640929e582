"""A dependency graph over the positions of a list of names.

Requirements are integer arrays with an integer per edge and direction, so that a million resources fit in
memory.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Graph:
    """`requires[i]` are the requirements of position `i`; `order` has requirements before dependents."""

    names: Sequence[str]
    requires: Sequence[array[int]]
    order: array[int]

    def dependents(self) -> list[array[int]]:
        """Return the dependents of each position, in order of position."""
        dependents = [array("q") for _ in self.names]
        for position, requires in enumerate(self.requires):
            for required in requires:
                dependents[required].append(position)
        return dependents


def in_order(unmet: array[int], frees: Sequence[Sequence[int]]) -> array[int]:
    """Return positions in topological order (Kahn); positions on a cycle are missing.

    `unmet[i]` counts the predecessors of `i`, and is modified; `frees[i]` are the successors of `i`.
    """
    order = array("q", (position for position, count in enumerate(unmet) if not count))
    for position in order:  # grows during the iteration
        for freed in frees[position]:
            unmet[freed] -= 1
            if not unmet[freed]:
                order.append(freed)
    return order
