"""The steps of every request before its view: identifiers, browser, path, caller, project, limits, policy.

Their order reveals the least to a caller without rights: docs/internals/threat-model.md has the same list,
with the reason of each place.
"""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import structlog
from flask import Request, Response, current_app, g, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.exceptions import NotFound as NoSuchPath

from api.dependencies import AppState, app_state
from api.middleware import (
    access_log,
    api_version,
    audit,
    authorization,
    cross_site,
    in_flight,
    signal_fast_path,
    turns,
)
from api.request import signed_notifications
from api.response import errors
from orchestrator import config
from orchestrator.config import Settings
from orchestrator.errors import InvalidRequest
from orchestrator.security.caller import Caller, for_project

REQUEST_ID: Final = "X-Openstack-Request-Id"
UNVERSIONED: Final = frozenset(
    {
        "versions.root",
        "versions.healthcheck",
        "openapi.document",
        "openapi.page",
        "health.live",
        "health.ready",
        "metrics.show",
    }
)
PUBLIC: Final = frozenset({"versions.of_project"})  # shows only the version
SIGNAL: Final = "signals.send"
SIGNED: Final = ("/waitcondition/", "/signal/")


@dataclass(slots=True)
class Arrival:
    """A request on its way to its view."""

    request: Request
    state: AppState
    actor: Caller | None = None  # the authenticated caller; without authentication None
    settings: Settings = field(init=False)
    is_cloud: bool = field(init=False)  # a request for the versioned API
    is_signed_notification: bool = field(init=False)

    def __post_init__(self) -> None:
        """Derive the facts of several steps."""
        self.settings = self.state.dependencies.settings
        self.is_cloud = api_version.versioned() and self.request.endpoint not in PUBLIC
        self.is_signed_notification = self.is_cloud and signed_notifications.is_signed(self.request)

    @property
    def project(self) -> str | None:
        """The project in the path, whose rights decide; None if the view authenticates by a signature."""
        is_open = self.request.endpoint in PUBLIC or self.is_signed_notification
        return None if is_open else (self.request.view_args or {}).get("project_id")

    def count(self, caller: Caller) -> None:
        """Count the request for the rate limits of the caller's project."""
        self.state.rate_limits.take(self.request.environ, caller, signal=self.request.endpoint == SIGNAL)


Step = Callable[[Arrival], None]


def begin_request() -> None:
    """Run the steps of a request in their order."""
    arrival = Arrival(request, app_state())
    for step in REQUEST_STEPS:
        step(arrival)


def end_request(response: Response) -> Response:
    """Complete, log and audit a response."""
    response.headers["x-openstack-request-id"] = g.get("request_id", "")
    access_log.note(request, response)
    audit.record(response)
    return response


def release_guard(_error: BaseException | None) -> None:
    """End the step `guard`."""
    if (guard := g.pop("guard", None)) is not None:
        guard.close()


def identify_request(arrival: Arrival) -> None:
    """Give the request its id, which every log line repeats."""
    g.request_id = f"req-{uuid.uuid4()}"
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(request_id=g.request_id)
    theirs = arrival.request.headers.get(REQUEST_ID, "")
    if re.fullmatch(r"req-[0-9a-f-]{36}", theirs):
        structlog.contextvars.bind_contextvars(global_request_id=theirs)


def require_own_site(arrival: Arrival) -> None:
    """Reject a request that a page of another site caused."""
    cross_site.require_own_site(arrival.request, arrival.settings)


def report_lost_database(arrival: Arrival) -> None:
    """Report a signal whose commit was interrupted; it may be stored."""
    if (lost := arrival.request.environ.get(signal_fast_path.LOST_DATABASE)) is not None:
        raise lost


def require_version(arrival: Arrival) -> None:
    """Reject a path without a project, or with a version where there is none."""
    if api_version.EMPTY_PROJECT in arrival.request.environ:
        raise errors.HttpNotFound("The project in the path is empty: /v1/<project>/…")
    if api_version.versioned() == (arrival.request.endpoint in UNVERSIONED):
        raise NoSuchPath


def answer_options(arrival: Arrival) -> None:
    """Answer OPTIONS with the methods of the path, without authentication."""
    refused = arrival.request.routing_exception
    if arrival.request.method == "OPTIONS" and isinstance(refused, MethodNotAllowed):
        raise refused


def reject_nul(arrival: Arrival) -> None:
    """Reject the character NUL, which PostgreSQL cannot store."""
    if "\0" in arrival.request.path:
        raise NoSuchPath
    if any("\0" in text for name, texts in arrival.request.args.lists() for text in (name, *texts)):
        raise InvalidRequest("A query may not contain the character NUL.")


def authenticate(arrival: Arrival) -> None:
    """Authenticate the caller, unless a signature does, and count the request for its own project."""
    if not arrival.is_cloud or arrival.is_signed_notification or _has_signed_path(arrival.request):
        return
    environ, logins = arrival.request.environ, arrival.state.failed_logins
    with logins.verifying(environ, logins.credentials(environ)):
        arrival.actor = arrival.state.authenticate(environ)
    if arrival.actor is not None:
        arrival.count(arrival.actor)


def _has_signed_path(request: Request) -> bool:
    """Whether a signature authenticates the URL, including requests with an unsupported method."""
    wrong_method = isinstance(request.routing_exception, MethodNotAllowed)
    return request.blueprint == "cfn" or (wrong_method and request.path.startswith(SIGNED))


def require_route(arrival: Arrival) -> None:
    """Reject a path or method that the API does not have; HEAD is none of its methods."""
    if isinstance(arrival.request.routing_exception, HTTPException):
        raise arrival.request.routing_exception
    if arrival.request.method == "HEAD" and api_version.versioned():
        adapter = current_app.url_map.bind_to_environ(arrival.request.environ)
        raise MethodNotAllowed(list(adapter.allowed_methods()))


def require_json_type(arrival: Arrival) -> None:
    """Reject a body that a page could send with the credentials of its browser."""
    cross_site.require_json_type(arrival.request, arrival.settings)


def enter_project(arrival: Arrival) -> None:
    """Reject a caller of another project, and count the request for the project of the path."""
    if arrival.project is not None:
        anonymous_admin = arrival.settings.anonymous_admin
        g.caller = for_project(arrival.actor, arrival.project, admin=anonymous_admin)
        arrival.count(g.caller)


def count_in_flight(arrival: Arrival) -> None:
    """Count the request for the limits of concurrent requests, except signals."""
    if arrival.project is not None and arrival.request.endpoint != SIGNAL:
        in_flight.identify(arrival.request.environ, g.caller, arrival.project, may_wait=True)


def begin_turn(arrival: Arrival) -> None:
    """Wait for a turn of the project; small signals need none."""
    request = arrival.request
    is_large = (request.content_length or 0) > config.INLINE_BODY_SIZE
    if arrival.project is not None and (request.endpoint != SIGNAL or is_large):
        turns.begin(request.environ, arrival.project)


def authorize(arrival: Arrival) -> None:
    """Reject a caller whom the policy does not allow the view."""
    if arrival.project is not None:
        authorization.enforce()


def guard(arrival: Arrival) -> None:
    """Reject a request that has hung the API; name any other for the watchdog until its end."""
    if arrival.project is not None:
        g.guard = contextlib.ExitStack()
        g.guard.enter_context(arrival.state.hung_requests.guarding(arrival.request))


REQUEST_STEPS: Final[tuple[Step, ...]] = (
    identify_request,
    require_own_site,
    report_lost_database,
    require_version,
    answer_options,
    reject_nul,
    authenticate,
    require_route,
    require_json_type,
    enter_project,
    count_in_flight,
    begin_turn,
    authorize,
    guard,
)
