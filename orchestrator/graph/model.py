"""A dependency graph over the positions of a list of names.

A million resources fit: requirements are integer arrays, and nothing is kept per edge but one integer each
way.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Graph:
    """`requires[i]` are the positions that position `i` waits for; `order` puts requirements before
    dependents.
    """

    names: Sequence[str]
    requires: Sequence[array[int]]
    order: array[int]

    def dependents(self) -> list[array[int]]:
        """Return for each position who waits for it, in order of position."""
        dependents = [array("q") for _ in self.names]
        for position, requires in enumerate(self.requires):
            for required in requires:
                dependents[required].append(position)
        return dependents


def in_order(unmet: array[int], frees: Sequence[Sequence[int]]) -> array[int]:
    """Return positions so that each comes after all that must come before it (Kahn); those on a cycle are
    missing.

    `unmet[i]` counts what must come before `i`, and is used up; `frees[i]` are the positions that `i` must
    come before.
    """
    order = array("q", (position for position, count in enumerate(unmet) if not count))
    for position in order:  # grows while it is walked
        for freed in frees[position]:
            unmet[freed] -= 1
            if not unmet[freed]:
                order.append(freed)
    return order
