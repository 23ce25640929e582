"""Recent results of look-ups, by project and region.

A name that was not found is not kept: its object may exist at the next request.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, NamedTuple

from orchestrator.errors import UNREACHABLE_ERRORS, ProviderUnreachable
from orchestrator.lookups.kinds import LookupFault

KEPT_SECONDS: Final = 30.0
MAX_ENTRIES: Final = 10_000


class Key(NamedTuple):
    """A look-up: its value in a project and region."""

    project_id: str
    region: str
    kind: str
    value: str


class LookupCache:
    """Ids by key. Thread-safe: equal look-ups at the same time are carried out once."""

    def __init__(
        self, kept_seconds: float = KEPT_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Start empty."""
        self._kept_seconds, self._clock = kept_seconds, clock
        self._kept: dict[Key, tuple[float, str]] = {}
        self._running: dict[Key, Future[str]] = {}
        self._lock = threading.Lock()

    def get(self, key: Key) -> str | None:
        """Return a recent result, None if there is none."""
        with self._lock:
            until, id_ = self._kept.get(key, (0.0, ""))
        return id_ if until > self._clock() else None

    def get_or_find(self, key: Key, find: Callable[[], str], seconds: float) -> str:
        """Return a recent result or that of `find`, within `seconds`.

        Raises:
            LookupFault, ProviderError: as `find`.
            ProviderUnreachable: another thread's look-up takes longer than `seconds`.
        """
        ends_at = self._clock() + seconds
        while (id_ := self.get(key)) is None:
            with self._lock:
                running = self._running.get(key)
                if running is None:
                    own = self._running[key] = Future[str]()
            if running is None:
                return self._find(key, own, find)
            try:
                return running.result(timeout=max(0.0, ends_at - self._clock()))
            except TimeoutError as error:
                message = (
                    f"a look-up of {key.kind} takes longer than {seconds:g} s"  # the value may be secret
                )
                raise ProviderUnreachable(message, "ServiceUnavailable") from error
            except (LookupFault, *UNREACHABLE_ERRORS):
                raise
            except Exception:  # noqa: S112 - the other credential was refused: try this credential
                continue
        return id_

    def _find(self, key: Key, own: Future[str], find: Callable[[], str]) -> str:
        try:
            id_ = find()
        except BaseException as error:
            self._end(key)
            own.set_exception(error)
            raise
        self._end(key, id_)
        own.set_result(id_)
        return id_

    def _end(self, key: Key, id_: str | None = None) -> None:
        with self._lock:
            del self._running[key]
            if id_ is None:
                return
            self._kept.pop(key, None)
            self._kept[key] = (self._clock() + self._kept_seconds, id_)
            while len(self._kept) > MAX_ENTRIES:
                del self._kept[next(iter(self._kept))]


RECENT: Final = LookupCache()
"""The results of this process."""
