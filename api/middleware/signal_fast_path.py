"""Fast path for signals: accept a valid signal without Flask's request handling (adr/0001).

Signals arrive by the hundreds per second, and Flask is most of the cost of a signal. Everything else falls
back to the ordinary path with the unchanged request: another URL format, required audit records, hooks, and
every rejected signal, so error responses are built in a single place. Both paths have the same effects: row,
audit line, access log line, metrics.
"""

from __future__ import annotations

import io
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

import orjson
import psycopg
import structlog

from api.dependencies import AppState, Wsgi
from api.middleware import access_log, audit, in_flight
from orchestrator import config
from orchestrator.engine.messages import Message
from orchestrator.errors import OrchestratorError
from orchestrator.operations.context import Body, OperationContext
from orchestrator.security.caller import Caller, for_project
from orchestrator.security.policy import allowed, policy_of
from orchestrator.security.resource_credentials import STACK_USER, authenticate
from orchestrator.security.signatures import SignedRequest
from orchestrator.store.connections.database import UNREACHABLE
from orchestrator.store.signals.ingest import SignalAddress

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

POLICY: Final = "resource:signal"
_NAME: Final = r"([^/\0%]+)"
NATIVE: Final = re.compile(
    rf"/v1(?:\.0)?/{_NAME}/stacks/{_NAME}/([0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})"
    rf"/resources/{_NAME}/signal"
)
SIGNED: Final = re.compile(
    r"/v1(?:\.0)?/(waitcondition|signal)/arn:openstack:heat::([^/:\0%]+):stacks/"
    rf"{_NAME}/{_NAME}/resources/{_NAME}"
)
VIEWS: Final = {("PUT", "waitcondition"): "cfn.wait_condition", ("POST", "signal"): "cfn.signal"}
JSON_CONTENT_TYPES: Final = frozenset({"application/json", "application/json; charset=utf-8"})
BROWSER_HEADERS: Final = ("HTTP_ORIGIN", "HTTP_SEC_FETCH_SITE")  # checked by api/middleware/cross_site.py
MAX_PATH_LENGTH: Final = 2_000  # characters of a path or query
LOST_DATABASE: Final = (
    "orchestrator.gone"  # key in the WSGI environment: the error that interrupted the commit
)


@dataclass(frozen=True, slots=True)
class SignalRequest:
    """A signal that qualifies for the fast path."""

    view: str  # endpoint of the ordinary path
    stack: str
    stack_id: str
    project: str
    resource: str


class NotEligible(Exception):
    """The request falls back to the ordinary path; nothing was changed."""


class SignalFastPath:
    """WSGI middleware that answers valid signals and passes all other requests on."""

    def __init__(self, state: AppState, inner: Wsgi) -> None:
        """Wrap `inner`, with the state of the application."""
        self.inner, self.deps = inner, state.dependencies
        self.authenticate, self.logins = state.authenticate, state.failed_logins
        self.rates = state.rate_limits
        enabled = not self.deps.settings.audit_required
        self.fast_signal = self.deps.operations.signal_fast if enabled else None

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer the signal, or pass the unchanged request on."""
        requested = _signal_request(environ) if self.fast_signal is not None else None
        if requested is None:
            return self.inner(environ, start_response)
        request_id = f"req-{uuid.uuid4()}"
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        try:
            actor, messages, answer = self._accept(environ, requested)
        except UNREACHABLE as error:
            environ[LOST_DATABASE] = error  # the signal may be committed: a fallback could store it twice
            return self.inner(environ, start_response)
        except (NotEligible, OrchestratorError, psycopg.Error):
            return self.inner(environ, start_response)
        self.deps.publish(messages)
        self._record(environ, requested, actor)
        text = orjson.dumps(answer)
        headers = [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(text))),
            ("x-openstack-request-id", request_id),
        ]
        start_response("200 OK", headers)
        return [text]

    def _accept(
        self, environ: WSGIEnvironment, signal: SignalRequest
    ) -> tuple[Caller, Sequence[Message], Any]:
        """Accept the signal; return the caller, the messages to publish, and the response.

        Raises:
            NotEligible: the request falls back; nothing was changed.
            TooManyRequests: as above.
        """
        deps = self.deps
        if signal.view == "signals.send":
            actor = self._caller(environ, signal)
        else:
            bearer = authenticate(deps.database, deps.cipher, deps.settings, _signed_request(environ))
            location = (bearer.project_id, bearer.stack_name, bearer.stack_uuid)
            if location != (signal.project, signal.stack, signal.stack_id):
                raise NotEligible
            actor = Caller(bearer.project_id, bearer.resource, (STACK_USER,), bearer=bearer)
        self.rates.take(environ, actor, signal=True)
        body = _body(environ, config.INLINE_BODY_SIZE)
        context = OperationContext(deps.database, deps.cipher, actor, deps.settings, deps.types)
        address = SignalAddress(signal.stack_id, signal.stack, signal.project, signal.resource)
        assert self.fast_signal is not None
        accepted = self.fast_signal(
            context,
            address,
            body,
            by_url=signal.view != "signals.send",
            shown=signal.view == "cfn.wait_condition",
        )
        if accepted is None:
            raise NotEligible
        messages, metadata = accepted
        visible = {"resource": signal.resource, "metadata": metadata}
        return actor, messages, visible if signal.view == "cfn.wait_condition" else None

    def _caller(self, environ: WSGIEnvironment, signal: SignalRequest) -> Caller:
        """Return the caller if the policy allows the signal."""
        settings = self.deps.settings
        if self.logins.is_guarded(environ):
            raise NotEligible
        actor = for_project(self.authenticate(environ), signal.project, admin=settings.anonymous_admin)
        if actor.is_admin or not allowed(policy_of(settings), POLICY, actor):
            raise NotEligible
        return actor

    def _record(self, environ: WSGIEnvironment, signal: SignalRequest, caller: Caller) -> None:
        native = signal.view == "signals.send"
        environ[access_log.ENDPOINT] = signal.view
        environ[access_log.ABOUT] = {
            "project": signal.project if native else None,
            "stack": signal.stack_id if native else None,
        }
        audit.log_change(
            POLICY,
            caller,
            stack=f"{signal.stack}/{signal.stack_id}",
            status=200,
            project=caller.project_id,
            method=environ["REQUEST_METHOD"],
            path=f"{environ.get('SCRIPT_NAME', '')}{environ['PATH_INFO']}",
            address=environ.get("REMOTE_ADDR"),
        )


def _signal_request(environ: Mapping[str, Any]) -> SignalRequest | None:
    """Return the signal in a request; None for other requests and for unusual forms."""
    method, path = environ["REQUEST_METHOD"], environ.get("PATH_INFO", "")
    if method not in ("POST", "PUT") or len(path) > MAX_PATH_LENGTH or not path.isascii():
        return None
    if any(name in environ for name in BROWSER_HEADERS):
        return None
    if "HTTP_X_OPENSTACK_REQUEST_ID" in environ or not environ.get("CONTENT_LENGTH", "").isdecimal():
        return None
    query = environ.get("QUERY_STRING", "")
    native = NATIVE.fullmatch(path)
    if native is not None:
        if query or method != "POST" or environ.get("CONTENT_TYPE", "").lower() not in JSON_CONTENT_TYPES:
            return None
        project, stack, stack_id, resource = native.groups()
        return SignalRequest("signals.send", stack, stack_id, project, resource)
    signed = SIGNED.fullmatch(path)
    if signed is None or len(query) > MAX_PATH_LENGTH or "HTTP_AUTHORIZATION" in environ:
        return None
    purpose, project, stack, stack_id, resource = signed.groups()
    view = VIEWS.get((method, purpose))
    return None if view is None else SignalRequest(view, stack, stack_id, project, resource)


def _signed_request(environ: Mapping[str, Any]) -> SignedRequest:
    """Return the request in the form for signature checks.

    Raises:
        NotEligible: the query is ambiguous.
    """
    query = environ.get("QUERY_STRING", "")
    pairs = parse_qsl(query, keep_blank_values=True) if query.isascii() else []
    params = dict(pairs)
    host = environ.get("HTTP_HOST", "")
    if len(params) != len(pairs) or "\0" in "".join(params.values()) or host.endswith((":80", ":443")):
        raise NotEligible
    path = environ["PATH_INFO"]
    return SignedRequest(
        verb=environ["REQUEST_METHOD"],
        host=host,
        path=f"{environ.get('SCRIPT_NAME', '')}{path}",
        below=path,
        params=params,
        headers={},
    )


def _body(environ: WSGIEnvironment, longest: int) -> Body:
    """Read the body and rewind it for the ordinary path.

    Raises:
        NotEligible: the body is large, incomplete, or has yet to arrive.
    """
    length = int(environ["CONTENT_LENGTH"])
    if length > longest or not in_flight.is_received(environ):
        raise NotEligible
    try:
        data = environ["wsgi.input"].read(length)
    except Exception as error:
        environ["wsgi.input"] = _UnreadableBody(error)
        raise NotEligible from error
    environ["wsgi.input"] = io.BytesIO(data)
    if len(data) < length:
        raise NotEligible
    return Body(data=data)


class _UnreadableBody(io.RawIOBase):
    """A body whose read failed; reading it again raises the same error."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def readable(self) -> bool:
        return True

    def readinto(self, _buffer: object) -> int:
        raise self.error
