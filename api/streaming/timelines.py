"""Timelines of long actions, kept per process: all viewers share a read.

A read costs as much as the events of the action. It is repeated if the stack has new events, and rarely
enough to take a small part of the time; between two reads, viewers see the last one and learn when the next
is due. Short actions are read for each request.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from api.dependencies import app_state, dependencies
from orchestrator.operations.pictures import timeline as built
from orchestrator.operations.pictures.timeline import Timeline
from orchestrator.operations.runtime.caches import Slot, Slots
from orchestrator.operations.runtime.memory import release_memory
from orchestrator.store.connections.database import Database
from orchestrator.store.stacks.stacks import StackRow

MAX_KEPT: Final = 64  # actions
PAUSE_FACTOR: Final = 20  # times the duration of a read, until the next one

Version = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """A timeline as it was read."""

    picture: Timeline
    version: Version
    seconds: float  # duration
    next_at: float  # earliest next read

    def is_of(self, version: Version) -> bool:
        """Whether nothing has changed since; a version without the last events has no other time."""
        return self.version == version and None not in version


class Timelines:
    """The timelines of this process."""

    def __init__(self, database: Database) -> None:
        """Take the database."""
        self._database = database
        self._reads = Slots[tuple[int, int | None], Read](MAX_KEPT)

    def read(
        self, stack: StackRow, number: int | None, *, is_draft: bool
    ) -> tuple[Timeline | None, float | None]:
        """Return the timeline of the last action or of a revision's, None without any; and the time until the
        next read if it is outdated. `is_draft`: return a first picture if the first read would take long.
        """
        slot = self._reads.of((stack.id, number))
        version = (built.version(self._database, stack), stack.traversal, stack.action, stack.status)
        if (last := slot.value) is not None:
            if last.is_of(version):
                return last.picture, None
            if (wait := last.next_at - time.monotonic()) > 0 or not slot.lock.acquire(blocking=False):
                return last.picture, max(1.0, round(wait + last.seconds, 1))
            try:
                return self._read(slot, stack, number, version)
            finally:
                slot.lock.release()
        if not built.is_long(self._database, stack, number):
            return built.build(self._database, stack, number), None
        if is_draft and (first := built.draft(self._database, stack, number)) is not None:
            return first, 0.0
        with slot.lock:
            if slot.value is not None and slot.value.is_of(version):
                return slot.value.picture, None
            return self._read(slot, stack, number, version)

    def _read(
        self, slot: Slot[Read], stack: StackRow, number: int | None, version: Version
    ) -> tuple[Timeline | None, float | None]:
        begun = time.monotonic()
        picture = built.build(self._database, stack, number)
        now = time.monotonic()
        release_memory()
        if picture is not None:
            slot.value = Read(picture, version, now - begun, now + PAUSE_FACTOR * (now - begun))
        return picture, None


def timelines() -> Timelines:
    """Return the timelines of the application."""
    return app_state().part(Timelines, lambda: Timelines(dependencies().database))
