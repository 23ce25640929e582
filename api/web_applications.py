"""Web applications beside the API, such as the console: what the API offers them, and their places.

An application is its own distribution. An entry point of GROUP names its place in the path and a
function from `WebHost` to a WSGI application. The application knows the API by its HTTP interface only; this
module offers what that interface cannot: the address of the API within the process, the caller and its
rights before a page is made, and sealed cookies. It is all that an application may import. Errors are those
of werkzeug, with the status and the message of the API.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final

from flask import Request, Response
from werkzeug.datastructures import Headers
from werkzeug.exceptions import default_exceptions
from werkzeug.test import run_wsgi_app

from api import postponement
from api.dependencies import AppState, Wsgi
from api.middleware import access_log, cross_site
from api.middleware.in_flight import reading_body
from api.request.body import client_read_errors
from api.response.errors import STATUSES
from api.streaming.shared_responses import SHARES
from orchestrator.errors import AccessDenied, Misconfigured, NotFound, OrchestratorError
from orchestrator.security import ended_sessions, keystone_login
from orchestrator.security.caller import Caller, for_project
from orchestrator.security.ended_sessions import SESSION_KEY
from orchestrator.security.keystone_login import PasswordLogin
from orchestrator.security.policy import allowed, policy_of, require
from orchestrator.store.connections.database import UNREACHABLE

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

__all__ = ("SESSION_KEY", "Identity", "PasswordLogin", "WebHost")

GROUP: Final = "orchestrator.web_applications"
MOUNT: Final = "orchestrator.mount"  # SCRIPT_NAME of the API for a request of an application


@dataclass(frozen=True, slots=True)
class Identity:
    """An authenticated caller."""

    caller: Caller | None  # None: without authentication

    @property
    def project_id(self) -> str:
        """Return the project of the caller, empty without any."""
        return "" if self.caller is None else self.caller.project_id

    @property
    def user(self) -> str:
        """Return the name of the user."""
        return "" if self.caller is None else self.caller.user

    @property
    def rights(self) -> object:
        """Return a value that callers with the same rights share."""
        return None if self.caller is None else (self.caller.roles, self.caller.is_admin)

    def name_of(self, project: str) -> str:
        """Return the name of a project if the token of the caller is a token of the project; else its id."""
        login = None if self.caller is None else self.caller.login
        contents = (None if login is None else login.contents) or {}
        known = contents.get("project") or {}
        return str(known["name"]) if known.get("id") == project else project


class WebHost:
    """The API as a host of web applications."""

    def __init__(self, state: AppState, api: Wsgi) -> None:
        """Take the state of the API, and the layer at which calls of applications enter it."""
        self._state, self._api, self._deps = state, api, state.dependencies

    @property
    def auth(self) -> str:
        """Return the kind of authentication."""
        return self._deps.settings.auth or ""

    @property
    def flower_url(self) -> str:
        """Return the address of Flower for browsers, empty without any."""
        return self._deps.settings.flower_url or ""

    def require_own_page(self, request: Request) -> None:
        """Reject a request that a page of another site caused; a change must come from a page of ours.

        Raises:
            Forbidden: the headers of the browser say so.
        """
        is_safe = request.method in cross_site.SAFE_METHODS
        check = cross_site.require_own_site if is_safe else cross_site.require_own_page
        with _http_errors():
            check(request, self._deps.settings)

    def identify(self, environ: Mapping[str, Any], credentials: Mapping[str, Any]) -> Identity:
        """Return the caller with credentials, given as variables of a WSGI environment.

        Raises:
            Unauthorized: they are not valid.
            TooManyRequests: too many invalid ones were given.
        """
        made = {**environ, "PATH_INFO": "/v1/", **credentials}
        logins = self._state.failed_logins
        with _http_errors(), logins.verifying(made, logins.credentials(made)):
            return Identity(self._state.authenticate(made))

    def enter(self, who: Identity, project: str) -> Identity:
        """Return a caller in a project.

        Raises:
            NotFound: it is another project.
        """
        with _http_errors():
            try:
                found = for_project(who.caller, project, admin=self._deps.settings.anonymous_admin)
            except AccessDenied as error:
                raise NotFound("Project", project) from error
            return Identity(found)

    def may(self, who: Identity, name: str) -> bool:
        """Whether the policy allows a caller in a project an operation."""
        return who.caller is not None and allowed(policy_of(self._deps.settings), name, who.caller)

    def require(self, who: Identity, name: str) -> None:
        """Return if the policy allows a caller in a project an operation.

        Raises:
            Forbidden: it does not.
        """
        assert who.caller is not None
        with _http_errors():
            require(policy_of(self._deps.settings), name, who.caller)

    def seal(self, values: Mapping[str, Any]) -> str:
        """Return values as an encrypted text that only this installation opens."""
        return self._deps.cipher.seal(dict(values)).decode()

    def open_sealed(self, text: str) -> object:
        """Return the values of an encrypted text, None if it is from another installation."""
        try:
            return self._deps.cipher.open(text.encode("utf-8", "replace"))
        except (Misconfigured, ValueError):  # or a key that was removed
            return None

    def end_session(self, digest: bytes, token: str | None, expires_at: float) -> None:
        """End a session for all API processes and all copies of its cookie, with its own token."""
        ended_sessions.end(self._deps.database, digest, token, expires_at)

    def sign_in(self, environ: Mapping[str, Any], login: PasswordLogin) -> tuple[str, float]:
        """Return a token of Keystone and its end, in seconds since the epoch.

        Raises:
            Unauthorized: Keystone rejects the password.
            TooManyRequests: too many wrong passwords were given.
            ServiceUnavailable: Keystone does not respond.
        """
        logins = self._state.failed_logins
        with _http_errors(), logins.verifying(dict(environ), logins.password(login.user, login.password)):
            return keystone_login.sign_in(self._deps.settings, login)

    def sign_out(self, token: str) -> None:
        """Revoke a token of `sign_in`.

        Raises:
            ServiceUnavailable: Keystone does not respond.
        """
        with _http_errors():
            keystone_login.sign_out(self._deps.settings, token)

    @contextmanager
    def reading(self, request: Request) -> Iterator[None]:
        """Read the body of a request, as one of the slow bodies if it has yet to arrive.

        Raises:
            RequestTimeout, BadRequest: the body is too slow or incomplete.
            TooManyRequests: too many slow bodies arrive.
        """
        with _http_errors(), reading_body(request.environ), client_read_errors():
            yield

    def call(
        self, environ: WSGIEnvironment, *, may_wait: bool, shares: bool = False
    ) -> tuple[Iterable[bytes], int, Headers]:
        """Send a request to the API; return the chunks of the response, its status and its headers.

        With `may_wait` the request of the application may be postponed: it is handled again from the start.
        With `shares` it may receive the response to an equal request that is made at the same time.
        """
        made = {**environ, "SCRIPT_NAME": environ.get(MOUNT, ""), **({SHARES: "true"} if shares else {})}
        with nullcontext() if may_wait else postponement.handling(may_wait=False, counted=False):
            chunks, status, headers = run_wsgi_app(self._api, made)
        return chunks, int(status.partition(" ")[0]), headers

    def note(self, request: Request, response: Response, endpoint: str) -> None:
        """Complete the line of the access log, and name the endpoint in the metrics."""
        access_log.note(request, response)
        request.environ[access_log.ENDPOINT] = endpoint

    def is_outage(self, error: Exception) -> bool:
        """Whether an error means that the database is unreachable."""
        return isinstance(error, UNREACHABLE)


class Mounted:
    """WSGI middleware that passes requests below a place in the path to an application."""

    def __init__(self, api: Wsgi, application: Wsgi, place: str) -> None:
        """Connect the two applications."""
        self._api, self._application, self._prefix = api, application, f"/{place}"

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Pass the request on; for the application the prefix moves to SCRIPT_NAME."""
        path = environ.get("PATH_INFO", "")
        if path != self._prefix and not path.startswith(f"{self._prefix}/"):
            return self._api(environ, start_response)
        environ[MOUNT] = environ.get("SCRIPT_NAME", "")
        environ["SCRIPT_NAME"] = environ[MOUNT] + self._prefix
        environ["PATH_INFO"] = path[len(self._prefix) :]
        return self._application(environ, start_response)


def mounted(api: Wsgi, state: AppState) -> Wsgi:
    """Return the API with all installed applications before it."""
    host, app = WebHost(state, api), api
    for point in entry_points(group=GROUP):
        app = Mounted(app, point.load()(host), point.name)
    return app


@contextmanager
def _http_errors() -> Iterator[None]:
    """Raise errors of the product as errors of HTTP.

    Raises:
        HTTPException: with the status of the error; an unexpected error stays as it is.
    """
    try:
        yield
    except OrchestratorError as error:
        status = next((STATUSES[cls] for cls in type(error).__mro__ if cls in STATUSES), None)
        if status is None:
            raise
        raise default_exceptions[status](str(error)) from error
