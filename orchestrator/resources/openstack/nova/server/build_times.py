"""The durations of recent builds, as nova reports them: a server is first observed when it can be ready.

They are kept by region, flavor and image in the memory of a process. A build that is faster than the recent
ones is noticed at most MAX_SECONDS after its request, and is then the fastest.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from orchestrator.resources.openstack.creation_times import parsed_time

MAX_SECONDS: Final = 5.0  # until the first observation
MIN_BUILDS: Final = 3  # known durations before they are used
KEPT_BUILDS: Final = 20
KEPT_SECONDS: Final = 600.0
MAX_KINDS: Final = 1_000

Server = Mapping[str, Any]


class Kind(NamedTuple):
    """Servers whose builds take about the same time."""

    region: str
    flavor: str
    image: str


class BuildTimes:
    """The durations of recent builds. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start with none."""
        self._clock = clock
        self._builds: dict[Kind, deque[tuple[float, float]]] = {}
        self._lock = threading.Lock()

    def record(self, kind: Kind, server: Server) -> None:
        """Record the build of an active server."""
        began, ended = parsed_time(server.get("created")), parsed_time(server.get("OS-SRV-USG:launched_at"))
        if began is None or ended is None or ended < began:
            return
        with self._lock:
            if kind not in self._builds and len(self._builds) >= MAX_KINDS:
                self._builds.clear()
            builds = self._builds.setdefault(kind, deque(maxlen=KEPT_BUILDS))
            builds.append((self._clock(), (ended - began).total_seconds()))

    def fastest(self, kind: Kind) -> float | None:
        """Return the seconds of the fastest recent build, at most MAX_SECONDS; None if too few are known."""
        since = self._clock() - KEPT_SECONDS
        with self._lock:
            recent = [seconds for at, seconds in self._builds.get(kind, ()) if at >= since]
        return min(MAX_SECONDS, *recent) if len(recent) >= MIN_BUILDS else None


RECENT: Final = BuildTimes()
"""The builds that this process has observed."""
