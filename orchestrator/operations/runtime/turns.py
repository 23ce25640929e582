"""Turns: the requests of a project that an API process computes at the same time.

The threads of a process share the interpreter, so each computing request delays all others. A project has
`ALONE` turns, and only `SHARED` turns while the process receives requests of other projects. Its further
requests wait, and those of other projects compute in the meantime. A request returns its turn while it waits
for a server or a subprocess (`paused`).
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from orchestrator.operations.runtime.fair_slots import FairSlots, NoFreeSlot

UNLIMITED: Final = 1_000_000
ALONE: Final = 4  # more would add no throughput
SHARED: Final = 2
RECENT_SECONDS: Final = 5.0  # since the last request of a project
TURN_SECONDS: Final = 60.0  # longest wait for a turn


class Turns:
    """The turns of a process."""

    def __init__(self) -> None:
        """Begin without requests."""
        self.slots = FairSlots(UNLIMITED, ALONE, UNLIMITED)
        self._recent: OrderedDict[str, float] = OrderedDict()  # times of the last request, oldest first
        self._lock = threading.Lock()

    def note(self, project: str) -> None:
        """Adapt the turns of each project to the projects with recent requests."""
        now, recent = time.monotonic(), self._recent
        with self._lock:
            recent[project] = now
            recent.move_to_end(project)
            while next(iter(recent.values())) < now - RECENT_SECONDS:
                recent.popitem(last=False)
            self.slots.per_owner = ALONE if len(recent) == 1 else SHARED


@dataclass(slots=True)
class Turn:
    """The turn of a request."""

    turns: Turns
    project: str
    is_taken: bool = False

    def take(self) -> None:
        """Wait for the turn.

        Raises:
            NoFreeSlot: it did not come in time.
        """
        self.turns.slots.acquire(self.project, TURN_SECONDS)
        self.is_taken = True

    def end(self) -> None:
        """Return the turn, if it is taken."""
        if self.is_taken:
            self.is_taken = False
            self.turns.slots.release(self.project)


_current: ContextVar[Turn | None] = ContextVar("turn", default=None)


def begin(turns: Turns, project: str) -> None:
    """Take a turn for the request of this thread, until `end`.

    Raises:
        NoFreeSlot: it did not come in time.
    """
    turns.note(project)
    turn = Turn(turns, project)
    turn.take()
    _current.set(turn)


def end() -> None:
    """End the turn of this thread's request, if it has one."""
    turn = _current.get()
    if turn is not None:
        _current.set(None)
        turn.end()


@contextmanager
def paused() -> Iterator[None]:
    """Return the turn during the context, and take it again afterwards, unless it does not come in time."""
    turn = _current.get()
    if turn is None or not turn.is_taken:
        yield
        return
    turn.end()
    yield
    with suppress(NoFreeSlot):
        turn.take()
