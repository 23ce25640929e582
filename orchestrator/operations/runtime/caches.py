"""Caches shared by the threads of a process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from orchestrator.store.connections.database import Database
from orchestrator.store.stacks import revisions

MAX_CACHED_CHARACTERS = 1 << 20  # characters; a larger text is read each time

Key = TypeVar("Key")
Value = TypeVar("Value")


class BoundedCache(Generic[Key, Value]):
    """Keeps the last values added, bounded by their number."""

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


@dataclass(slots=True, eq=False)
class Slot(Generic[Value]):
    """A value that one thread makes while the others wait."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    value: Value | None = None  # its reader decides whether it is current
    version: Hashable = None


class Slots(Generic[Key, Value]):
    """The slots created last, bounded by their number."""

    def __init__(self, size: int, keeps: Callable[[Value], bool] = lambda _: True) -> None:
        """Keep up to `size` slots, with the values for which `keeps` is true."""
        self._slots = BoundedCache[Key, Slot[Value]](size)
        self._keeps = keeps
        self._lock = threading.Lock()

    def get(self, key: Key, version: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value of a key if it was made for this version; otherwise make it."""
        slot = self.of(key)
        with slot.lock:
            if slot.value is not None and slot.version == version:
                return slot.value
            slot.value = None
            made = make()
            if self._keeps(made):
                slot.value, slot.version = made, version
            return made

    def of(self, key: Key) -> Slot[Value]:
        """Return the slot of a key, the same for all threads."""
        with self._lock:
            return self._slots.get_or_make(key, Slot)


class FileCache:
    """The texts for `get_file` that this process used last, by hash; bounded by their total size."""

    def __init__(self, database: Database, size: int = 16 << 20) -> None:
        """Keep up to `size` characters."""
        self.database, self.size = database, size
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._characters = 0
        self._lock = threading.Lock()

    def reader(self, hashes: Mapping[str, str]) -> Callable[[str], str | None]:
        """Return a function from the name of a file to its text, given their hashes in hexadecimal."""
        return lambda name: self.get(hashes[name]) if name in hashes else None

    def get(self, hash_: str) -> str | None:
        """Return the text with this hash, None when it is not stored."""
        with self._lock:
            text = self._texts.get(hash_)
            if text is not None:
                self._texts.move_to_end(hash_)
                return text
        text = self._read(hash_)
        if text is not None and len(text) <= MAX_CACHED_CHARACTERS:
            with self._lock:
                if hash_ not in self._texts:
                    self._texts[hash_] = text
                    self._characters += len(text)
                while self._characters > self.size:
                    self._characters -= len(self._texts.popitem(last=False)[1])
        return text

    def _read(self, hash_: str) -> str | None:
        body = revisions.content(self.database, bytes.fromhex(hash_))
        return None if body is None else body.decode()
