"""The parts of a worker that the simulator controls: interruptions between statements, and time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

from psycopg.pq import TransactionStatus

from orchestrator.operations.maintenance import stack_ends
from orchestrator.operations.maintenance.jobs import maintenance_jobs
from orchestrator.operations.runtime.dispatch_window import Windows
from orchestrator.operations.runtime.lease_keeper import HeldLeases, Leases
from orchestrator.operations.runtime.maintenance_job import MaintenanceJob
from orchestrator.store.connections.database import Database
from orchestrator.store.connections.prepared import PreparedConnection


class Moments(Protocol):
    """The receiver of every moment between two statements."""

    def moment(self, where: str) -> None:
        """Let other workers continue, or end the worker there."""


class SimulatedDatabase(Database):
    """A database that reports the moments of its worker to the simulator."""

    simulator: Moments

    def connect(self, **options: Any) -> Any:
        connection = super().connect(**options)
        transaction = connection.transaction

        def idle() -> bool:
            return bool(connection.info.transaction_status == TransactionStatus.IDLE)

        def watched(run: Callable[..., Any]) -> Callable[..., Any]:
            def watching(*args: Any, **rest: Any) -> Any:
                if not idle():
                    return run(*args, **rest)
                self.simulator.moment("before")
                answer = run(*args, **rest)
                self.simulator.moment("after")
                return answer

            return watching

        @contextmanager
        def in_transaction(*args: Any, **rest: Any) -> Iterator[Any]:
            outermost = idle()
            if outermost:
                self.simulator.moment("before")
            with transaction(*args, **rest) as opened:
                yield opened
            if outermost:
                self.simulator.moment("after")

        connection.execute, connection.transaction = watched(connection.execute), in_transaction  # type: ignore[method-assign]
        if isinstance(connection, PreparedConnection):
            connection.fetched = watched(connection.fetched)  # type: ignore[method-assign]
        return connection


class HeldByTheTest(Leases):
    """Leases without renewal: they expire when the test decides."""

    @contextmanager
    def keep(self, held: HeldLeases) -> Iterator[None]:
        yield


class TimelessWindows(Windows):
    """Windows that do not go by the clock: the same seed does the same."""

    def needs_refill(self, root_id: int) -> bool:
        root = self._root(root_id)
        return root.may_have_more and root.since >= root.each


def timeless_jobs() -> Sequence[MaintenanceJob]:
    """Return the jobs of a sweep that counts no progress, never audits, and repairs at once."""
    return [
        replace(job, every=0.0)
        for job in maintenance_jobs()
        if job.due is not None and job is not stack_ends.COUNTED
    ]
