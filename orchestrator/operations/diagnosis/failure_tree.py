"""Why a stack failed, down to the causes in the stacks nested in it, also when those are gone by now.

The engine writes every cause where it happened: into the stack whose resource failed. Above it the resource
that stands for that stack fails, later. A tree of causes is put together from there: what a nested stack
noted last before the resource around it failed, and after the action around it began. Rows of deleted stacks
and of actions that were rolled back stay until they are purged, and so do their trees.
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

MOST: Final = 1_000  # causes of one tree


@dataclass(frozen=True, slots=True)
class FailureNode:
    """A failure, and what it was caused by; `path` names the resources that lead there from the top."""

    row: FailureRow
    stack: StackRow
    path: tuple[str, ...]
    nested: StackRow | None  # whose failure it is
    causes: tuple[FailureNode, ...]

    def leaves(self) -> Iterator[FailureNode]:
        """Yield what is caused by nothing further down."""
        if not self.causes:
            yield self
        for cause in self.causes:
            yield from cause.leaves()


@dataclass(slots=True)
class _Search:
    database: Database
    left: int = MOST


def tree(
    database: Database, stack: StackRow, traversals: Sequence[int], levels: int
) -> tuple[list[FailureNode], bool]:
    """Return the causes of these traversals' failures, so many levels down, and whether there were more than
    are told.
    """
    search = _Search(database)
    found = _nodes(search, stack, traversals, levels, (), None)
    return found, search.left <= 0


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
        for row in history.list_failures(search.database, stack, traversals, limit=search.left + 1)
        if until is None or row.created_at <= until
    ]
    since = history.started_at(search.database, stack, traversals)
    children = (
        history.stacks_for(search.database, stack, {row.resource_name for row in rows}) if levels else {}
    )
    found: list[FailureNode] = []
    told: set[str] = set()
    for row in rows:
        if search.left <= 0:
            break
        if row.resource_name in told:
            continue  # the same nested stack's causes, one by one
        path = (*above, row.resource_name)
        for child in children.get(row.resource_name, ()):
            traversal = history.failed_between(search.database, child, since, row.created_at)
            if traversal is not None:
                told.add(row.resource_name)
                causes = _nodes(search, child, [traversal], levels - 1, path, row.created_at)
                found.append(FailureNode(row, stack, path, child, tuple(causes)))
                break
        else:
            search.left -= 1
            found.append(FailureNode(row, stack, path, None, ()))
    return found
