"""What was right a moment ago and need not be worked out again."""

from __future__ import annotations

import threading
import time as clock
from typing import Final


class Remembered:
    """Values by key for some seconds, as a memcache client has them: bounded, and shared by threads."""

    MOST: Final = 10_000

    def __init__(self) -> None:
        """Begin with none."""
        self._kept: dict[str, tuple[float, bytes]] = {}
        self._lock = threading.Lock()

    def get(self, key: str) -> bytes | None:
        """Return what is kept under `key`, None when it is too old."""
        with self._lock:
            until, value = self._kept.get(key, (0.0, None))
        return value if until > clock.monotonic() else None

    def set(self, key: str, value: bytes, time: float = 0) -> None:
        """Keep `value` for `time` seconds; the longest kept make room."""
        with self._lock:
            self._kept.pop(key, None)
            if time > 0:
                self._kept[key] = (clock.monotonic() + time, value)
            while len(self._kept) > self.MOST:
                del self._kept[next(iter(self._kept))]
