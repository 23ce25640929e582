"""Circuit breakers: an outage of a service costs one call at a time, whatever the number of its resources.

Calls without an answer are recorded per service and project, in the database. After a few of them in a row
the breaker opens: further calls raise `ServiceUnavailable` at once, except for one probe at a time. The first
answer closes it. The verbs of external types are called through `visit_calls.py`.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Final, NamedTuple

import psycopg

from orchestrator import metrics
from orchestrator.engine.check.outcome import error_text
from orchestrator.engine.check.refusals import PAUSE_SECONDS
from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.logs import logger
from orchestrator.store import circuit_breakers
from orchestrator.store.circuit_breakers import RECOVERED, BreakerState
from orchestrator.store.connections.database import Database

log = logger()

KNOWN_SECONDS: Final = 1.0  # age of a state that is not read again
MAX_KNOWN: Final = 10_000  # services of projects in memory


class _Known(NamedTuple):
    state: BreakerState
    read_at: float


class CircuitBreakers:
    """The circuit breakers, as this process knows them."""

    def __init__(
        self, database: Database, max_seconds: float, *, known_seconds: float = KNOWN_SECONDS
    ) -> None:
        """`max_seconds`: longest pause between two attempts of an operation."""
        self.database, self.max_seconds = database, min(max_seconds, PAUSE_SECONDS)
        self.known_seconds = known_seconds
        self._known: dict[tuple[str, str], _Known] = {}
        self._lock = threading.Lock()

    def state(self, project_id: str, service: str) -> BreakerState:
        """Return the state of a service, read at most `known_seconds` ago."""
        known = self._known.get((project_id, service))
        if known is not None and time.monotonic() - known.read_at < self.known_seconds:
            return known.state
        return self.keep(project_id, service, circuit_breakers.read(self._db(), project_id, service))

    def start_probe(self, project_id: str, service: str) -> bool:
        """Return whether this visit may call an open service."""
        return circuit_breakers.start_probe(self._db(), project_id, service)

    def failed(self, visit: ResourceVisit, service: str, error: Exception) -> None:
        """Record a visit without an answer; a second failure of the same node is reported."""
        project_id, text = visit.stack.project_id, error_text(error)
        state = circuit_breakers.record_failure(self._db(), project_id, service, text, self.max_seconds)
        self.keep(project_id, service, state)
        if state.is_open and state.failures == circuit_breakers.FAILURES_TO_OPEN:
            metrics.count_breaker(service, "opened")
            log.warning("circuit_breaker_opened", service=service, project=project_id, error=text)
        if state.is_open or visit.unreachable_tries:
            self.note(visit, service)

    def note(self, visit: ResourceVisit, service: str) -> None:
        """Report the outage in the events of the visit's stack, once."""
        circuit_breakers.note_stack(self._db(), visit.stack.project_id, service, visit.stack.id)

    def answered(self, visit: ResourceVisit, service: str) -> None:
        """Record a visit with answers only, after failures."""
        project_id = visit.stack.project_id
        if not self.state(project_id, service).failures:
            return
        was_open = circuit_breakers.close(self._db(), project_id, service)
        self.keep(project_id, service, RECOVERED)
        if was_open:
            metrics.count_breaker(service, "closed")
            log.info("circuit_breaker_closed", service=service, project=project_id)

    def keep(self, project_id: str, service: str, state: BreakerState) -> BreakerState:
        """Remember and return a state."""
        with self._lock:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[project_id, service] = _Known(state, time.monotonic())
        return state

    def _db(self) -> psycopg.Connection[Any]:
        return self.database.check_connection(durable=False)
