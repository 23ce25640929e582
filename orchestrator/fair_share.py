"""Shares of something limited in a process: no owner may occupy everything.

`Occupancy` only counts. `FairShare` also has callers wait in their threads: a released slot goes to the
waiter of the least weight, by default of the owner with the fewest slots; among equals, to the one that has
waited longest. The fair queues of the broker have the same rule in Lua (`tasks/fair_queues.py`).
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any


class NoFreeSlot(Exception):
    """No slot became free in time, or too many calls are waiting already."""


class Occupancy:
    """What each owner occupies."""

    def __init__(self) -> None:
        """Begin with nothing occupied."""
        self.held: dict[Hashable, int] = {}
        self.total = 0
        self.lock = threading.Lock()

    def enter(self, owners: Sequence[Hashable], each: int, total: int = sys.maxsize) -> object:
        """Occupy a slot for all `owners`; if one of them has `each`, return it and occupy nothing. Return
        this object if all together have `total`, and None on success.
        """
        with self.lock:
            for owner in owners:
                if self.held.get(owner, 0) >= each:
                    return owner
            if self.total >= total:
                return self
            self.total += 1
            for owner in owners:
                self.held[owner] = self.held.get(owner, 0) + 1
        return None

    def leave(self, owners: Iterable[Hashable]) -> None:
        """Return a slot of all `owners`."""
        with self.lock:
            self.total -= 1
            for owner in owners:
                self._give_back(owner)

    def _give_back(self, owner: Hashable) -> None:
        left = self.held.pop(owner) - 1
        if left:
            self.held[owner] = left


@dataclass(slots=True, eq=False)
class Waiter:
    """A call that waits for a slot."""

    owner: str
    facts: Any = None  # for its weight
    since: float = field(default_factory=time.monotonic)
    granted: bool = False
    woken: threading.Event = field(default_factory=threading.Event)

    def end(self, *, granted: bool) -> None:
        """End its wait."""
        self.granted = granted
        self.woken.set()


class FairShare(Occupancy):
    """Slots for costly work. `capacity` is their number; each owner may occupy `per_owner` of them."""

    def __init__(
        self,
        capacity: Callable[[], int],
        per_owner: int = sys.maxsize,
        *,
        weight_of: Callable[[Waiter, int], Any] = lambda _, held: held,
        excess: Callable[[Sequence[Waiter]], Waiter | None] = lambda _: None,
    ) -> None:
        """Create the slots. `weight_of` a waiter and the number of slots of its owner: the least is next.
        `excess` returns the waiter to be refused if too many wait. Both are called with the lock.
        """
        super().__init__()
        self.capacity, self.per_owner = capacity, per_owner
        self.waiters: list[Waiter] = []  # in order of arrival
        self._weight_of, self._excess = weight_of, excess

    def acquire(self, owner: str, seconds: float, facts: Any = None) -> None:
        """Occupy a slot; wait for it for at most `seconds`.

        Raises:
            NoFreeSlot: no slot is occupied.
        """
        with self.lock:
            if not self.waiters and self.total < self.capacity():
                held = self.held.get(owner, 0)
                if held < self.per_owner:
                    self.held[owner], self.total = held + 1, self.total + 1
                    return
            waiter = Waiter(owner, facts)
            self.waiters.append(waiter)
            self.grant()
            if not waiter.granted and (refused := self._excess(self.waiters)) is not None:
                self.waiters.remove(refused)
                refused.end(granted=False)
        waiter.woken.wait(seconds)
        with self.lock:
            if waiter.granted:
                return
            if not waiter.woken.is_set():
                self.waiters.remove(waiter)
        raise NoFreeSlot

    def release(self, owner: str) -> None:
        """Return a slot of `owner`."""
        with self.lock:
            self.free(owner)

    def free(self, owner: str) -> None:
        """Return a slot of `owner`. The caller has the lock."""
        self._give_back(owner)
        self.total -= 1
        if self.waiters:
            self.grant()

    def grant(self) -> None:
        """Give free slots to waiters. The caller has the lock."""
        while self.waiters and self.total < self.capacity():
            held = {waiter.owner: self.held.get(waiter.owner, 0) for waiter in self.waiters}
            allowed = [waiter for waiter in self.waiters if held[waiter.owner] < self.per_owner]
            if not allowed:
                return
            chosen = min(allowed, key=lambda waiter: self._weight_of(waiter, held[waiter.owner]))
            self.waiters.remove(chosen)
            self.held[chosen.owner], self.total = held[chosen.owner] + 1, self.total + 1
            chosen.end(granted=True)


def fair_slots(count: int, per_owner: int, waiting_per_owner: int) -> FairShare:
    """Return slots of which each owner may occupy some, and for which it may have some waiting calls."""

    def excess(waiters: Sequence[Waiter]) -> Waiter | None:
        newest = waiters[-1]
        waiting = sum(waiter.owner == newest.owner for waiter in waiters)
        return newest if waiting > waiting_per_owner else None

    return FairShare(lambda: count, per_owner, excess=excess)
