"""Objects that were in sync in an earlier round of this process: neither row nor object has changed since."""

from __future__ import annotations

import threading
from typing import Final

MAX_OBJECTS: Final = 200_000


class UnchangedObjects:
    """The version of the row, and the digest of the object, of resources in sync."""

    def __init__(self, most: int = MAX_OBJECTS) -> None:
        """Remember at most `most` resources."""
        self._most = most
        self._known: dict[int, tuple[int, int]] = {}
        self._lock = threading.Lock()

    def contains(self, resource_id: int, version: int, digest: int) -> bool:
        """Return whether the resource was in sync with this object."""
        return self._known.get(resource_id) == (version, digest)

    def add(self, resource_id: int, version: int, digest: int) -> None:
        """Remember a resource in sync; without space, forget those that were added first."""
        with self._lock:
            self._known.pop(resource_id, None)
            self._known[resource_id] = (version, digest)
            while len(self._known) > self._most:
                del self._known[next(iter(self._known))]
