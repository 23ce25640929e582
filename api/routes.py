"""Routes of the application and the steps common to all requests: version, request id, caller, project.

`assemble` connects existing parts; `app.py` creates them.
"""

from __future__ import annotations

import re
import uuid
from typing import Final, cast

import structlog
from flask import Flask, Response, current_app, g, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.exceptions import NotFound as NoSuchPath

from api.cloudformation import endpoint
from api.console.app import create_console
from api.console.mount import Mounted
from api.dependencies import Dependencies, dependencies
from api.middleware import (
    access_log,
    api_version,
    audit,
    authorization,
    cross_site,
    in_flight,
    local_requests,
    proxies,
    response_headers,
    signal_fast_path,
    turns,
)
from api.middleware.failed_logins import FailedLogins
from api.middleware.rate_limits import RateLimits
from api.monitoring import health, metrics
from api.openapi.views import openapi
from api.request import signed_notifications, stack_lookup
from api.response import errors
from api.v1 import (
    adoption,
    diagnosis,
    events,
    graph,
    observation_policies,
    observations,
    outputs,
    overview,
    pictures,
    previews,
    repairs,
    resource_types,
    resources,
    revisions,
    signals,
    snapshots,
    software_configs,
    software_deployments,
    stack_documents,
    stack_maps,
    stacks,
    templates,
    timelines,
    webhooks,
)
from orchestrator.errors import InvalidRequest
from orchestrator.operations.quotas import CachedQuotas
from orchestrator.security.authenticators import Authenticator, authenticator
from orchestrator.security.caller import Caller, for_project
from orchestrator.security.cfn_callers import CfnCallers

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
BLUEPRINTS: Final = (
    api_version.versions,
    previews.previews,
    stacks.stacks,
    stack_lookup.lookup,
    stack_documents.documents,
    outputs.outputs,
    resources.resources,
    signals.signals,
    events.events,
    graph.graph,
    revisions.revisions,
    snapshots.snapshots,
    adoption.adoption,
    software_configs.software_configs,
    software_deployments.software_deployments,
    templates.templates,
    resource_types.catalogue,
    diagnosis.why,
    overview.overview,
    pictures.pictures,
    stack_maps.stack_maps,
    timelines.timelines,
    webhooks.webhooks,
    observation_policies.observation_policies,
    observations.observations,
    repairs.repairs,
    endpoint.cfn,
    openapi,
    metrics.metrics,
    health.health,
)


def assemble(deps: Dependencies) -> Flask:
    """Return the application.

    Raises:
        Misconfigured: the authentication settings are incomplete.
    """
    app = Flask("api", static_folder=None)
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False  # response/errors.py answers OPTIONS for every known path
    app.url_map.merge_slashes = False
    app.extensions["dependencies"] = deps
    app.extensions["authenticator"] = authenticator(deps.settings, deps.database)
    app.extensions["query_callers"] = CfnCallers(deps.settings, deps.database, deps.cipher)
    _add_limits(app, deps)
    errors.register(app)
    app.before_request(_begin_request)
    app.after_request(_end_request)
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint)
    app.wsgi_app = api_version.Versioned(app.wsgi_app)  # type: ignore[method-assign]
    app.wsgi_app = signal_fast_path.SignalFastPath(app, app.wsgi_app)  # type: ignore[method-assign]
    app.wsgi_app = Mounted(app.wsgi_app, create_console(app, app.wsgi_app).wsgi_app)  # type: ignore[method-assign]
    app.wsgi_app = turns.Turns(app.wsgi_app)  # type: ignore[method-assign]
    app.wsgi_app = in_flight.InFlight(app.wsgi_app, deps.settings)  # type: ignore[method-assign]
    if deps.settings.auth == "none" or deps.settings.simulated_cloud:
        app.wsgi_app = local_requests.LocalRequests(app.wsgi_app, deps.settings)  # type: ignore[method-assign]
    app.wsgi_app = response_headers.ResponseHeaders(app.wsgi_app)  # type: ignore[method-assign]
    app.wsgi_app = access_log.Logged(app.wsgi_app)  # type: ignore[method-assign]
    app.wsgi_app = proxies.TrustedProxies(app.wsgi_app, deps.settings)  # type: ignore[method-assign]
    return app


def _add_limits(app: Flask, deps: Dependencies) -> None:
    """Add the limits that this process counts."""
    app.extensions["quotas"] = quotas = CachedQuotas(deps.database, deps.settings)
    app.extensions["failed_logins"] = FailedLogins(deps.settings)
    app.extensions["rate_limits"] = RateLimits(deps.settings, quotas)


def _begin_request() -> None:
    """Authenticate the caller and check the path, in the order that reveals the least."""
    g.request_id = f"req-{uuid.uuid4()}"
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(request_id=g.request_id)
    theirs = request.headers.get(REQUEST_ID, "")
    if re.fullmatch(r"req-[0-9a-f-]{36}", theirs):
        structlog.contextvars.bind_contextvars(global_request_id=theirs)
    settings = dependencies().settings
    cross_site.require_own_site(request, settings)
    if (lost := request.environ.get(signal_fast_path.LOST_DATABASE)) is not None:
        raise lost
    if api_version.EMPTY_PROJECT in request.environ:
        raise errors.HttpNotFound("The project in the path is empty: /v1/<project>/…")
    if api_version.versioned() == (request.endpoint in UNVERSIONED):
        raise NoSuchPath
    if request.method == "OPTIONS" and isinstance(request.routing_exception, MethodNotAllowed):
        raise request.routing_exception
    _reject_nul()
    actor = None
    is_cloud = api_version.versioned() and request.endpoint not in PUBLIC
    signed = is_cloud and signed_notifications.is_signed(request)
    if is_cloud and not (signed or _is_signed()):
        actor = _authenticate()
        if actor is not None:
            _count(actor)
    if isinstance(request.routing_exception, HTTPException):
        raise request.routing_exception
    if request.method == "HEAD" and api_version.versioned():
        adapter = current_app.url_map.bind_to_environ(request.environ)
        raise MethodNotAllowed(list(adapter.allowed_methods()))
    cross_site.require_json_type(request, settings)
    project_id = (request.view_args or {}).get("project_id")
    if project_id is not None and request.endpoint not in PUBLIC and not signed:
        g.caller = for_project(actor, project_id, admin=dependencies().settings.anonymous_admin)
        _count(g.caller)
        if request.endpoint != SIGNAL:
            in_flight.identify(request.environ, g.caller, project_id, may_wait=True)
        if request.endpoint != SIGNAL or (request.content_length or 0) > settings.inline_body_size:
            turns.begin(request.environ, project_id)
        authorization.enforce()


def _authenticate() -> Caller | None:
    """Return the caller of the request, None without authentication."""
    logins = cast(FailedLogins, current_app.extensions["failed_logins"])
    with logins.verifying(request.environ, logins.credentials(request.environ)):
        return cast(Authenticator, current_app.extensions["authenticator"])(request.environ)


def _count(actor: Caller) -> None:
    """Count a request for the rate limits of its project."""
    rates = cast(RateLimits, current_app.extensions["rate_limits"])
    rates.take(request.environ, actor, signal=request.endpoint == SIGNAL)


def _is_signed() -> bool:
    """Whether a signature authenticates the URL, including requests with an unsupported method."""
    wrong_method = isinstance(request.routing_exception, MethodNotAllowed)
    return request.blueprint == "cfn" or (wrong_method and request.path.startswith(SIGNED))


def _reject_nul() -> None:
    """Reject the character NUL, which PostgreSQL cannot store."""
    if "\0" in request.path:
        raise NoSuchPath
    if any("\0" in text for name, texts in request.args.lists() for text in (name, *texts)):
        raise InvalidRequest("A query may not contain the character NUL.")


def _end_request(response: Response) -> Response:
    response.headers["x-openstack-request-id"] = g.get("request_id", "")
    access_log.note(request, response)
    audit.record(response)
    return response
