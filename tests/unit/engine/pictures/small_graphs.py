"""Graphs for the tests of pictures."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import chain

from orchestrator.engine.pictures.levels import Requirements


def graph(size: int, edges: Iterable[tuple[int, int]], *, reverse: bool = False) -> Requirements:
    """A graph of nodes 0 … size-1, written in this or the reverse order, with edges from dependents to
    requirements.
    """
    requires: dict[int, list[int]] = {node: [] for node in (range(size)[::-1] if reverse else range(size))}
    for dependent, required in edges:
        requires[dependent].append(required)
    return Requirements(
        array("q", requires),
        array("i", map(len, requires.values())),
        array("q", chain.from_iterable(requires.values())),
    )
