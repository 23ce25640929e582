"""The budget of a service: how many requests this process sends to it at a time, and whose turn is next.

There is a budget for each service, region and project. Free places go to requests that change something
before those that only read, and to those of the continuous observation last; among equal requests, to the
tree of stacks with the fewest requests in progress. A request of a stack waits a few seconds in its thread;
then, and if too many threads wait, it is refused with
`AwaitingBudget` and its resource is visited again later, so that slow services do not occupy all threads of a
worker. A request without a stack, which a user waits for, waits until shortly before its deadline.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple

from orchestrator.clients.openstack.session.concurrency_limit import ConcurrencyLimit
from orchestrator.errors import AwaitingBudget
from orchestrator.fair_share import FairShare, NoFreeSlot, Waiter

WAIT_SECONDS: Final = 4.0  # of a thread for its turn
WAIT_SHARE: Final = 0.3  # of the deadline, if that is less
USER_SHARE: Final = 0.7  # of the deadline, without a stack
MAX_WAITING: Final = 8  # threads per budget: half of a worker's
AGED_SECONDS: Final = 2.0  # after which a request that reads is equal to one that changes something
MAX_RETRY_SECONDS: Final = 8.0  # until an operation that was refused before its begin is tried again
SMOOTHING: Final = 0.2  # share of the newest request in the average duration
RETRY_SECONDS: Final = (0.5, 2.0)  # until a refused request is tried again


class _Facts(NamedTuple):
    """What ranks a request."""

    changes: bool
    background: bool = False


def _is_impatient(waiter: Waiter) -> bool:
    """Whether it may be refused for another: nobody waits for its answer."""
    return bool(waiter.owner) and not waiter.facts.background


def _rank(waiter: Waiter, held: int) -> tuple[bool, bool, int, float]:
    reads = not waiter.facts.changes and time.monotonic() - waiter.since < AGED_SECONDS
    return waiter.facts.background, reads, held, waiter.since


class Budget:
    """The requests to a service in progress, and those that wait for their turn."""

    def __init__(self, service: str, limit: ConcurrencyLimit) -> None:
        """`service` is named in the reason of a wait."""
        self._service, self._limit = service, limit
        self._places = FairShare(lambda: limit.value, weight_of=_rank, excess=self._excess)
        self._seconds = 0.0  # of a request, recent average

    @contextmanager
    def reserved(self, owner: str) -> Iterator[None]:
        """Occupy a place during the body. Reserve first, then record the start of an operation: a recorded
        operation is never refused. Its requests are sent with `reserved`.

        Raises:
            AwaitingBudget: there is none; the operation is not to begin.
        """
        self._require_short_wait(owner)
        self._acquire(owner, WAIT_SECONDS, _Facts(changes=True))
        try:
            yield
        finally:
            self._places.release(owner)

    def _require_short_wait(self, owner: str) -> None:
        """Refuse an operation whose request would probably wait in vain: the requests of the same stack that
        wait already take too long.

        Raises:
            AwaitingBudget: it would.
        """
        places = self._places
        if not places.waiters:
            return
        with places.lock:
            waiting = sum(waiter.owner == owner and _is_impatient(waiter) for waiter in places.waiters)
            expected = (waiting + 1) * self._seconds / self._limit.value if waiting else 0.0
        if expected > WAIT_SECONDS:
            longest = min(expected, MAX_RETRY_SECONDS)
            raise AwaitingBudget(self._service, random.uniform(longest / 2, longest))  # noqa: S311

    @contextmanager
    def place(
        self,
        owner: str,
        *,
        changes: bool,
        kind: str,
        seconds: float,
        background: bool = False,
        reserved: bool = False,
    ) -> Iterator[Place]:
        """Occupy a place during the body, for a stack `owner`, unless one is `reserved`; wait at most a part
        of `seconds`. A request in the `background` is granted a place when no other request waits.

        Raises:
            AwaitingBudget: there is none; nothing was sent.
        """
        if not reserved:
            impatient = owner and not background
            longest = min(WAIT_SECONDS, seconds * WAIT_SHARE) if impatient else seconds * USER_SHARE
            self._acquire(owner, longest, _Facts(changes, background))
        place, begun = Place(), time.monotonic()
        try:
            yield place
        finally:
            with self._places.lock:
                self._record(kind, time.monotonic() - begun, place)
                if reserved:
                    self._places.grant()
                else:
                    self._places.free(owner)

    @property
    def limit(self) -> int:
        """The current number of places."""
        return self._limit.value

    @property
    def waiting(self) -> int:
        """The number of waiting requests."""
        return len(self._places.waiters)

    def _acquire(self, owner: str, seconds: float, facts: _Facts) -> None:
        try:
            self._places.acquire(owner, seconds, facts)
        except NoFreeSlot:
            raise AwaitingBudget(self._service, random.uniform(*RETRY_SECONDS)) from None  # noqa: S311

    def _record(self, kind: str, seconds: float, place: Place) -> None:
        now = time.monotonic()
        if place.busy:
            self._limit.record_busy(now)
        elif not place.failed:
            full = self._places.total >= self._limit.value
            self._limit.record_answer(kind, seconds, full=full, now=now)
            self._seconds += (seconds - self._seconds) * SMOOTHING

    def _excess(self, waiters: Sequence[Waiter]) -> Waiter | None:
        """Return a request of the stack with most of them if too many threads wait: one that reads if
        possible, the newest.
        """
        impatient = [waiter for waiter in waiters if _is_impatient(waiter)]
        if len(impatient) <= MAX_WAITING:
            return None
        load = Counter(waiter.owner for waiter in waiters) + Counter(self._places.held)
        return max(impatient, key=lambda item: (load[item.owner], not item.facts.changes, item.since))


@dataclass(slots=True)
class Place:
    """A place in use: what became of the request."""

    busy: bool = False  # refused for lack of capacity, or not answered
    failed: bool = False  # not sent: says nothing about the speed of the service


class Budgets:
    """The budgets of a process."""

    def __init__(self, most: int) -> None:
        """`most`: places of a budget."""
        self._most = most
        self._budgets: dict[tuple[str, str, str], Budget] = {}
        self._lock = threading.Lock()

    def of(self, service: str, region: str, project_id: str) -> Budget:
        """Return the budget of a service."""
        key = (service, region, project_id)
        with self._lock:
            budget = self._budgets.get(key)
            if budget is None:
                budget = self._budgets[key] = Budget(service, ConcurrencyLimit(self._most))
            return budget
