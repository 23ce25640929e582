"""Timelines of long actions, kept per process: all viewers share a read.

A read costs as much as the events of the action. It is repeated if the stack has new events, and rarely
enough to take a small part of the time; between two reads, viewers see the last one and learn when the next
is due. Short actions are read for each request.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Final, cast

from flask import current_app

from api.dependencies import dependencies
from orchestrator.operations.pictures import timeline as built
from orchestrator.operations.pictures.timeline import Timeline
from orchestrator.operations.runtime.caches import BoundedCache
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
        """Whether nothing has changed since; a version without the last events is that of no other time."""
        return self.version == version and None not in version


@dataclass(slots=True, eq=False)
class Kept:
    """The last read of an action."""

    reading: threading.Lock = field(default_factory=threading.Lock)
    last: Read | None = None


class Timelines:
    """The timelines of this process."""

    def __init__(self, database: Database) -> None:
        """Take the database."""
        self._database = database
        self._kept = BoundedCache[tuple[int, int | None], Kept](MAX_KEPT)

    def read(
        self, stack: StackRow, number: int | None, *, is_draft: bool
    ) -> tuple[Timeline | None, float | None]:
        """Return the timeline of the last action or of a revision's, None without any; and the time until the
        next read if it is outdated. `is_draft`: return a first picture if the first read would take long.
        """
        kept = self._kept.get_or_make((stack.id, number), Kept)
        version = (built.version(self._database, stack), stack.traversal, stack.action, stack.status)
        if (last := kept.last) is not None:
            if last.is_of(version):
                return last.picture, None
            if (wait := last.next_at - time.monotonic()) > 0 or not kept.reading.acquire(blocking=False):
                return last.picture, max(1.0, round(wait + last.seconds, 1))
            try:
                return self._read(kept, stack, number, version)
            finally:
                kept.reading.release()
        if not built.is_long(self._database, stack, number):
            return built.build(self._database, stack, number), None
        if is_draft and (first := built.draft(self._database, stack, number)) is not None:
            return first, 0.0
        with kept.reading:
            if kept.last is not None and kept.last.is_of(version):
                return kept.last.picture, None
            return self._read(kept, stack, number, version)

    def _read(
        self, kept: Kept, stack: StackRow, number: int | None, version: Version
    ) -> tuple[Timeline | None, float | None]:
        begun = time.monotonic()
        picture = built.build(self._database, stack, number)
        now = time.monotonic()
        release_memory()
        if picture is not None:
            kept.last = Read(picture, version, now - begun, now + PAUSE_FACTOR * (now - begun))
        return picture, None


def timelines() -> Timelines:
    """Return the timelines of the application."""
    created = current_app.extensions.get("timelines")
    if created is None:
        created = current_app.extensions.setdefault("timelines", Timelines(dependencies().database))
    return cast(Timelines, created)
