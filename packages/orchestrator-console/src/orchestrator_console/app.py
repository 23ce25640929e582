"""The application of the console, and the steps common to all of its requests.

Order: the headers of the browser, the session, the caller, the project. Pages of other projects are 404.
"""

from __future__ import annotations

from typing import Final, cast
from urllib.parse import quote

from flask import Flask, Response, g, redirect, request, url_for
from werkzeug.exceptions import BadRequest, Unauthorized
from werkzeug.exceptions import NotFound as NoSuchPath

from api.web_applications import WebHost
from orchestrator_console import assets, authorization, error_pages, formats, session
from orchestrator_console.api_client import ApiClient
from orchestrator_console.context import HOST, console_context, host, project_of
from orchestrator_console.views import (
    actions,
    field,
    overview,
    repairs,
    resource,
    revisions,
    sign_in,
    stack,
    stacks,
)
from orchestrator_console.views.history import history
from orchestrator_console.views.map import stack_map
from orchestrator_console.views.timeline import timeline

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


def create_console(web_host: WebHost) -> Flask:
    """Return the console of an API; the entry point."""
    console = Flask(__package__, static_folder=None, template_folder="pages")
    console.url_map.merge_slashes = False
    console.extensions[HOST] = web_host
    console.jinja_env.trim_blocks = console.jinja_env.lstrip_blocks = True
    formats.register(console)
    error_pages.register(console)
    console.context_processor(console_context)
    console.before_request(_begin_request)
    console.after_request(_end_request)
    for blueprint in BLUEPRINTS:
        console.register_blueprint(blueprint)
    return console


def _begin_request() -> Response | None:
    """Check the request and authenticate the caller; return a redirect to the sign-in page without one."""
    host().require_own_page(request)
    if request.routing_exception is not None or request.endpoint is None:
        return None  # raised by the dispatcher
    if "\0" in request.path or any("\0" in text for _, texts in request.args.lists() for text in texts):
        raise BadRequest("The address contains the character NUL.")
    if request.endpoint in PUBLIC:
        return None
    return _identify()


def _identify() -> Response | None:
    found = session.load(request)
    if found is None and host().auth != "none":
        return _to_sign_in()
    credentials = {} if found is None else found.environ
    try:
        who = host().identify(request.environ, credentials)
    except Unauthorized:
        answer = _to_sign_in()
        session.clear(answer, request)
        return answer
    project = project_of(request.view_args)
    if project is None:
        raise NoSuchPath
    g.who = host().enter(who, project)
    g.api = ApiClient(host(), request.environ, credentials)
    authorization.enforce()
    return None


def _to_sign_in() -> Response:
    """Redirect a page to the form; other requests are rejected, so that nothing typed is lost."""
    if request.method != "GET" or not error_pages.is_navigation():
        raise Unauthorized(session.REQUIRED)
    path = quote(request.full_path.rstrip("?"), safe="/")
    return cast(Response, redirect(url_for("sign_in.form", next=f"{request.script_root}{path}"), 303))


def _end_request(response: Response) -> Response:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    host().note(request, response, f"console.{request.endpoint or 'none'}")
    return response
