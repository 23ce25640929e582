"""When objects that are missing in lists were looked up: objects of other projects are in no list."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, NamedTuple

FIRST_PAUSE: Final = 10.0  # seconds after the second look-up with the same result
LONGEST_PAUSE: Final = 600.0
MAX_OBJECTS: Final = 50_000


class _LookUp(NamedTuple):
    version: int  # of the resource's row
    missing: bool
    times: int  # in a row with this result
    at: float


class LookUps:
    """The look-ups of this process: repeated at once, then after growing pauses."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing was looked up yet."""
        self._clock = clock
        self._known: dict[int, _LookUp] = {}
        self._lock = threading.Lock()

    def is_due(self, resource_id: int, version: int, *, missing: bool) -> bool:
        """Return whether to look up an object; `missing`: it is known not to exist."""
        known = self._known.get(resource_id)
        if known is None or (known.version, known.missing) != (version, missing):
            return True
        if not missing and known.times < 2:
            return True
        pause = LONGEST_PAUSE if missing else min(FIRST_PAUSE * 2.0 ** (known.times - 2), LONGEST_PAUSE)
        return self._clock() - known.at >= pause

    def note(self, resource_id: int, version: int, *, missing: bool) -> None:
        """Record the result of a look-up."""
        with self._lock:
            known = self._known.pop(resource_id, None)
            same = known is not None and (known.version, known.missing) == (version, missing)
            times = known.times + 1 if known is not None and same else 1
            self._known[resource_id] = _LookUp(version, missing, min(times, 20), self._clock())
            while len(self._known) > MAX_OBJECTS:
                del self._known[next(iter(self._known))]
