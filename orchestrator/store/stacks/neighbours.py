"""The resources near a resource in the dependency graph, by the desired definitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from orchestrator.store.connections.database import Database
from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.stacks.resources import REQUIRED_BY, REQUIRED_OF
from orchestrator.store.stacks.stacks import StackRow

STATES: Final = """
SELECT DISTINCT ON (r.name) r.name, r.type, r.action, r.status
FROM resource r WHERE r.stack_id = %(stack_id)s AND r.name = ANY(%(names)s::text[])
ORDER BY r.name, r.deposed, r.id DESC
"""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A resource near the resource; `level` is negative for requirements and positive for dependents."""

    name: str
    type: str
    action: str
    status: str
    level: int


@dataclass(slots=True)
class Neighbourhood:
    """The resources near a resource, nearest first, and the edges between them: dependent and requirement."""

    nodes: list[Neighbour] = field(default_factory=list)
    edges: list[tuple[str, str]] = field(default_factory=list)
    left_out: int = 0  # resources beyond the limit


State = tuple[str, str, str, str]  # name, type, action, status
Pairs = Callable[[Sequence[str], int], Sequence[tuple[str, str]]]  # of names, in a direction
States = Callable[[Sequence[str]], Sequence[State]]


def read(database: Database, stack: StackRow, name: str, levels: int, limit: int) -> Neighbourhood:
    """Return the resources up to a number of levels in both directions, at most `limit`."""
    return walk(name, levels, limit, partial(_pairs, database, stack), partial(states, database, stack))


def states(database: Database, stack: StackRow, names: Sequence[str]) -> list[State]:
    """Return the states of the resources with rows."""
    with database.borrow() as db:
        rows = fetch_prepared(db, STATES, {"stack_id": stack.id, "names": list(names)})
    return [(name, type_, action, status) for name, type_, action, status in rows]


def walk(name: str, levels: int, limit: int, pairs: Pairs, states_of: States) -> Neighbourhood:
    """Return the resources near a resource by their edges and states, as `read` does."""
    found, edges = {name: 0}, set[tuple[str, str]]()
    left_out = _walk(pairs, found, edges, -1, levels, limit)
    left_out += _walk(pairs, found, edges, 1, levels, limit)
    nodes = [
        Neighbour(name_, type_, action, status, found[name_])
        for name_, type_, action, status in states_of(list(found))
    ]
    known = {node.name for node in nodes}
    return Neighbourhood(
        sorted(nodes, key=lambda node: (abs(node.level), node.level, node.name)),
        sorted(edge for edge in edges if known.issuperset(edge)),
        left_out,
    )


def _walk(
    pairs: Pairs,
    found: dict[str, int],
    edges: set[tuple[str, str]],
    direction: int,
    levels: int,
    limit: int,
) -> int:
    """Add the resources in a direction; return the number of those beyond the limit."""
    front, left_out = [name for name, level in found.items() if level == 0], 0
    for level in range(1, levels + 1):
        found_pairs = pairs(front, direction)
        edges.update(found_pairs)
        reached = dict.fromkeys(pair[1 if direction < 0 else 0] for pair in found_pairs)
        new = [name for name in reached if name not in found]
        room = max(0, limit - len(found))
        left_out += len(new) - min(len(new), room)
        front = sorted(new)[:room]
        found.update(dict.fromkeys(front, direction * level))
        if not front:
            break
    return left_out


def _pairs(
    database: Database, stack: StackRow, names: Sequence[str], direction: int
) -> list[tuple[str, str]]:
    """Return the edges of resources to their requirements, or from their dependents."""
    values = {"stack_id": stack.id, "revision_id": stack.revision_id, "names": list(names)}
    with database.borrow() as db:
        rows = fetch_prepared(db, REQUIRED_BY if direction < 0 else REQUIRED_OF, values)
    wanted = frozenset(names)
    return [
        (dependent, required)
        for dependent, requires in rows
        for required in requires
        if direction < 0 or required in wanted
    ]
