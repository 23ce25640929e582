"""The nodes of a traversal, with joins for wide fan-in and fan-out (docs/internals/protocol.md rule 10).

A node with a thousand feeders would be a hot row, and a node with ten thousand dependents would need a long
statement to release them. `join` nodes of bounded width split both. The layout orders nodes after all nodes
that they release: written in that order, in slices, no node can be claimed before the nodes that it releases
are written.
"""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterator
from dataclasses import dataclass

from orchestrator.graph.build import Graph, in_order

WIDTH = 512  # maximum feeders of a join, and maximum dependents that a statement releases


@dataclass(slots=True)
class Layout:
    """Nodes 0 … `size`-1 stand for the graph's positions, the rest are joins. FINISH is the traversal's
    finish node; `finish_blockers` nodes release it directly.
    """

    size: int
    needed_by: list[array[int]]
    blocked_by: array[int]
    labels: dict[int, str]  # of the joins
    order: array[int]
    finish_blockers: int

    def slices(self, length: int) -> Iterator[array[int]]:
        """Yield the nodes in writing order, `length` at a time."""
        for start in range(0, len(self.order), length):
            yield self.order[start : start + length]


FINISH = -1


def lay_out(graph: Graph, width: int = WIDTH, also_last: Container[int] = ()) -> Layout:
    """Return the nodes of a traversal that visits each position of `graph` once, requirements first. The
    finish node waits for positions without dependents, and for those in `also_last`.
    """
    size = len(graph.names)
    needed_by = graph.dependents()
    blocked_by = array("q", (len(requires) for requires in graph.requires))
    layout = Layout(size, needed_by, blocked_by, {}, array("q"), 0)
    for position in range(size):
        if len(graph.requires[position]) > width:
            feeders = list(graph.requires[position])
            blocked_by[position] = _fan_in(layout, feeders, position, graph.names[position], width)
    ends = [position for position in range(size) if not needed_by[position] or position in also_last]
    layout.finish_blockers = _fan_in(layout, ends, FINISH, "finish", width)
    for position in range(len(needed_by)):
        if len(needed_by[position]) > width:
            label = graph.names[position] if position < size else layout.labels[position]
            _fan_out(layout, position, label, width)
    del graph, ends  # frees memory: for a million positions, the next step needs as much again
    layout.order = _writing_order(layout)
    return layout


def _add(layout: Layout, label: str) -> int:
    layout.needed_by.append(array("q"))
    layout.blocked_by.append(0)
    node = len(layout.needed_by) - 1
    layout.labels[node] = label
    return node


def _fan_in(layout: Layout, feeders: list[int], target: int, label: str, width: int) -> int:
    """Let `feeders` release `target` through joins if there are more than `width`; return its number of
    blockers.

    Neighbours feed different joins, so that workers do not queue for the same row.
    """
    level = 0
    while len(feeders) > width:
        joins = [_add(layout, f"{label} <{level}.{n}") for n in range(-(-len(feeders) // width))]
        for n, feeder in enumerate(feeders):
            join = joins[n % len(joins)]
            _redirect(layout.needed_by, feeder, target, join)
            layout.blocked_by[join] += 1
        feeders, level = joins, level + 1
    if level or target == FINISH:  # without joins, the graph's edges already do
        for feeder in feeders:
            layout.needed_by[feeder].append(target)
    return len(feeders)


def _redirect(needed_by: list[array[int]], feeder: int, target: int, join: int) -> None:
    row = needed_by[feeder]
    for index, node in enumerate(row):
        if node == target:
            row[index] = join
            return
    row.append(join)


def _fan_out(layout: Layout, source: int, label: str, width: int) -> None:
    level = 0
    while len(layout.needed_by[source]) > width:
        row = layout.needed_by[source]
        joins = array("q")
        for start in range(0, len(row), width):
            join = _add(layout, f"{label} >{level}.{start // width}")
            layout.needed_by[join] = row[start : start + width]
            layout.blocked_by[join] = 1
            joins.append(join)
        layout.needed_by[source], level = joins, level + 1


def _writing_order(layout: Layout) -> array[int]:
    """Return the nodes ordered after all nodes that they release, from the finish node backwards."""
    unmet = array("q", (sum(node != FINISH for node in row) for row in layout.needed_by))
    feeders: list[array[int]] = [array("q") for _ in layout.needed_by]
    for node, row in enumerate(layout.needed_by):
        for target in row:
            if target != FINISH:
                feeders[target].append(node)
    return in_order(unmet, feeders)
