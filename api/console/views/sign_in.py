"""Sign-in, sign-out, and the start page."""

from __future__ import annotations

import re
from typing import Final, cast

from flask import Blueprint, Response, make_response, redirect, render_template, request, url_for

from api.console import session
from api.console.context import DEFAULT_PROJECT
from api.console.session import Session
from api.dependencies import app_state, dependencies
from orchestrator import logs
from orchestrator.errors import Unauthenticated, Unavailable
from orchestrator.security.caller import Caller
from orchestrator.security.keystone_login import PasswordLogin
from orchestrator.security.keystone_login import sign_in as keystone_sign_in
from orchestrator.security.keystone_login import sign_out as keystone_sign_out

sign_in = Blueprint("sign_in", __name__)

log = logs.logger()

MAX_FORM_BYTES: Final = 32_768
REJECTED: Final = "These credentials are not valid. Check them and try again."
NO_PROJECT: Final = "The token has no project. Use a token for the project whose stacks you want to see."
_LOCAL: Final = re.compile(r"/[!-\[\]-~]*")  # printable ASCII without a backslash


@sign_in.get("/")
def home() -> Response:
    """Redirect to the overview of the caller's project."""
    deps = dependencies()
    if deps.settings.auth == "none":
        return _to(url_for("overview.show", project=request.args.get("project") or DEFAULT_PROJECT))
    found = session.load(request, deps.cipher)
    try:
        who = None if found is None else _verified(found)
    except Unauthenticated:
        who = None
    if who is None:
        return _to(url_for("sign_in.form"))
    return _to(url_for("overview.show", project=request.args.get("project") or who.project_id))


@sign_in.get("/sign-in")
def form() -> Response:
    """Show the form."""
    if dependencies().settings.auth == "none":
        return _to(url_for("sign_in.home"))
    return _form("", 200)


@sign_in.post("/sign-in")
def submit() -> Response:
    """Check the credentials and begin the session."""
    request.max_content_length = MAX_FORM_BYTES
    try:
        begun = _submitted()
        who = _verified(begun)
    except Unauthenticated:
        return _form(REJECTED, 401)
    if who is None or not who.project_id:
        return _form(NO_PROJECT, 403)
    response = _to(_next() or url_for("overview.show", project=who.project_id))
    session.store(response, begun, dependencies().cipher, request)
    return response


@sign_in.post("/sign-out")
def leave() -> Response:
    """End the session, also for copies of its cookie, and the token that was requested for it."""
    deps = dependencies()
    found = None if deps.settings.auth == "none" else session.load(request, deps.cipher)
    if found is not None:
        session.end(found, deps.database, deps.settings)
    if found is not None and found.is_requested:
        try:
            keystone_sign_out(deps.settings, found.value)
        except Unavailable as error:  # the token ends by itself
            log.warning("token_not_revoked", error=str(error))
    response = _to(url_for("sign_in.home"))
    session.clear(response, request)
    return response


def _submitted() -> Session:
    """Return the session for the credentials in the form.

    Raises:
        Unauthenticated: they are incomplete, or Keystone rejects them.
        Unavailable: Keystone does not respond.
    """
    settings, values = dependencies().settings, request.form
    token, name, password = (values.get(key, "") for key in ("token", "user", "password"))
    if token.strip() and settings.auth != "basic":
        text = token.strip()
        if not text.isascii() or not text.isprintable():
            raise Unauthenticated
        return session.of_token(text)
    if not name or not password:
        raise Unauthenticated
    if settings.auth == "basic":
        return session.of_password(name, password)
    if settings.auth != "keystone":
        raise Unauthenticated
    login = PasswordLogin(
        name,
        password,
        values.get("project") or name,
        values.get("user_domain") or "Default",
        values.get("project_domain") or "Default",
    )
    logins = app_state().failed_logins
    with logins.verifying(request.environ, logins.password(name, password)):
        return session.of_requested_token(*keystone_sign_in(settings, login))


def _verified(found: Session) -> Caller | None:
    """Return the caller with the credentials of a session.

    Raises:
        Unauthenticated: they are not valid.
    """
    environ = {**request.environ, "PATH_INFO": "/v1/", **found.environ}
    logins = app_state().failed_logins
    with logins.verifying(environ, logins.credentials(environ)):
        return app_state().authenticate(environ)


def _form(problem: str, status: int) -> Response:
    text = render_template(
        "sign_in.html", auth=dependencies().settings.auth, problem=problem, next=_next(), values=request.form
    )
    return make_response(text, status)


def _next() -> str:
    """Return the page to continue with, empty if it is not a page of the console."""
    path = request.values.get("next", "")
    inside = path.startswith(f"{request.script_root}/") and "//" not in path.partition("?")[0]
    return path if inside and _LOCAL.fullmatch(path) else ""


def _to(url: str) -> Response:
    return cast(Response, redirect(url, 303))
