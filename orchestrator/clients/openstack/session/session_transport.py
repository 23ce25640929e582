"""The transport of real clouds: requests with the token of a session of keystoneauth1.

The session finds its token; the requests themselves are sent directly, over connections that all threads of
the process share.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Final
from weakref import WeakKeyDictionary

import orjson

from orchestrator.clients.deadline import Deadline
from orchestrator.clients.http_connection import HttpAnswer, TooLarge
from orchestrator.clients.keystone.deadline_adapter import DeadlineAdapter, call_deadline
from orchestrator.clients.openstack.errors import ReportedBy, exchange_failures
from orchestrator.clients.openstack.session.budget import Budgets
from orchestrator.clients.openstack.session.endpoints import Endpoint, find_endpoint
from orchestrator.clients.openstack.session.measurement import measured
from orchestrator.clients.openstack.session.shared_lists import SharedLists
from orchestrator.clients.openstack.session.tokens import Tokens
from orchestrator.clients.openstack.transport import Answer, Request
from orchestrator.clients.provider_calls import Reservation
from orchestrator.errors import ProviderBusy, ProviderError

USER_AGENT: Final = "stack-orchestrator"
UNAUTHORIZED: Final = 401
CONCURRENCY: Final = 16  # requests at a time to a service of a project, at most: the number in use adapts
# The name of a service in the header of its microversion, where it differs from the type.
MICROVERSION_NAMES: Final = {"block-storage": "volume"}


@cache
def budgets() -> Budgets:
    """Return the budgets of this process."""
    return Budgets(CONCURRENCY)


_connections = DeadlineAdapter(seconds=60.0)  # each request has its own deadline
_tokens: WeakKeyDictionary[Any, Tokens] = WeakKeyDictionary()
_lock = threading.Lock()


class SessionTransport:
    """Sends requests with the token of a session, to the endpoints in a region."""

    def __init__(self, session: Any, region: str) -> None:
        """Send no request yet."""
        self._session, self._region = session, region
        session.user_agent = USER_AGENT
        with _lock:
            self._tokens = _tokens.setdefault(session, Tokens(session))
        self._endpoints: dict[str, tuple[object, Endpoint]] = {}  # with the catalog that names them
        self.lists = SharedLists()

    @property
    def project_id(self) -> str:
        """The project of the credential, "" before the first request."""
        return self._tokens.project_id

    def send(self, request: Request, seconds: float) -> Answer:
        """Return the answer of a service. A token that the service refuses is renewed once."""
        deadline = Deadline(seconds)
        with call_deadline(deadline):
            token = self._tokens.current(deadline)
            endpoint = self._endpoint(request.service, request.service_type, deadline)
            answer = self._exchange(request, endpoint, token, deadline)
            if answer.status == UNAUTHORIZED:
                token = self._tokens.renewed(token, deadline)
                if not isinstance(request.content, bytes | None):
                    raise ProviderBusy(f"{request.service} refused an expired token", "Unauthorized")
                answer = self._exchange(request, endpoint, token, deadline)
        if 300 <= answer.status < 400:
            place = answer.headers.get("location", "")
            raise ProviderError(
                f"{request.service} redirects to {place}: correct its endpoint", "BadEndpoint"
            )
        return answer

    @contextmanager
    def reserved(self, service: str, service_type: str, owner: str, seconds: float) -> Iterator[Reservation]:
        """Reserve a place for the requests of a create (`Budget.reserved`) and a connection for the first,
        during the body.

        Raises:
            AwaitingBudget: there is no place.
            ProviderUnreachable: Keystone or the service does not respond.
            ProviderError: the credentials are not valid, or the service has no endpoint.
        """
        deadline = Deadline(seconds)
        with ReportedBy(service), call_deadline(deadline):
            self._tokens.current(deadline)
            url = self._endpoint(service, service_type, deadline).url
        budget = budgets().of(service, self._region, self._tokens.project_id)
        with budget.reserved(owner):
            with ReportedBy(service), exchange_failures(service):
                connection = _connections.connected(
                    url, deadline, verify=self._session.verify, cert=self._session.cert
                )
            with connection:
                yield Reservation(budget, connection)

    def versions(self, service: str, service_type: str, seconds: float) -> tuple[str, str]:
        """Return the lowest and the highest microversion of a service."""
        deadline = Deadline(seconds)
        with call_deadline(deadline):
            self._tokens.current(deadline)
            endpoint = self._endpoint(service, service_type, deadline)
        return endpoint.lowest, endpoint.highest

    def url(self, service: str, service_type: str, seconds: float) -> str:
        """Return the URL of a service's major version."""
        deadline = Deadline(seconds)
        with call_deadline(deadline):
            self._tokens.current(deadline)
            return self._endpoint(service, service_type, deadline).url

    def owner(self, seconds: float) -> tuple[str, str]:
        """Return the names of the project and of the user of the credential."""
        deadline = Deadline(seconds)
        with call_deadline(deadline):
            self._tokens.current(deadline)
        return self._tokens.owner

    def _endpoint(self, service: str, service_type: str, deadline: Deadline) -> Endpoint:
        """Return the endpoint of a service. The catalog is read once for each token."""
        contents = self._tokens.contents
        known, endpoint = self._endpoints.get(service_type, (None, None))
        if endpoint is None or known is not contents or endpoint.until < time.monotonic():
            endpoint = find_endpoint(self._session, self._region, service, service_type, deadline)
            self._endpoints[service_type] = contents, endpoint
        return endpoint

    def _exchange(self, request: Request, endpoint: Endpoint, token: str, deadline: Deadline) -> Answer:
        """Send a request in a place of the service's budget."""
        budget = budgets().of(request.service, self._region, self._tokens.project_id)
        reservation = request.reservation
        with budget.place(
            request.owner,
            changes=request.changes,
            kind=request.kind,
            seconds=deadline.remaining(),
            background=request.background,
            reserved=reservation is not None and reservation.budget is budget,
        ) as place:
            return measured(request, place, lambda: self._sent(request, endpoint, token, deadline))

    def _sent(self, request: Request, endpoint: Endpoint, token: str, deadline: Deadline) -> Answer:
        headers, content = _head(request, token), request.content
        if request.body is not None:
            content = orjson.dumps(request.body)
        if isinstance(content, bytes):
            headers["Content-Length"] = str(len(content))
        elif content is not None:
            headers["Transfer-Encoding"] = "chunked"
        with exchange_failures(request.service):
            try:
                answer = _connections.exchange(
                    request.method,
                    f"{endpoint.url}{request.target}",
                    headers.items(),
                    content,
                    deadline,
                    verify=self._session.verify,
                    cert=self._session.cert,
                    held=None if request.reservation is None else request.reservation.connection,
                )
            except TooLarge as error:
                raise ProviderError(f"{request.service}: {error}", "UnexpectedAnswer") from error
        return Answer(answer.status, _fields(answer), answer.content)


def _head(request: Request, token: str) -> dict[str, str]:
    """Return the headers of a request; those that the caller names apply."""
    headers = {
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": USER_AGENT,
        "X-Auth-Token": token,
    }
    if request.body is not None:
        headers["Content-Type"] = "application/json"
    if request.microversion:
        name = MICROVERSION_NAMES.get(request.service_type, request.service_type)
        headers["OpenStack-API-Version"] = f"{name} {request.microversion}"
    return headers | dict(request.headers)


def _fields(answer: HttpAnswer) -> Mapping[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in answer.headers}
