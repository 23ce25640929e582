"""The causes of a stack's failure, down to its nested stacks, even if those are deleted.

The engine records each failure in the stack of the failed resource. In the parent stack, the resource of that
nested stack fails later. The tree is reconstructed from these records: the causes of a resource's failure are
the last failures of its nested stack before the resource failed and after the parent's action began. Records
of deleted stacks and of actions that were rolled back remain until they are purged.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.store.connections.database import Database
from orchestrator.store.stacks import history
from orchestrator.store.stacks.history import FailureRow
from orchestrator.store.stacks.stacks import StackRow

MAX_CAUSES: Final = 1_000  # causes of a tree


@dataclass(frozen=True, slots=True)
class FailureNode:
    """A failure and its causes; `path` lists the resources that lead to it from the root."""

    row: FailureRow
    stack: StackRow
    path: tuple[str, ...]
    nested: StackRow | None  # the stack that failed
    causes: tuple[FailureNode, ...]

    def leaves(self) -> Iterator[FailureNode]:
        """Yield the failures without further causes."""
        if not self.causes:
            yield self
        for cause in self.causes:
            yield from cause.leaves()


@dataclass(slots=True)
class _Search:
    database: Database
    remaining: int = MAX_CAUSES


def tree(
    database: Database, stack: StackRow, traversals: Sequence[int], levels: int
) -> tuple[list[FailureNode], bool]:
    """Return the causes of these traversals' failures, at most `levels` deep, and whether the list is cut."""
    search = _Search(database)
    nodes = _nodes(search, stack, traversals, levels, (), None)
    return nodes, search.remaining <= 0


def _nodes(
    search: _Search,
    stack: StackRow,
    traversals: Sequence[int],
    levels: int,
    above: tuple[str, ...],
    until: dt.datetime | None,
) -> list[FailureNode]:
    rows = [
        row
        for row in history.list_failures(search.database, stack, traversals, limit=search.remaining + 1)
        if until is None or row.created_at <= until
    ]
    since = history.started_at(search.database, stack, traversals)
    children = (
        history.stacks_for(search.database, stack, {row.resource_name for row in rows}) if levels else {}
    )
    nodes: list[FailureNode] = []
    listed: set[str] = set()
    for row in rows:
        if search.remaining <= 0:
            break
        if row.resource_name in listed:
            continue  # causes in the same nested stack are listed once
        path = (*above, row.resource_name)
        for child in children.get(row.resource_name, ()):
            traversal = history.failed_between(search.database, child, since, row.created_at)
            if traversal is not None:
                listed.add(row.resource_name)
                causes = _nodes(search, child, [traversal], levels - 1, path, row.created_at)
                nodes.append(FailureNode(row, stack, path, child, tuple(causes)))
                break
        else:
            search.remaining -= 1
            nodes.append(FailureNode(row, stack, path, None, ()))
    return nodes
