"""The Amazon-compatible endpoint (docs/internals/rest-api.md §14): signed signal URLs, and CloudFormation
queries, whose actions are in `api/cloudformation`.

A signature authenticates the caller. Errors have Amazon's codes and format: XML, or JSON on request.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import unquote
from xml.etree import ElementTree  # only written, never parsed

from flask import Blueprint, Response, g, request
from werkzeug.exceptions import HTTPException
from werkzeug.exceptions import NotFound as NoSuchPath

from api.cloudformation.actions import ACTIONS, INSTEAD
from api.cloudformation.arguments import INVALID_VALUE, Arguments, QueryFault
from api.cloudformation.names import ARN
from api.dependencies import app_state, dependencies
from api.middleware import audit_records, in_flight, turns
from api.middleware.api_version import QUERY, QUERY_PATH
from api.middleware.in_flight import reading_body
from api.request.body import client_read_errors, read_body
from api.response.errors import http_error
from api.response.serialization import json_response
from orchestrator import config, errors, logs, rate_errors
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.operations.context import OperationContext
from orchestrator.security.caller import Caller
from orchestrator.security.policy import allowed, policy_of
from orchestrator.security.resource_credentials import STACK_USER, authenticate
from orchestrator.security.signatures import (
    IncompleteSignature,
    Refused,
    RequestExpired,
    SignedRequest,
    credential,
)
from orchestrator.store.access.grants import AccessRow
from orchestrator.store.access.idempotency import TokenTaken
from orchestrator.store.connections.database import UNREACHABLE

cfn = Blueprint("cfn", __name__)
log = logs.logger()

MAX_QUERY_BYTES: Final = 4 << 20  # bytes; larger templates need the native API or a URL
MAX_ANONYMOUS_BYTES: Final = 1 << 20  # bytes of a query whose URL and headers name no known key
MAX_PARAMETERS: Final = 10_000
NO_ACTION: Final = "The action or operation requested is invalid"

# Error class -> status, Amazon's code, and prefix of the message.
CODES: Final[dict[type[errors.OrchestratorError], tuple[int, str, str]]] = {
    errors.LimitExceeded: (400, "RequestLimitExceeded", ""),
    errors.StackExists: (400, "AlreadyExistsException", ""),
    TokenTaken: (400, TokenTaken.heat_type, ""),
    errors.Conflict: (400, "InvalidAction", ""),
    errors.NotFound: (400, "InvalidParameterValue", INVALID_VALUE),
    errors.NotSupported: (400, "InvalidParameterValue", INVALID_VALUE),
    errors.InvalidRequest: (400, "InvalidParameterValue", INVALID_VALUE),
    errors.InvalidTemplate: (400, "InvalidParameterValue", INVALID_VALUE),
    rate_errors.TooManyRequests: (400, "Throttling", ""),  # boto retries it
    errors.Forbidden: (403, "AccessDenied", "User is not authorized to perform action"),
}
# Deviations for queries: Amazon's codes.
QUERY_CODES: Final[dict[type[errors.OrchestratorError], tuple[int, str, str]]] = {
    **CODES,
    errors.NotFound: (400, "ValidationError", ""),
    errors.NotSupported: (400, "ValidationError", ""),
    errors.InvalidTemplate: (400, "ValidationError", ""),
}
_UNWRITABLE: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # in XML


@cfn.put(f"/waitcondition/{ARN}<path:rest>")
def wait_condition(rest: str) -> Response:
    """Accept a signal at the URL of a wait condition handle."""
    return json_response(_signal(rest, shown=True))


@cfn.post(f"/signal/{ARN}<path:rest>")
def signal(rest: str) -> Response:
    """Accept a signal at the URL of any other resource."""
    _signal(rest, shown=False)
    return json_response(None)


@cfn.route(QUERY, methods=["GET", "POST", "PUT", "PATCH", "DELETE"])
def query() -> Response:
    """Run a CloudFormation action."""
    if QUERY_PATH not in request.environ:
        raise NoSuchPath
    callers, logins = app_state().query_callers, app_state().failed_logins
    with logins.verifying(request.environ, None):
        known = callers.require_plausible(_head(request.environ[QUERY_PATH]))
    largest = MAX_QUERY_BYTES if known else MAX_ANONYMOUS_BYTES
    limit = min(largest, dependencies().settings.max_json_body_size)
    request.max_content_length = request.max_form_memory_size = limit
    with reading_body(request.environ), client_read_errors():
        signed = request.get_data()  # before it is decoded
    if request.query_string.count(b"&") + signed.count(b"&") > MAX_PARAMETERS:
        raise errors.LimitExceeded(f"a query has at most {MAX_PARAMETERS} parameters.")
    g.wanted = values = _parameters()
    name = values.get("Action")
    if not name:
        raise QueryFault("MissingAction", "The request is missing an action or a required parameter")
    signed_request = _signed(request.environ[QUERY_PATH], values)
    received = credential(signed_request)
    given = logins.signature(received.key, received.signature, known=known)
    with logins.verifying(request.environ, given):
        g.caller = callers.identify(signed_request)
    app_state().rate_limits.take(request.environ, g.caller)
    in_flight.identify(request.environ, g.caller, g.caller.project_id)
    turns.begin(request.environ, g.caller.project_id)
    action = ACTIONS.get(name)
    if action is None:
        raise QueryFault("InvalidAction", f"{NO_ACTION}{INSTEAD.get(name, '')}")
    _require_allowed(name, g.caller)
    result = action(Arguments(values))
    answer = {f"{name}Result": result or {}, "ResponseMetadata": {"RequestId": g.request_id}}
    return _answer({f"{name}Response": answer})


def _parameters() -> dict[str, str]:
    """Return the parameters of a query, from URL and form.

    Raises:
        QueryFault: a parameter is repeated, so that the signed value might differ from the used value, or has
            a character that cannot be stored.
    """
    parameters: dict[str, str] = {}
    for source in (request.args, request.form):
        for name, values in source.lists():
            if len(values) > 1 or name in parameters:
                raise QueryFault("InvalidParameterCombination", f"The parameter {name[:100]} is given twice.")
            if "\0" in name or "\0" in values[0]:
                raise QueryFault("InvalidParameterValue", f"{INVALID_VALUE}:the character NUL")
            parameters[name] = values[0]
    return parameters


def _require_allowed(action: str, subject: Caller) -> None:
    """Return if the policy allows the action, and its audit record is written.

    Raises:
        Refused: the policy does not allow it.
        Unavailable: the audit record is required and cannot be written.
    """
    g.policy_name = f"cloudformation:{action}"  # for the audit
    if not allowed(policy_of(dependencies().settings), g.policy_name, subject):
        raise Refused
    audit_records.begin(g.policy_name, subject)


def _signal(rest: str, *, shown: bool) -> JsonObject:
    deps = dependencies()
    signed = _signed(request.path, request.args.to_dict())
    logins, received = app_state().failed_logins, credential(signed)
    with logins.verifying(request.environ, logins.signature(received.key, received.signature, known=True)):
        bearer = authenticate(deps.database, deps.cipher, deps.settings, signed)
    name = _resource(rest, bearer)
    g.caller = caller = Caller(bearer.project_id, bearer.resource, (STACK_USER,), bearer=bearer)
    app_state().rate_limits.take(request.environ, caller, signal=True)
    audit_records.begin("resource:signal", caller)
    context = OperationContext(deps.database, deps.cipher, caller, deps.settings, deps.types)
    if (request.content_length or 0) > config.INLINE_BODY_SIZE:
        turns.begin(request.environ, caller.project_id)
    with read_body(request, deps.settings, small=True, any_type=True) as body:
        messages, metadata = deps.operations.signal_by_url(context, name, body, shown=shown)
    deps.publish(messages)
    return {"resource": name, "metadata": metadata}


def _resource(rest: str, bearer: AccessRow) -> str:
    """Return the resource in an ARN, checked against the stack of the key.

    Raises:
        Refused: the ARN belongs to another stack.
    """
    project, _, path = rest.partition(":stacks/")
    names = [unquote(part) for part in path.split("/")]
    location = [bearer.stack_name, bearer.stack_uuid, "resources"]
    if unquote(project) != bearer.project_id or len(names) != 4 or names[:3] != location:
        raise Refused
    return names[3]


def _signed(path: str, params: Mapping[str, str]) -> SignedRequest:
    """Return the request in the form for signature checks; `path` is relative to the version."""
    body = request.get_data() if request.path == QUERY else b""
    return replace(_head(path), params=params, body_hash=hashlib.sha256(body).hexdigest())


def _head(path: str) -> SignedRequest:
    """Return the request without its body."""
    version = request.script_root.rpartition("/")[2]
    return SignedRequest(
        verb=request.method,
        host=request.host,
        path=f"{request.script_root}{path}",
        below=f"/{version}{path}",
        params=request.args.to_dict(),
        headers={name.lower(): value for name, value in request.headers.items()},
        query=request.args.to_dict(),
    )


@cfn.errorhandler(errors.OrchestratorError)
def _refused(error: errors.OrchestratorError) -> Response:
    if isinstance(error, IncompleteSignature | RequestExpired | QueryFault):
        return _fault(400, error.heat_type, str(error))
    if isinstance(error, Refused):
        return _fault(403, error.heat_type, str(error))
    codes = QUERY_CODES if request.path == QUERY else CODES
    known_code = next((codes[cls] for cls in type(error).__mro__ if cls in codes), None)
    if known_code is None:
        return _failed(error)
    status, code, begins = known_code
    message = str(error)
    if isinstance(error, errors.InvalidTemplate):
        message = "\n".join(dict.fromkeys(diagnostic.message for diagnostic in error.diagnostics))
    response = _fault(status, code, f"{begins}:{message}" if begins else message)
    if isinstance(error, rate_errors.TooManyRequests):
        response.headers["Retry-After"] = str(error.retry_seconds)
    return response


@cfn.errorhandler(HTTPException)
def _http(error: HTTPException) -> Response | HTTPException:
    if error.code == 413:
        return _fault(400, "RequestLimitExceeded", "Request limit exceeded: the query is too large.")
    return http_error(error)


@cfn.errorhandler(Exception)
def _failed(error: Exception) -> Response:
    if isinstance(error, (errors.Unavailable, *UNREACHABLE)):
        log.error("service_unreachable", error=str(error))
        message = "The request has failed due to a temporary failure of the server"
        return _fault(503, "ServiceUnavailable", message, "Server")
    log.error("request_failed", path=request.path, exc_info=error)
    message = "The request processing has failed due to an internal error"
    return _fault(500, "InternalFailure", message, "Server")


def _fault(status: int, code: str, message: str, type_: str = "Sender") -> Response:
    error = {"Type": type_, "Code": code, "Message": message}
    return _answer({"ErrorResponse": {"Error": error, "RequestId": g.request_id}}, status)


def _answer(document: JsonMapping, status: int = 200) -> Response:
    if g.get("wanted", request.args).get("ContentType") == "JSON":  # a signal's body is not a form
        return json_response(_without_nulls(document), status)
    [(name, content)] = document.items()
    root = ElementTree.Element(name)
    _fill(root, content)
    return Response(ElementTree.tostring(root, encoding="utf-8"), status, mimetype="application/xml")


def _without_nulls(value: object) -> Any:
    """Return the response without empty values."""
    match value:
        case Mapping():
            return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
        case list():
            return [_without_nulls(item) for item in value]
        case _:
            return value


def _fill(element: ElementTree.Element, content: object) -> None:
    """Write a value: lists as members, None omitted, characters that XML cannot represent replaced."""
    match content:
        case Mapping():
            for name, inner in content.items():
                if inner is not None:
                    _fill(ElementTree.SubElement(element, name), inner)
        case list():
            for item in content:
                _fill(ElementTree.SubElement(element, "member"), item)
        case bool():
            element.text = "true" if content else "false"
        case _:
            element.text = _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", str(content))
