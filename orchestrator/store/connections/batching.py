"""Group commit: requests that several threads make at the same moment run as a single statement, with a
single round trip and commit.

A request that arrives while the connection is free runs at once and alone. Requests that arrive while it is
busy wait; the first of them then runs all of them. No request is delayed to collect more, and no thread is
reserved: the higher the load, the cheaper each request.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

import psycopg

Request = TypeVar("Request")
Result = TypeVar("Result")

MAX_BATCH: Final = 100  # requests per statement


class _Waiter(Generic[Request, Result]):
    """A waiting caller: its request, then its result."""

    __slots__ = ("error", "over", "request", "results", "turn")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.results: list[Result] = []
        self.error: BaseException | None = None
        self.over = False
        self.turn = threading.Lock()  # released with the result, or to run the batch
        self.turn.acquire()


class Batcher(Generic[Request, Result]):
    """A kind of request, made by any number of threads."""

    def __init__(self, ask: Callable[[Sequence[Request]], Sequence[Result]]) -> None:
        """`ask` runs several requests and returns their results in the same order; one thread at a time calls
        it.
        """
        self._ask = ask
        self._queue: deque[_Waiter[Request, Result]] = deque()
        self._busy = False
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Result:
        """Return the result of a request, run together with requests of other threads.

        Raises every error of `ask`. If `ask` refuses a batch because of its content, each request is run
        alone; if the server is unreachable, all requests of the batch fail.
        """
        waiter = _Waiter[Request, Result](request)
        with self._lock:
            self._queue.append(waiter)
            goes, self._busy = not self._busy, True
        if not goes:
            waiter.turn.acquire()
        if not waiter.over:
            self._go()
        if waiter.error is not None:
            raise waiter.error
        return waiter.results[0]

    def _go(self) -> None:
        """Run the waiting requests; the caller is the first of them."""
        with self._lock:
            batch = [self._queue.popleft() for _ in range(min(MAX_BATCH, len(self._queue)))]
        try:
            self._answer(batch)
        finally:
            with self._lock:
                after = self._queue[0] if self._queue else None
                self._busy = after is not None
            for waiter in batch[1:]:
                waiter.over = True
                waiter.turn.release()
            if after is not None:
                after.turn.release()

    def _answer(self, batch: Sequence[_Waiter[Request, Result]]) -> None:
        try:
            for waiter, results in zip(batch, self._ask([waiter.request for waiter in batch]), strict=True):
                waiter.results.append(results)
        except BaseException as error:
            gone = isinstance(error, psycopg.OperationalError) or not isinstance(error, Exception)
            if len(batch) > 1 and not gone:
                for waiter in batch:
                    self._answer([waiter])
                return
            for waiter in batch:
                waiter.results.clear()
                waiter.error = error
