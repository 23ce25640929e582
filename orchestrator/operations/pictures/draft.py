"""The first picture of a large field: the states of its resources without levels and requirements. It is
shown until the complete read ends.
"""

from __future__ import annotations

import threading
import time
from array import array
from dataclasses import dataclass, field
from typing import Final

from orchestrator.engine.pictures.field import Field
from orchestrator.engine.pictures.groups import FineGroups, Kind, Tree
from orchestrator.operations.pictures.field import tree_of
from orchestrator.store.connections.database import Database
from orchestrator.store.pictures import draft as stored
from orchestrator.store.pictures.field import snapshot, tree
from orchestrator.store.stacks.stacks import StackRow

LARGE: Final = 20_000  # resources; a smaller field is read completely at once


@dataclass(frozen=True, slots=True)
class GroupDraft:
    """The resources of each stack and type by state. All have the level 0."""

    fine: FineGroups
    numbers: dict[tuple[int, int], int]  # by group and byte
    tree: Tree


@dataclass(slots=True)
class FieldDraft:
    """The first picture of a field. Each part is read once, when it is requested."""

    database: Database
    stack: StackRow
    begun: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _field: Field | None = None
    _groups: GroupDraft | None = None

    @property
    def age_seconds(self) -> float:
        """Return the time since the first request."""
        return time.monotonic() - self.begun

    def field(self) -> Field:
        """Return the states, without ids and levels. Those planned last come first."""
        with self._lock:
            if self._field is None:
                with snapshot(self.database) as db:
                    states = stored.states(db, tree(db, self.stack))
                self._field = Field(array("q"), states, [], order="draft")
            return self._field

    def groups(self) -> GroupDraft:
        """Return the numbers by stack, type and state."""
        with self._lock:
            if self._groups is None:
                with snapshot(self.database) as db:
                    stacks = tree(db, self.stack)
                    rows = stored.groups(db, stacks)
                numbers: dict[Kind, int] = {}
                amounts = {
                    (numbers.setdefault(Kind(stack_id, type_, 0), len(numbers)), state): number
                    for stack_id, type_, state, number in rows
                }
                fine = FineGroups(tuple(numbers), array("i"), {})
                self._groups = GroupDraft(fine, amounts, tree_of(self.stack, stacks))
            return self._groups


def draft_of(database: Database, stack: StackRow) -> FieldDraft | None:
    """Return the first picture of a field, None if the field is small."""
    with database.borrow(hot=False) as db:
        return FieldDraft(database, stack) if stored.is_large(db, stack, LARGE) else None
