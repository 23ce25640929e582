"""The calls of a type during a visit, behind the circuit breakers of the services that they call.

    with VisitCalls(type_, visit, breakers) as calls:
        seen = calls.run(type_.observe, ctx, physical_id)

After an outage an absence is in doubt: it counts when a later visit observes it as well (adr/0023).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any, Final, ParamSpec, TypeVar

from orchestrator.clients.provider_calls import ProviderCalls
from orchestrator.engine.check.absence import AbsenceInDoubt, reports_absence
from orchestrator.engine.check.outcome import MAX_CHECK_RETRIES
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
from orchestrator.operations.runtime.circuit_breaker import CircuitBreakers
from orchestrator.resources.base import Context, Observation, ResourceType
from orchestrator.resources.openstack.connection import openstack
from orchestrator.store.connections.database import UNREACHABLE

P = ParamSpec("P")
R = TypeVar("R")

# Verbs that change an existing object. Without an answer, they may still be carried out (adr/0025).
CHANGES: Final = frozenset(
    {"update", "suspend", "resume", "cancel", "recover", "advance", "release", "reclaim"}
)


class VisitCalls:
    """The calls of a visit, or of an observation. A local type has no breakers: they are called directly.

    At the end of the body the answers are recorded.
    """

    def __init__(
        self,
        type_: ResourceType,
        visit: ResourceVisit,
        breakers: CircuitBreakers | None,
        *,
        always: bool | None = None,
        doubts: bool = True,
    ) -> None:
        """`always`: call even while the breaker is open; by default in the last attempt of a CHECK: a
        resource is not reported as unreachable because of others. `doubts`: an absence after an outage is no
        result of a verb, unless the last visit of the node has observed it too.
        """
        self.provider = ProviderCalls()  # in the contexts of the verbs
        self._breakers, self._visit, self._doubts = breakers, visit, doubts
        last_check = visit.act == "CHECK" and visit.unreachable_tries >= MAX_CHECK_RETRIES
        self._always = last_check if always is None else always
        self._service = type_.service or type_.name
        self._called = self._permitted = False
        self._failures: dict[str, Exception] = {}  # by the service that gave no answer
        self._confirms = visit.absent
        self._first: Callable[[], Any] | None = None  # in place of the first observation
        self.unanswered = False  # a change had no answer
        self.absent = visit.absent  # observed after an outage; the object was not seen since

    def __enter__(self) -> VisitCalls:
        """Begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Record the answers, unless our own database is away."""
        if error is None or (isinstance(error, Exception) and not isinstance(error, UNREACHABLE)):
            self._finish()

    def run(self, verb: Callable[P, R], *args: P.args, **named: P.kwargs) -> R:
        """Call a verb of the type.

        Raises:
            ServiceUnavailable: the breaker is open.
            AbsenceInDoubt: an object does not exist, after an outage.
        """
        if self._breakers is None:
            return verb(*args, **named)
        called_before = self._called
        self.permit()
        self._called, self.provider.unknown_object, name = True, False, verb.__name__
        try:
            if name == "observe" and self._first is not None:
                first, self._first = self._first, None
                result: R = self.record(first)
            else:
                result = self.record(verb, *args, **named)
        except AwaitingBudget:  # no call
            self._called = called_before
            raise
        except UNANSWERED_ERRORS:
            self.unanswered |= name in CHANGES
            raise
        except ProviderNotFound as error:
            self._judge_absence(absent=True, cause=error)
            raise
        absent = reports_absence(name, result, unknown_object=self.provider.unknown_object)
        if absent is not None and not (absent and name == "find" and self._all_refused):
            self._judge_absence(absent=absent)
        return result

    def answer(self, observe: Callable[[], Observation]) -> None:
        """Let `observe` answer the first observation: the object was observed before the visit."""
        self._first = observe

    def record(self, call: Callable[P, R], *args: P.args, **named: P.kwargs) -> R:
        """Call a function that is no verb, such as a look-up; record a service that gives no answer."""
        try:
            return call(*args, **named)
        except (AwaitingBudget, ProviderInUse, ProviderQuotaExceeded):  # no call, or an answer
            raise
        except UNREACHABLE_ERRORS as error:
            self._failures[getattr(error, "service", "") or self._service] = error
            raise

    @contextmanager
    def reserved(self, ctx: Context) -> Iterator[None]:
        """Reserve a place and a connection for the request of a create, during the body. Reserve, record the
        start, send: a create that is recorded is not refused for lack of capacity.

        Raises:
            ServiceUnavailable: the breaker is open.
            ProviderBusy: the service has no place, or there is no connection.
        """
        self.permit()
        with ExitStack() as reservation:
            if ctx.cloud is not None:
                self.record(reservation.enter_context, openstack(ctx).reserved(self._service))
            yield

    def permit(self) -> None:
        """Refuse the first call while the breaker is open.

        Raises:
            ServiceUnavailable: it is open, and another visit probes the service or has just done so.
        """
        if self._breakers is None or self._always or self._called or self._permitted:
            return
        project_id, service = self._visit.stack.project_id, self._service
        state = self._breakers.state(project_id, service)
        if state.is_open and (state.blocked or not self._breakers.start_probe(project_id, service)):
            self._breakers.note(self._visit, service)
            raise ServiceUnavailable(service, state.last_error)
        self._permitted = True

    @property
    def _services(self) -> set[str]:
        return {self._service, *self.provider.services}

    def _finish(self) -> None:
        """Record the answers of the visit. It counts as a success only if every call succeeded: a service may
        still read while it refuses every create. A failure counts for the service that gave no answer.
        """
        if self._breakers is None:
            return
        for service, error in self._failures.items():
            self._breakers.failed(self._visit, service, error)
        if self._failures:
            return
        for service in self._services if self._called else self.provider.services:
            self._breakers.answered(self._visit, service)

    @property
    def _after_outage(self) -> bool:
        """Whether a service of this visit gave no answer a short time ago. An internal error is an answer."""
        if any(not isinstance(error, ProviderFailed) for error in self._failures.values()):
            return True
        assert self._breakers is not None
        project_id = self._visit.stack.project_id
        return bool(self._visit.unreachable_tries) or any(
            self._breakers.state(project_id, service).after_outage for service in sorted(self._services)
        )

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
        elif self._doubts and self._after_outage:
            self.absent = True
            if self._failures or not self._confirms:
                raise AbsenceInDoubt(self._service) from cause
