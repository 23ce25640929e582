"""A cache with a time to live for recent results."""

from __future__ import annotations

import threading
import time as clock
from typing import Final


class TtlCache:
    """Values by key, with the interface of a memcache client. Bounded and thread-safe."""

    MAX_ENTRIES: Final = 10_000

    def __init__(self) -> None:
        """Start empty."""
        self._kept: dict[str, tuple[float, bytes]] = {}
        self._lock = threading.Lock()

    def get(self, key: str) -> bytes | None:
        """Return the value of `key`, None if it is absent or expired."""
        with self._lock:
            until, value = self._kept.get(key, (0.0, None))
        return value if until > clock.monotonic() else None

    def set(self, key: str, value: bytes, time: float = 0) -> None:
        """Store `value` for `time` seconds; evict the oldest entries if full."""
        with self._lock:
            self._kept.pop(key, None)
            if time > 0:
                self._kept[key] = (clock.monotonic() + time, value)
            while len(self._kept) > self.MAX_ENTRIES:
                del self._kept[next(iter(self._kept))]
