"""Circuit breakers: an outage of a service costs one call at a time, whatever the number of its resources.

The verbs of an external type are called through a `GuardedType`. It records calls without an answer per
service and project, in the database. After a few of them in a row the breaker opens: further calls raise
`ServiceUnavailable` at once, except for one probe at a time. The first answer closes it.

After an outage an absence is in doubt: it counts when a later visit observes it as well (adr/0023).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from types import TracebackType
from typing import Any, Final, NamedTuple, cast

import psycopg

from orchestrator import metrics
from orchestrator.clients.contacts import Contacts
from orchestrator.engine.check.absence import AbsenceInDoubt, reports_absence
from orchestrator.engine.check.outcome import MAX_CHECK_RETRIES, error_text
from orchestrator.engine.check.refusals import PAUSE_SECONDS
from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.errors import (
    UNANSWERED_ERRORS,
    UNREACHABLE_ERRORS,
    AwaitingBudget,
    ProviderError,
    ProviderFailed,
    ProviderInUse,
    ProviderNotFound,
    ProviderQuotaExceeded,
    ServiceUnavailable,
)
from orchestrator.logs import logger
from orchestrator.resources.base import Context, ResourceType
from orchestrator.store import circuit_breakers
from orchestrator.store.circuit_breakers import RECOVERED, BreakerState
from orchestrator.store.connections.database import Database

log = logger()

# The verbs that call the provider during a visit.
VERBS: Final = frozenset(
    {
        "create",
        "find",
        "observe",
        "update",
        "delete",
        "suspend",
        "resume",
        "check",
        "snapshot",
        "must_replace",
        "is_healthy_after_failure",
        "cancel",
        "recover",
        "advance",
        "release",
        "reclaim",
        "read_attributes",
    }
)
# Those that change an existing object. Without an answer, they may still be carried out (adr/0025).
CHANGES: Final = frozenset(
    {"update", "suspend", "resume", "cancel", "recover", "advance", "release", "reclaim"}
)
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

    def guard(self, resource_type: ResourceType, visit: ResourceVisit) -> ResourceType:
        """Return a type whose verbs go through the breaker of its service. The last attempt of a CHECK is
        always made: a resource is not reported as unreachable because of others.
        """
        last = visit.act == "CHECK" and visit.unreachable_tries >= MAX_CHECK_RETRIES
        return cast("ResourceType", GuardedType(resource_type, self, visit, always=last))

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


class GuardedType:
    """A type whose verbs go through a circuit breaker during one visit; everything else is the type's."""

    def __init__(
        self,
        resource_type: ResourceType,
        breakers: CircuitBreakers,
        visit: ResourceVisit,
        *,
        always: bool = False,
        doubts: bool = True,
    ) -> None:
        """Guard the calls of this visit; `always`: call even while the breaker is open. `doubts`: an absence
        after an outage is no result of a verb, unless the last visit of the node has observed it too.
        """
        self._type, self._breakers, self._visit, self._always = resource_type, breakers, visit, always
        self._service = resource_type.service or resource_type.name
        self._called = self._permitted = False
        self._contacts: set[str] = set()
        self._failures: dict[str, Exception] = {}  # by the service that gave no answer
        self._doubts, self._confirms = doubts, visit.absent
        self.unanswered = False  # a change had no answer
        self.absent = visit.absent  # observed after an outage; the object was not seen since

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the type, and keep it for the rest of the visit; verbs are guarded, and
        look-ups of names are recorded.
        """
        value = getattr(self._type, name)
        if name == "read_properties":
            value = partial(self.record, Contacts(), value)
        elif name in VERBS:
            value = self._guarded(name, value)
        setattr(self, name, value)
        return value

    def admit(self, ctx: Context) -> GuardedAdmission:
        """Return the type's own admission. Entered, it refuses a create while the breaker is open: its start
        is then not recorded.
        """
        return GuardedAdmission(self, self._type, ctx)

    def finish(self) -> None:
        """Record the answers of the visit. A visit is an answer if all its calls are: a service may still
        read while it refuses every create. A failure counts for the service that gave no answer.
        """
        for service, error in self._failures.items():
            self._breakers.failed(self._visit, service, error)
        if self._failures:
            return
        for service in {self._service, *self._contacts} if self._called else self._contacts:
            self._breakers.answered(self._visit, service)

    @property
    def after_outage(self) -> bool:
        """Whether a service of this visit gave no answer a short time ago. An internal error is an answer."""
        if any(not isinstance(error, ProviderFailed) for error in self._failures.values()):
            return True
        project_id, services = self._visit.stack.project_id, {self._service, *self._contacts}
        return bool(self._visit.unreachable_tries) or any(
            self._breakers.state(project_id, service).after_outage for service in sorted(services)
        )

    def record(self, contacts: Contacts, call: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Call a function of the type, and record the services that it calls."""
        try:
            with contacts:
                return call(*args, **named)
        except (AwaitingBudget, ProviderInUse, ProviderQuotaExceeded):  # no call, or an answer
            raise
        except UNREACHABLE_ERRORS as error:
            self._failures[getattr(error, "service", "") or self._service] = error
            raise
        finally:
            self._contacts |= contacts.services

    def _guarded(self, name: str, verb: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            called_before, contacts = self._called, Contacts()
            self.permit()
            self._called = True
            try:
                result = self.record(contacts, verb, *args, **named)
            except AwaitingBudget:  # no call
                self._called = called_before
                raise
            except UNANSWERED_ERRORS:
                self.unanswered |= name in CHANGES
                raise
            except ProviderNotFound as error:
                self._judge_absence(absent=True, cause=error)
                raise
            absent = reports_absence(name, result, unknown_object=contacts.unknown_object)
            if absent is not None and not (absent and name == "find" and self._all_refused):
                self._judge_absence(absent=absent)
            return result

        return call

    @property
    def _all_refused(self) -> bool:
        """Whether every create of the resource was refused, before this visit: there is no object."""
        return self._visit.resource.lost_seconds is None

    def _judge_absence(self, *, absent: bool, cause: ProviderError | None = None) -> None:
        """Take note that an object exists or not.

        Raises:
            AbsenceInDoubt: it does not exist, after an outage, and the last visit has not observed that.
        """
        if not absent:
            self._confirms = self.absent = False
        elif self._doubts and self.after_outage:
            self.absent = True
            if self._failures or not self._confirms:
                raise AbsenceInDoubt(self._service) from cause

    def permit(self) -> None:
        """Refuse the first call while the breaker is open.

        Raises:
            ServiceUnavailable: it is open, and another visit probes the service or has just done so.
        """
        if self._always or self._called or self._permitted:
            return
        project_id, service = self._visit.stack.project_id, self._service
        state = self._breakers.state(project_id, service)
        if state.is_open and (state.blocked or not self._breakers.start_probe(project_id, service)):
            self._breakers.note(self._visit, service)
            raise ServiceUnavailable(service, state.last_error)
        self._permitted = True


class GuardedAdmission:
    """The admission of a type, behind its circuit breaker."""

    _admission: AbstractContextManager[None]

    def __init__(self, guarded: GuardedType, type_: ResourceType, ctx: Context) -> None:
        """Enter nothing yet."""
        self._guarded, self._type, self._ctx = guarded, type_, ctx

    def __enter__(self) -> None:
        """Enter the admission.

        Raises:
            ServiceUnavailable: the breaker is open.
            ProviderBusy: the type does not admit the create.
        """
        self._guarded.permit()
        self._admission = self._type.admit(self._ctx)
        self._guarded.record(Contacts(), self._admission.__enter__)

    def __exit__(
        self,
        type_: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        """Leave the admission."""
        return self._admission.__exit__(type_, error, traceback)
