"""Turns: the requests of a project that an API process computes at the same time.

The threads of a process share the interpreter, so each computing request delays all others. A project has
`ALONE` turns, and only `SHARED` turns while the process receives requests of other projects. Its further
requests wait, and other projects compute in the meantime. A project that has used `CREDIT_SECONDS`
more than `SHARE` of the interpreter waits before its next requests. The load of the database counts as well:
a part of the time in which a request waits, and the size of its body. A request returns its turn while it
waits for a server or a subprocess (`paused`).

A long computation is divided: it returns its turn after each slice (`in_slices`, `pass_on`) and takes it
again, so that it waits like further requests do.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from orchestrator.fair_share import FairShare, NoFreeSlot

T = TypeVar("T")

UNLIMITED: Final = 1_000_000
ALONE: Final = 4  # more would add no throughput
SHARED: Final = 2
SHARE: Final = 0.2  # of the interpreter, for a project while others send requests
WAIT_WEIGHT: Final = 0.1  # of the time in which a request waits, usually for the database
BYTES_PER_SECOND: Final = 32 << 20  # of bodies, charged as processor time
CREDIT_SECONDS: Final = 0.1  # of processor time, of a project that computed less
MAX_PROJECTS: Final = 1_000  # after which those with their full credit are forgotten
MAX_DELAY_SECONDS: Final = 2.0  # of a request
MAX_DEBT_SECONDS: Final = 10.0  # of delays, after which a project has its share again
RECENT_SECONDS: Final = 5.0  # since the last request of a project
TURN_SECONDS: Final = 60.0  # longest wait for a turn
SLICE_SECONDS: Final = 0.05  # of processor time, after which a computation passes its turn on


class Turns:
    """The turns of a process."""

    def __init__(self) -> None:
        """Begin without requests."""
        self.slots = FairShare(lambda: UNLIMITED, ALONE)
        self._recent: OrderedDict[str, float] = OrderedDict()  # times of the last request, oldest first
        self._free: dict[str, float] = {}  # by project: time until which it waits; with credit in the past
        self._last: dict[str, float] = {}  # by project: processor time of the last request
        self._lock = threading.Lock()

    def delay(self, project: str) -> tuple[float, float]:
        """Return the seconds that a request of a project must wait, and the processor time charged for it.

        A request that waits is charged as the last request, so that further requests start after its end.
        """
        now = time.monotonic()
        with self._lock:
            if self.slots.per_owner != SHARED:  # delays no other project
                self._free.pop(project, None)
            delay = self._free.get(project, 0.0) - now
            if delay <= 0:
                return 0.0, 0.0
            charged = self._last.get(project, 0.0)
            self._free[project] = min(self._free[project] + charged / SHARE, now + MAX_DEBT_SECONDS)
            return min(MAX_DELAY_SECONDS, delay), charged

    def charge(self, project: str, seconds: float, charged: float = 0.0) -> None:
        """Charge the processor time of a request, while other projects send requests."""
        now = time.monotonic()
        earliest = now - CREDIT_SECONDS / SHARE
        with self._lock:
            if self.slots.per_owner != SHARED:
                return
            if len(self._free) > MAX_PROJECTS:
                self._free = {name: end for name, end in self._free.items() if end > earliest}
                self._last = {name: last for name, last in self._last.items() if name in self._free}
            free = max(earliest, self._free.get(project, earliest)) + (seconds - charged) / SHARE
            self._free[project] = min(free, now + MAX_DEBT_SECONDS)
            self._last[project] = seconds

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
    begun: float = 0.0  # cost of the thread until now
    charged: float = 0.0  # in advance
    other: float = 0.0  # seconds to be charged for other than computing and waiting

    def take(self, seconds: float) -> None:
        """Wait for the turn, for at most `seconds`.

        Raises:
            NoFreeSlot: it did not come in time.
        """
        self.turns.slots.acquire(self.project, seconds)
        self.is_taken = True
        delay, self.charged = self.turns.delay(self.project)
        if delay:
            time.sleep(delay)
        self.begun = _cost()

    def end(self) -> None:
        """Return the turn, if it is taken."""
        if self.is_taken:
            self.is_taken = False
            self.turns.charge(self.project, _cost() - self.begun + self.other, self.charged)
            self.other = 0.0
            self.turns.slots.release(self.project)


def _cost() -> float:
    """Return the processor time of this thread and a part of the time in which it waited, in seconds."""
    computed = time.thread_time()
    return computed + WAIT_WEIGHT * (time.monotonic() - computed)


_current: ContextVar[Turn | None] = ContextVar("turn", default=None)


def begin(turns: Turns, project: str, seconds: float | None = None) -> None:
    """Take a turn for the request of this thread, until `end`; a turn of the same project is kept.

    It waits for the turn for at most `seconds`, by default `TURN_SECONDS`.

    Raises:
        NoFreeSlot: it did not come in time.
    """
    turns.note(project)
    current = _current.get()
    if current is not None and current.is_taken and current.project == project:
        return
    end()
    turn = Turn(turns, project)
    turn.take(TURN_SECONDS if seconds is None else seconds)
    _current.set(turn)


def end() -> None:
    """End the turn of this thread's request, if it has one."""
    turn = _current.get()
    if turn is not None:
        _current.set(None)
        turn.end()


def count_bytes(number: int) -> None:
    """Charge the current request for a body of `number` bytes."""
    turn = _current.get()
    if turn is not None:
        turn.other += number / BYTES_PER_SECOND


def project() -> str | None:
    """Return the project of the current request's turn, None without a turn."""
    turn = _current.get()
    return None if turn is None else turn.project


def in_slices(turns: Turns, project: str, slices: Iterator[T]) -> Generator[T, None, None]:
    """Yield the items of an iterator, each computed in a turn of the project; none is held in between.

    Raises:
        NoFreeSlot: a turn did not come in time.
    """
    try:
        while True:
            begin(turns, project)
            try:
                item = next(slices)
            except StopIteration:
                return
            finally:
                end()
            yield item
    finally:
        if isinstance(slices, Generator):
            slices.close()


def pass_on() -> None:
    """Return the turn of a request that has computed a slice, and take it again; do nothing before that, or
    without a turn.

    A long computation calls this between its parts, without a lock that other projects need. If the turn does
    not come in time, the request computes on.
    """
    turn = _current.get()
    if turn is None or not turn.is_taken or _cost() - turn.begun < SLICE_SECONDS:
        return
    with paused():
        pass


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
        turn.take(TURN_SECONDS)


def await_answers(futures: Iterable[Future[Any]], seconds: float) -> None:
    """Wait for requests to providers, for at most `seconds`. The turn is returned meanwhile: a slow provider
    delays no other request of the project.
    """
    with paused():
        wait(list(futures), max(0.0, seconds))
