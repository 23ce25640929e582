"""Sign-in, sign-out, and the start page."""

from __future__ import annotations

import re
from typing import Final, cast

import structlog
from flask import Blueprint, Response, make_response, redirect, render_template, request, url_for
from werkzeug.exceptions import ServiceUnavailable, Unauthorized

from api.web_applications import Identity, PasswordLogin
from orchestrator_console import session
from orchestrator_console.context import DEFAULT_PROJECT, host
from orchestrator_console.session import Session

sign_in = Blueprint("sign_in", __name__)

log = structlog.get_logger()

MAX_FORM_BYTES: Final = 32_768
REJECTED: Final = "These credentials are not valid. Check them and try again."
NO_PROJECT: Final = "The token has no project. Use a token for the project whose stacks you want to see."
_LOCAL: Final = re.compile(r"/[!-\[\]-~]*")  # printable ASCII without a backslash


@sign_in.get("/")
def home() -> Response:
    """Redirect to the overview of the caller's project."""
    if host().auth == "none":
        return _to(url_for("overview.show", project=request.args.get("project") or DEFAULT_PROJECT))
    found = session.load(request)
    try:
        who = None if found is None else _verified(found)
    except Unauthorized:
        who = None
    if who is None:
        return _to(url_for("sign_in.form"))
    return _to(url_for("overview.show", project=request.args.get("project") or who.project_id))


@sign_in.get("/sign-in")
def form() -> Response:
    """Show the form."""
    if host().auth == "none":
        return _to(url_for("sign_in.home"))
    return _form("", 200)


@sign_in.post("/sign-in")
def submit() -> Response:
    """Check the credentials and begin the session."""
    request.max_content_length = MAX_FORM_BYTES
    try:
        begun = _submitted()
        who = _verified(begun)
    except Unauthorized:
        return _form(REJECTED, 401)
    if not who.project_id:
        return _form(NO_PROJECT, 403)
    response = _to(_next() or url_for("overview.show", project=who.project_id))
    session.store(response, begun, request)
    return response


@sign_in.post("/sign-out")
def leave() -> Response:
    """End the session, also for copies of its cookie, and the token that was requested for it."""
    found = session.load(request)
    if found is not None:
        session.end(found)
    if found is not None and found.is_requested:
        try:
            host().sign_out(found.value)
        except ServiceUnavailable as error:  # the token ends by itself
            log.warning("token_not_revoked", error=str(error))
    response = _to(url_for("sign_in.home"))
    session.clear(response, request)
    return response


def _submitted() -> Session:
    """Return the session for the credentials in the form.

    Raises:
        Unauthorized: they are incomplete, or Keystone rejects them.
        ServiceUnavailable: Keystone does not respond.
    """
    auth, values = host().auth, request.form
    token, name, password = (values.get(key, "") for key in ("token", "user", "password"))
    if token.strip() and auth != "basic":
        text = token.strip()
        if not text.isascii() or not text.isprintable():
            raise Unauthorized
        return session.of_token(text)
    if not name or not password:
        raise Unauthorized
    if auth == "basic":
        return session.of_password(name, password)
    if auth != "keystone":
        raise Unauthorized
    login = PasswordLogin(
        name,
        password,
        values.get("project") or name,
        values.get("user_domain") or "Default",
        values.get("project_domain") or "Default",
    )
    return session.of_requested_token(*host().sign_in(request.environ, login))


def _verified(found: Session) -> Identity:
    """Return the caller with the credentials of a session.

    Raises:
        Unauthorized: they are not valid.
    """
    return host().identify(request.environ, found.environ)


def _form(problem: str, status: int) -> Response:
    text = render_template(
        "sign_in.html", auth=host().auth, problem=problem, next=_next(), values=request.form
    )
    return make_response(text, status)


def _next() -> str:
    """Return the page to continue with, empty if it is not a page of the console."""
    path = request.values.get("next", "")
    inside = path.startswith(f"{request.script_root}/") and "//" not in path.partition("?")[0]
    return path if inside and _LOCAL.fullmatch(path) else ""


def _to(url: str) -> Response:
    return cast(Response, redirect(url, 303))
