"""Slots for costly work in a process, shared fairly by owners: no owner can occupy all of them.

A released slot goes to the waiting owner with the fewest occupied slots; among these, to the owner that has
waited longest.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field


class NoFreeSlot(Exception):
    """No slot became free in time, or too many calls of the same owner are waiting already."""


@dataclass(slots=True, eq=False)
class _Waiter:
    owner: str
    granted: threading.Event = field(default_factory=threading.Event)


class FairSlots:
    """A number of slots; each owner may occupy some of them and may have some waiting calls."""

    def __init__(self, count: int, per_owner: int, waiting_per_owner: int) -> None:
        """Create the slots."""
        self.count, self.per_owner, self.waiting_per_owner = count, per_owner, waiting_per_owner
        self._occupied: dict[str, int] = {}
        self._waiters: deque[_Waiter] = deque()  # in order of arrival
        self._lock = threading.Lock()

    def acquire(self, owner: str, seconds: float) -> None:
        """Occupy a slot; wait for it for at most `seconds`.

        Raises:
            NoFreeSlot: no slot is occupied.
        """
        waiter = _Waiter(owner)
        with self._lock:
            if sum(other.owner == owner for other in self._waiters) >= self.waiting_per_owner:
                raise NoFreeSlot
            self._waiters.append(waiter)
            self._grant()
        if waiter.granted.wait(seconds):
            return
        with self._lock:
            if waiter.granted.is_set():  # in the last moment
                return
            self._waiters.remove(waiter)
        raise NoFreeSlot

    def release(self, owner: str) -> None:
        """Return a slot of `owner`."""
        with self._lock:
            self._occupied[owner] -= 1
            if not self._occupied[owner]:
                del self._occupied[owner]
            self._grant()

    def _grant(self) -> None:
        while sum(self._occupied.values()) < self.count:
            allowed = [
                waiter for waiter in self._waiters if self._occupied.get(waiter.owner, 0) < self.per_owner
            ]
            if not allowed:
                return
            chosen = min(allowed, key=lambda waiter: self._occupied.get(waiter.owner, 0))
            self._waiters.remove(chosen)
            self._occupied[chosen.owner] = self._occupied.get(chosen.owner, 0) + 1
            chosen.granted.set()
