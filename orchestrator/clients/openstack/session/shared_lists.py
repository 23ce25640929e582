"""Lists that several observers share: observing many objects costs as many requests as the list has pages.

An observation is served from a list when several objects of the same list are observed within two seconds,
or longer if the service is slow, and by its own request otherwise. The list is never older than the
observer permits, nor than the last change of the object by this process: observers that arrive during a
request wait for its end and share the next one.
"""

from __future__ import annotations

import copy
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from orchestrator.errors import ProviderBusy, ProviderError, ProviderUnreachable
from orchestrator.json_types import JsonObject

WINDOW_SECONDS: Final = 2.0
LAG_TIMES: Final = 3.0  # a list that took long is used for longer: a quarter of the time is spent with lists
MIN_OBJECTS: Final = 3  # observed within the window, for each page of the list
PAGE: Final = 500
MAX_SEEN: Final = 20_000
MAX_CHANGES: Final = 5_000
MAX_LISTS: Final = 200

Fetch = Callable[[], Iterable[Iterable[JsonObject]]]  # the pages of the list


class Unlisted(Exception):
    """The list does not answer the question: the object needs its own request."""


class NotListedYet(Exception):
    """The object is newer than the last list, which is recent enough not to be read again yet."""


@dataclass(frozen=True, slots=True)
class _Snapshot:
    started_at: float
    objects: dict[str, JsonObject]
    seconds: float = 0.0  # that the request took

    @property
    def pages(self) -> int:
        return 1 + len(self.objects) // PAGE


class SharedList:
    """The newest state of a list, and its observers."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._changed = threading.Condition()
        self._asked: deque[tuple[float, str]] = deque()
        self._observed: Counter[str] = Counter()  # objects of `_asked`
        self._snapshot = _Snapshot(float("-inf"), {})
        self._seen: dict[str, None] = {}
        self._fetching = False
        self._failure: ProviderError | None = None
        self._failed_at = float("-inf")  # start of the request that failed

    @property
    def seconds(self) -> float:
        """The seconds that the last request for the list took."""
        return self._snapshot.seconds

    def read(
        self,
        id_: str,
        since: float,
        fetch: Fetch,
        seconds: float,
        *,
        asked_at: float,
        objects: int = 0,
        was_listed: bool = False,
        deleting: bool = False,
        young: bool = False,
    ) -> JsonObject | None:
        """Return an object as it was at `since` or later; None if it was in an earlier list and is not in one
        that begins now, or at `since` or later if it is being deleted. `was_listed`: it was in an earlier
        list, also if that is no longer known. `young`: it need not be in a list that began after `since`.
        `asked_at` is the moment of the observation, `objects` the number of those that are observed together.

        Raises:
            NotListedYet: a young object is not in such a list.
            Unlisted: too few objects are observed, the object was never in the list, or it must not be read.
            ProviderBusy: the service does not respond.
        """
        now = time.monotonic()
        known = self._snapshot
        crowded = self._is_crowded(id_, now, objects)
        if known.started_at >= since and id_ in known.objects:
            return known.objects[id_]
        if not crowded:
            raise Unlisted
        if young and known.started_at >= since and id_ not in self._seen:
            raise NotListedYet
        newest = since if deleting else max(since, asked_at)
        for required in (since, newest) if known.started_at < since < newest else (newest,):
            found = self._read_since(required, fetch, now + seconds).objects
            if id_ in found:
                return found[id_]
        if not (was_listed or id_ in self._seen):
            raise Unlisted
        return None

    def _is_crowded(self, id_: str, now: float, objects: int) -> bool:
        """Record an observer. Return whether a list costs fewer requests than single objects."""
        with self._changed:
            self._asked.append((now, id_))
            self._observed[id_] += 1
            window = max(WINDOW_SECONDS, LAG_TIMES * self._snapshot.seconds)
            while self._asked[0][0] < now - window:
                _, before = self._asked.popleft()
                self._observed[before] -= 1
                if not self._observed[before]:
                    del self._observed[before]
            return max(len(self._observed), objects) >= MIN_OBJECTS * self._snapshot.pages

    def _read_since(self, required: float, fetch: Fetch, until: float) -> _Snapshot:
        """Return a list whose request began at `required` or later; request it unless another thread does."""
        with self._changed:
            while self._snapshot.started_at < required:
                if self._failure is not None and self._failed_at >= required:
                    raise _judged(self._failure)
                if not self._fetching:
                    self._fetching = True
                    break
                if not self._changed.wait(until - time.monotonic()):
                    raise ProviderUnreachable("another observation of the list takes too long")
            else:
                return self._snapshot
        return self._fetch(fetch)

    def _fetch(self, fetch: Fetch) -> _Snapshot:
        started_at, snapshot, failure = time.monotonic(), None, None
        try:
            objects = {str(item["id"]): item for page in fetch() for item in page if "id" in item}
            snapshot = _Snapshot(started_at, objects, time.monotonic() - started_at)
            return snapshot
        except ProviderError as error:
            failure = error
            raise _judged(error) from error
        finally:
            with self._changed:
                self._fetching = False
                if snapshot is not None:
                    self._snapshot = snapshot
                    self._seen = dict.fromkeys([*self._seen, *snapshot.objects][-MAX_SEEN:])
                if failure is not None:
                    self._failure, self._failed_at = failure, started_at
                self._changed.notify_all()


def _judged(failure: ProviderError) -> Exception:
    """Return the failure of an observation; the right to read a list is not that to read an object."""
    return copy.copy(failure) if isinstance(failure, ProviderBusy) else Unlisted()


class SharedLists:
    """The shared lists of a credential in a region."""

    def __init__(self) -> None:
        """No list is known yet."""
        self._lists: dict[tuple[str, ...], SharedList] = {}
        self._changes: dict[str, float] = {}
        self._lock = threading.Lock()

    def of(self, *key: str) -> SharedList:
        """Return a list by its service, path, query and microversion."""
        with self._lock:
            known = self._lists.get(key)
            if known is None:
                if len(self._lists) >= MAX_LISTS:
                    self._lists.clear()
                known = self._lists[key] = SharedList()
            return known

    def note_change(self, path: str) -> None:
        """Record that a request changed the object in a path: earlier lists are no longer read for it."""
        now = time.monotonic()
        with self._lock:
            for part in path.strip("/").split("/"):
                self._changes.pop(part, None)
                self._changes[part] = now
            while len(self._changes) > MAX_CHANGES:
                del self._changes[next(iter(self._changes))]

    def changed_at(self, id_: str) -> float:
        """Return the time of the last change of an object by this process."""
        return self._changes.get(id_, float("-inf"))
