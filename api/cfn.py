"""What servers ask in Amazon's way: signed URLs to signal at, and the metadata of a resource (spec §14).

Whoever asks is known by the signature. Refusals have Amazon's codes and shape, XML unless JSON is asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote
from xml.etree import ElementTree  # written, never read

from flask import Blueprint, Response, g, request
from werkzeug.exceptions import HTTPException
from werkzeug.exceptions import NotFound as NoSuchPath

from api.body import received
from api.formats import json_response, time
from api.parts import parts
from api.resources import own_metadata
from api.versions import ASKED, QUERY
from orchestrator import errors, telemetry
from orchestrator.operations.context import OperationContext
from orchestrator.security.bearers import STACK_USER, require
from orchestrator.security.caller import Caller
from orchestrator.security.signed_urls import IncompleteSignature, Refused, SignedRequest, authenticate
from orchestrator.store import stacks
from orchestrator.store.access import AccessRow
from orchestrator.store.resources import get_resource
from orchestrator.store.stacks import StackRow

cfn = Blueprint("cfn", __name__)
log = telemetry.logger()

LONGEST_QUERY: Final = 100_000  # bytes
ARN: Final = "arn:openstack:heat::"
INVALID_VALUE: Final = "A bad or out-of-range value was supplied"
NO_ACTION: Final = "The action or operation requested is invalid"

# What is refused -> status, Amazon's code, and what its message begins with.
CODES: Final[dict[type[errors.OrchestratorError], tuple[int, str, str]]] = {
    errors.LimitExceeded: (400, "RequestLimitExceeded", ""),
    errors.Conflict: (400, "InvalidAction", ""),
    errors.NotFound: (400, "InvalidParameterValue", INVALID_VALUE),
    errors.NotSupported: (400, "InvalidParameterValue", INVALID_VALUE),
    errors.InvalidRequest: (400, "InvalidParameterValue", INVALID_VALUE),
    errors.InvalidTemplate: (400, "InvalidParameterValue", INVALID_VALUE),
    errors.Forbidden: (403, "AccessDenied", "User is not authorized to perform action"),
}


class QueryFault(errors.InvalidRequest):
    """A query that cannot be answered, with Amazon's code."""

    def __init__(self, code: str, message: str) -> None:
        """Take both."""
        self.heat_type = code
        super().__init__(message)


@cfn.put(f"/waitcondition/{ARN}<path:rest>")
def wait_condition(rest: str) -> Response:
    """Take on a signal at the URL of a wait condition handle."""
    return json_response(_signal(rest, shown=True))


@cfn.post(f"/signal/{ARN}<path:rest>")
def signal(rest: str) -> Response:
    """Take on a signal at the URL of any other resource."""
    _signal(rest, shown=False)
    return json_response(None)


@cfn.route(QUERY, methods=["GET", "POST"])
def query() -> Response:
    """Answer `Action=DescribeStackResource`: how servers read their metadata."""
    if ASKED not in request.environ:
        raise NoSuchPath
    request.max_content_length = request.max_form_memory_size = LONGEST_QUERY
    request.get_data()  # what is signed, before it is taken apart
    g.wanted = request.values
    action = request.values.get("Action")
    if action is None:
        raise NoSuchPath
    bearer = _bearer(request.environ[ASKED])
    if action != "DescribeStackResource":
        raise QueryFault("InvalidAction", NO_ACTION)
    name, logical = request.values.get("StackName"), request.values.get("LogicalResourceId")
    if not name or not logical:
        missing = "LogicalResourceId" if name else "StackName"
        raise QueryFault("MissingParameter", f"A mandatory input parameter is missing:{missing}")
    has = parts()
    stack = stacks.get(has.database, bearer.project_id, bearer.stack_name, bearer.stack_uuid)
    if stack is None or name not in (stack.name, str(stack.uuid), _arn(stack)):
        raise Refused
    require(has.database, bearer, stack.id, logical)
    row = get_resource(has.database, stack, logical)
    if row is None:
        raise errors.ResourceNotFound(logical, stack.name)
    detail = {
        "Description": row.description,
        "LastUpdatedTimestamp": time(row.updated_at or row.created_at),
        "LogicalResourceId": row.name,
        "Metadata": json_response(own_metadata(row, stack, _context(bearer))).get_data(as_text=True),
        "PhysicalResourceId": row.physical_id or "",
        "ResourceStatus": row.state,
        "ResourceStatusReason": row.status_reason,
        "ResourceType": row.type,
        "StackId": _arn(stack),
        "StackName": stack.name,
    }
    return _answer(
        {"DescribeStackResourceResponse": {"DescribeStackResourceResult": {"StackResourceDetail": detail}}}
    )


def _signal(rest: str, *, shown: bool) -> dict[str, Any]:
    bearer = _bearer(request.path)
    name = _resource(rest, bearer)
    has = parts()
    context = _context(bearer)
    with received(request, has.settings, small=True, any_type=True) as body:
        rings, metadata = has.operations.signal_by_url(context, name, body, shown=shown)
    has.publish(rings)
    return {"resource": name, "metadata": metadata}


def _context(bearer: AccessRow) -> OperationContext:
    has = parts()
    caller = Caller(bearer.project_id, bearer.resource, (STACK_USER,), bearer=bearer)
    return OperationContext(has.database, has.cipher, caller, has.settings, has.types)


def _resource(rest: str, bearer: AccessRow) -> str:
    """Return the resource that an ARN names, of the stack that the key opens.

    Raises:
        Refused: it is another stack's.
    """
    project, _, path = rest.partition(":stacks/")
    names = [unquote(part) for part in path.split("/")]
    where = [bearer.stack_name, bearer.stack_uuid, "resources"]
    if unquote(project) != bearer.project_id or len(names) != 4 or names[:3] != where:
        raise Refused
    return names[3]


def _bearer(path: str) -> AccessRow:
    """Return what the key opens that the request is signed with."""
    params = request.args.to_dict()
    body_hash = ""
    if request.path == QUERY:
        body_hash = hashlib.sha256(request.get_data()).hexdigest()
        params |= request.form.to_dict()
    version = request.script_root.rpartition("/")[2]
    signed = SignedRequest(
        request.method,
        request.host,
        f"{request.script_root}{path}",
        f"/{version}{path}",
        params,
        {name.lower(): value for name, value in request.headers.items()},
        body_hash,
    )
    has = parts()
    return authenticate(has.database, has.cipher, has.settings, signed)


def _arn(stack: StackRow) -> str:
    return f"{ARN}{stack.project_id}:stacks/{stack.name}/{stack.uuid}"


@cfn.errorhandler(errors.OrchestratorError)
def _refused(error: errors.OrchestratorError) -> Response:
    if isinstance(error, IncompleteSignature | QueryFault):
        return _fault(400, error.heat_type, str(error))
    if isinstance(error, Refused):
        return _fault(403, error.heat_type, str(error))
    found = next((CODES[kind] for kind in type(error).__mro__ if kind in CODES), None)
    if found is None:
        return _failed(error)
    status, code, begins = found
    return _fault(status, code, f"{begins}:{error}" if begins else str(error))


@cfn.errorhandler(HTTPException)
def _http(error: HTTPException) -> Response | HTTPException:
    if error.code == 413:
        return _fault(400, "RequestLimitExceeded", "Request limit exceeded: the query is too large.")
    return error


@cfn.errorhandler(Exception)
def _failed(error: Exception) -> Response:
    log.error("request_failed", path=request.path, exc_info=error)
    return _fault(
        500, "InternalFailure", "The request processing has failed due to an internal error", "Server"
    )


def _fault(status: int, code: str, message: str, type_: str = "Sender") -> Response:
    return _answer({"ErrorResponse": {"Error": {"Type": type_, "Code": code, "Message": message}}}, status)


def _answer(document: Mapping[str, Any], status: int = 200) -> Response:
    if g.get("wanted", request.args).get("ContentType") == "JSON":  # a signal's body is no form
        return json_response(document, status)
    [(name, content)] = document.items()
    root = ElementTree.Element(name)
    _fill(root, content)
    return Response(ElementTree.tostring(root, encoding="utf-8"), status, mimetype="application/xml")


def _fill(element: ElementTree.Element, content: Any) -> None:
    if not isinstance(content, Mapping):
        element.text = "" if content is None else str(content)
        return
    for name, inner in content.items():
        _fill(ElementTree.SubElement(element, name), inner)
