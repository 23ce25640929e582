"""Renew leases while a provider is slow: a thread with its own connection renews the leases of long visits.

A visit shorter than a third of the lease costs a dictionary entry and no statement.
"""

from __future__ import annotations

import itertools
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg

from orchestrator.logs import logger
from orchestrator.store.connections.database import Database
from orchestrator.store.nodes import repository

HeldLeases = Sequence[tuple[int, int | None, int]]  # node, resource, lease

LEASE_SECONDS = 30.0  # of a visit without renewal: the claim of a dead worker expires after this time

log = logger()


def new_lease() -> int:
    """Return a random 63-bit number that identifies a claim."""
    return secrets.randbits(63)


class Leases:
    """The leases that this process holds."""

    def __init__(self, database: Database, seconds: float) -> None:
        """Renew leases to `seconds` from now, at every third of that period."""
        self.database, self.seconds = database, seconds
        self._leases: dict[int, tuple[float, HeldLeases]] = {}
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    @contextmanager
    def keep(self, leases: HeldLeases) -> Iterator[None]:
        """Renew these leases until the block ends."""
        number = next(self._numbers)
        self._leases[number] = (time.monotonic(), leases)
        if self._thread is None:
            self._start()
        try:
            yield
        finally:
            self._leases.pop(number, None)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="lease-renewal", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        pause = threading.Event()
        connection = None
        while not pause.wait(self.seconds / 3):
            before = time.monotonic() - self.seconds / 3
            old = [
                lease
                for started, leases in list(self._leases.values())
                if started < before
                for lease in leases
            ]
            if not old:
                continue
            try:
                if connection is None or connection.closed:
                    connection = self.database.connect(hot=True, name="orchestrator-leases")
                repository.renew(connection, old, self.seconds)
            except psycopg.Error as error:
                log.warning("lease_renewal_failed", error=str(error))
                connection = None
