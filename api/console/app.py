"""The application of the console, and the steps common to all of its requests.

Order: the headers of the browser, the session, the caller, the project. Pages of other projects are 404.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast
from urllib.parse import quote

from flask import Response, g, redirect, request, url_for
from werkzeug.exceptions import NotFound as NoSuchPath

from api.console import assets, authorization, error_pages, formats, session
from api.console.api_client import ApiClient
from api.console.context import console_context, project_of
from api.console.views import actions, field, overview, repairs, resource, revisions, sign_in, stack, stacks
from api.console.views.history import history
from api.console.views.map import stack_map
from api.console.views.timeline import timeline
from api.dependencies import Application, AppState, Wsgi, app_state, dependencies
from api.middleware import access_log, cross_site
from orchestrator.errors import AccessDenied, InvalidRequest, NotFound, Unauthenticated
from orchestrator.security.caller import for_project

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

BLUEPRINTS: Final = (
    sign_in.sign_in,
    assets.files,
    overview.overview,
    stacks.stacks,
    stack.stack,
    resource.resource,
    revisions.revisions,
    actions.actions,
    field.field,
    stack_map,
    timeline,
    history,
    repairs.repairs,
)
PUBLIC: Final = frozenset({"sign_in.form", "sign_in.submit", "sign_in.leave", "assets.file", "sign_in.home"})
POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "same-origin",  # with `no-referrer` the browser would send `Origin: null`
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def create_console(state: AppState, wsgi: Wsgi) -> Application:
    """Return the console over an application of the API, whose calls enter at `wsgi`."""
    console = Application("api.console.app", state, pages="pages")
    console.jinja_env.trim_blocks = console.jinja_env.lstrip_blocks = True
    formats.register(console)
    error_pages.register(console)
    console.context_processor(console_context)
    console.before_request(lambda: _begin_request(wsgi))
    console.after_request(_end_request)
    for blueprint in BLUEPRINTS:
        console.register_blueprint(blueprint)
    return console


def _begin_request(wsgi: Wsgi) -> Response | None:
    """Check the request and authenticate the caller; return a redirect to the sign-in page without one."""
    settings = dependencies().settings
    if request.method not in cross_site.SAFE_METHODS:
        cross_site.require_own_page(request, settings)
    else:
        cross_site.require_own_site(request, settings)
    if request.routing_exception is not None or request.endpoint is None:
        return None  # raised by the dispatcher
    if "\0" in request.path or any("\0" in text for _, texts in request.args.lists() for text in texts):
        raise InvalidRequest("The address contains the character NUL.")
    if request.endpoint in PUBLIC:
        return None
    return _identify(wsgi)


def _identify(wsgi: Wsgi) -> Response | None:
    deps = dependencies()
    found = None if deps.settings.auth == "none" else session.load(request, deps.cipher)
    if found is None and deps.settings.auth != "none":
        return _to_sign_in()
    credentials = {} if found is None else found.environ
    environ: WSGIEnvironment = {**request.environ, "PATH_INFO": "/v1/", **credentials}
    try:
        logins = app_state().failed_logins
        with logins.verifying(environ, logins.credentials(environ)):
            actor = app_state().authenticate(environ)
    except Unauthenticated:
        answer = _to_sign_in()
        session.clear(answer, request)
        return answer
    project = project_of(request.view_args)
    if project is None:
        raise NoSuchPath
    try:
        g.caller = for_project(actor, project, admin=deps.settings.anonymous_admin)
    except AccessDenied as error:
        raise NotFound("Project", project) from error
    g.api = ApiClient(wsgi, request.environ, credentials)
    authorization.enforce()
    return None


def _to_sign_in() -> Response:
    """Redirect a page to the form; other requests are rejected, so that nothing typed is lost."""
    if request.method != "GET" or not error_pages.is_navigation():
        raise Unauthenticated
    path = quote(request.full_path.rstrip("?"), safe="/")
    return cast(Response, redirect(url_for("sign_in.form", next=f"{request.script_root}{path}"), 303))


def _end_request(response: Response) -> Response:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    access_log.note(request, response)
    request.environ[access_log.ENDPOINT] = f"console.{request.endpoint or 'none'}"
    return response
