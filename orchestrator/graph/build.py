"""The dependency graph of named things, built from their requirements; a cycle is an error that names its
members.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from orchestrator.errors import Diagnostic, InvalidTemplate


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


def build(names: Sequence[str], requires: Sequence[Collection[str]]) -> Graph:
    """Return the graph of `names`; requirements outside of `names` are ignored.

    Raises:
        InvalidTemplate: `Circular Dependency Found: …`, with the members of a cycle in order.
    """
    edges = _edges(names, requires)
    order = _order(edges)
    if len(order) < len(names):
        cycle = [names[position] for position in find_cycle(edges, order)]
        text = " -> ".join([*cycle, cycle[0]])
        raise InvalidTemplate(
            [
                Diagnostic(
                    code="circular-dependency",
                    message=f"Circular Dependency Found: {text}",
                    path=f"resources.{cycle[0]}",
                    hint="each of these waits for the next; take out one of the references",
                    heat_type="CircularDependencyException",
                )
            ]
        )
    return Graph(names, edges, order)


def build_anyhow(names: Sequence[str], requires: Sequence[Collection[str]]) -> Graph:
    """Return the graph of recorded resources. A template has no cycle, but the recorded requirements of
    several interrupted traversals may have: an edge of each cycle is removed, so that no node waits forever.
    """
    edges = _edges(names, requires)
    order = _order(edges)
    while len(order) < len(names):
        position, required, *_ = [*(cycle := find_cycle(edges, order)), cycle[0]]
        edges[position].remove(required)
        order = _order(edges)
    return Graph(names, edges, order)


def _edges(names: Sequence[str], requires: Sequence[Collection[str]]) -> list[array[int]]:
    positions = {name: position for position, name in enumerate(names)}
    return [array("q", sorted({positions[n] for n in needs if n in positions})) for needs in requires]


def _order(edges: Sequence[array[int]]) -> array[int]:
    """Return positions with requirements before dependents (Kahn). Positions on a cycle, and their
    dependents, are missing.
    """
    unmet = array("q", (len(requires) for requires in edges))
    dependents: list[list[int]] = [[] for _ in edges]
    for position, requires in enumerate(edges):
        for required in requires:
            dependents[required].append(position)
    return in_order(unmet, dependents)


def find_cycle(edges: Sequence[array[int]], ordered: Collection[int]) -> list[int]:
    """Return a cycle among the positions that could not be ordered; each position requires the next."""
    free = set(ordered)
    position = next(p for p in range(len(edges)) if p not in free)
    path: dict[int, None] = {}
    while position not in path:
        path[position] = None
        position = next(required for required in edges[position] if required not in free)
    walked = list(path)
    return walked[walked.index(position) :]
