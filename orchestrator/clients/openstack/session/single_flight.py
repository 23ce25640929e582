"""A value that one thread fetches while the others wait for it."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from orchestrator.clients.deadline import Deadline
from orchestrator.errors import OrchestratorError, ProviderUnreachable

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Fetches a value once for all threads that need it at the same time.

    A failure is the result of all threads that waited for it: a service that does not respond costs them one
    deadline, not one each.
    """

    def __init__(self, what: str) -> None:
        """`what` names the service that is asked, for the error of a thread that waits too long."""
        self._what, self._lock = what, threading.Lock()
        self._failure: OrchestratorError | None = None
        self._failed_at = 0.0

    def get(self, known: Callable[[], T | None], fetch: Callable[[], T], deadline: Deadline) -> T:
        """Return the known value, or fetch it.

        Raises:
            ProviderUnreachable: another thread fetches it and has not finished at the deadline.
            OrchestratorError: the failure of `fetch`.
        """
        value = known()
        if value is not None:
            return value
        waiting_since = time.monotonic()
        try:
            granted = self._lock.acquire(timeout=deadline.remaining())
        except TimeoutError:
            granted = False
        if not granted:
            raise ProviderUnreachable(f"{self._what} did not answer in time")
        try:
            value = known()
            if value is not None:
                return value
            if self._failure is not None and self._failed_at >= waiting_since:
                raise copy.copy(self._failure)
            return self._fetched(fetch)
        finally:
            self._lock.release()

    def _fetched(self, fetch: Callable[[], T]) -> T:
        try:
            value = fetch()
        except OrchestratorError as error:
            self._failure, self._failed_at = error, time.monotonic()
            raise
        self._failure = None
        return value
