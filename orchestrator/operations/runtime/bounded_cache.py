"""A cache shared by threads, bounded by its number of entries; for values that never change."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class BoundedCache(Generic[Key, Value]):
    """Keeps the last values added."""

    def __init__(self, size: int) -> None:
        """Keep up to `size` values."""
        self._size = size
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key) -> Value | None:
        """Return a cached value."""
        with self._lock:
            return self._values.get(key)

    def put(self, key: Key, value: Value) -> None:
        """Add a value; a full cache drops its oldest entry."""
        with self._lock:
            self._values[key] = value
            if len(self._values) > self._size:
                self._values.popitem(last=False)

    def get_or_make(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return a cached value, or make and add it; two threads may make the same value."""
        found = self.get(key)
        if found is None:
            found = make()
            self.put(key, found)
        return found
