"""What several threads ask of the database at one moment, as one statement: one way there, one commit.

Who comes while nobody asks goes at once, for itself alone. Who comes meanwhile waits, and the first of those
that wait asks for all of them when the way is free. So nothing waits for company, no thread is kept for it,
and the more there is to do the less each costs.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

import psycopg

Request = TypeVar("Request")
Result = TypeVar("Result")

MAX_BATCH: Final = 100  # of one statement


class _Waiting(Generic[Request, Result]):
    """One caller: what it asks, then what it is told."""

    __slots__ = ("asked", "error", "over", "told", "turn")

    def __init__(self, asked: Request) -> None:
        self.asked = asked
        self.told: list[Result] = []
        self.error: BaseException | None = None
        self.over = False
        self.turn = threading.Lock()  # free when it is answered, or is to go
        self.turn.acquire()


class Batcher(Generic[Request, Result]):
    """One thing that can be asked for, by any number of threads."""

    def __init__(self, ask: Callable[[Sequence[Request]], Sequence[Result]]) -> None:
        """`ask` answers several at once, each at its place; it is called by one thread at a time."""
        self._ask = ask
        self._queue: deque[_Waiting[Request, Result]] = deque()
        self._busy = False
        self._lock = threading.Lock()

    def __call__(self, asked: Request) -> Result:
        """Return what one is told, together with whoever asks at the same time.

        Raises whatever `ask` does. Where it refuses several for what they are, it is asked for each alone;
        where the server is gone, all of them are told.
        """
        mine = _Waiting[Request, Result](asked)
        with self._lock:
            self._queue.append(mine)
            goes, self._busy = not self._busy, True
        if not goes:
            mine.turn.acquire()
        if not mine.over:
            self._go()
        if mine.error is not None:
            raise mine.error
        return mine.told[0]

    def _go(self) -> None:
        """Ask for those who wait; the first of them is who calls this."""
        with self._lock:
            batch = [self._queue.popleft() for _ in range(min(MAX_BATCH, len(self._queue)))]
        try:
            self._answer(batch)
        finally:
            with self._lock:
                after = self._queue[0] if self._queue else None
                self._busy = after is not None
            for one in batch[1:]:
                one.over = True
                one.turn.release()
            if after is not None:
                after.turn.release()

    def _answer(self, batch: Sequence[_Waiting[Request, Result]]) -> None:
        try:
            for one, told in zip(batch, self._ask([one.asked for one in batch]), strict=True):
                one.told.append(told)
        except BaseException as error:
            gone = isinstance(error, psycopg.OperationalError) or not isinstance(error, Exception)
            if len(batch) > 1 and not gone:
                for one in batch:
                    self._answer([one])
                return
            for one in batch:
                one.told.clear()
                one.error = error
