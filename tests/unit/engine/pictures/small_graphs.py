"""Graphs for the tests of pictures."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.engine.pictures.groups import StackGraph
from orchestrator.engine.pictures.levels import SEPARATOR


def graph(size: int, edges: Iterable[tuple[int, int]], *, reverse: bool = False) -> StackGraph:
    """A graph of nodes 0 … size-1, written in this or the reverse order, with edges from dependents to
    requirements.
    """
    requires: dict[str, list[str]] = {
        str(node): [] for node in (range(size)[::-1] if reverse else range(size))
    }
    for dependent, required in edges:
        requires[str(dependent)].append(str(required))
    texts = [SEPARATOR.join(names) for names in requires.values()]
    return StackGraph([str(node) for node in range(size)], list(requires), texts)
