"""Resolution of stacks in paths. A path with name and id is canonical; name, id or ARN alone redirect to it
(docs/internals/rest-api.md §3).
"""

from __future__ import annotations

from dataclasses import replace

from flask import Blueprint, Response, g, request

from api.dependencies import caller, dependencies
from api.response.serialization import Links, below, json_response
from orchestrator.errors import NotFound
from orchestrator.store.stacks import stacks
from orchestrator.store.stacks.stacks import StackIdentity, StackRow

lookup = Blueprint("lookup", __name__)

EVERY_VERB = ["GET", "POST", "PUT", "PATCH", "DELETE"]
READ_BELOW = (
    "resources", "events", "template", "actions", "environment", "files", "revisions", "failures", "why",
    "progress", "hooks",
)  # fmt: skip
POSTED_BELOW = ("resources", "events", "template", "actions")


def get_stack(stack_name: str, stack_id: str) -> StackRow:
    """Return the caller's stack of this name and id.

    Raises:
        NotFound: no stack matches both.
    """
    stack = stacks.get(dependencies().database, caller().scope, stack_name, stack_id)
    if stack is None or not _is_open(stack):
        raise NotFound("Stack", stack_name)
    _act_within(stack.project_id)
    return stack


def locate_stack(stack_name: str, stack_id: str) -> StackIdentity:
    """Return the identity of the caller's stack; a cheaper `get_stack` for frequent requests.

    Raises:
        NotFound: no stack matches both.
    """
    bearer = caller().bearer
    if bearer is None:
        stack = stacks.locate(dependencies().database, caller().scope, stack_name, stack_id)
    elif (stack_name, stack_id.lower()) == (bearer.stack_name, bearer.stack_uuid):
        stack = StackIdentity(bearer.stack_id, bearer.stack_uuid, bearer.stack_name)
    else:
        stack = None
    if stack is None:
        raise NotFound("Stack", stack_name)
    if bearer is None:
        _act_within(stack.project_id)
    return stack


def _act_within(project_id: str) -> None:
    """Switch an admin to the project of the stack."""
    if caller().is_admin:
        g.caller = replace(caller(), project_id=project_id)


def _is_open(stack: StackRow) -> bool:
    """Whether the caller may see the stack: a resource credential sees only its own stack."""
    bearer = caller().bearer
    return bearer is None or bearer.stack_id == stack.id


@lookup.route("/<project_id>/stacks/<stack_name>", methods=EVERY_VERB)
def by_name(project_id: str, stack_name: str) -> Response:  # noqa: ARG001 - every path starts with it
    """Redirect to the stack of this name or id; the caller repeats the request with its body."""
    return _redirect(_find(stack_name), stack_name)


@lookup.route("/<project_id>/stacks/arn:<path:rest>", methods=EVERY_VERB)
def by_arn(project_id: str, rest: str) -> Response:
    """Redirect to the stack of an ARN, `arn:openstack:heat::<project>:stacks/<name>/<id>`, and to the path
    below it.
    """
    arn = f"arn:{rest}"
    head, _, path = arn.partition(":stacks/")
    name, _, path = path.partition("/")
    stack_id, *under = path.split("/")
    strange = not all(under) or not {".", ".."}.isdisjoint(under)
    if head != f"arn:openstack:heat::{project_id}" or strange:
        raise NotFound("Stack", arn)
    return _redirect(stacks.get(dependencies().database, caller().scope, name, stack_id), name, *under)


def _below(project_id: str, stack_name: str) -> Response:  # noqa: ARG001 - every path starts with it
    """Redirect to the same collection of the stack of this name or id."""
    return _redirect(_find(stack_name), stack_name, request.path.rpartition("/")[2])


def _find(name_or_id: str) -> StackRow | None:
    asks = caller()
    return stacks.find(dependencies().database, asks.project_id, name_or_id, everywhere=asks.is_admin)


for _collection in READ_BELOW:
    lookup.add_url_rule(
        f"/<project_id>/stacks/<stack_name>/{_collection}",
        endpoint=f"below_{_collection}",
        view_func=_below,
        methods=["GET", "POST"] if _collection in POSTED_BELOW else ["GET"],
    )


def _redirect(stack: StackRow | None, identifier: str, *under: str) -> Response:
    """Return the 302 response: an absolute URL with the caller's prefix and query."""
    if stack is None or not _is_open(stack):
        raise NotFound("Stack", identifier)
    url = below(Links().of(stack), *under)
    query = request.query_string.decode("latin-1")
    message = "The resource was found at a different location; repeat the request there."
    response = json_response({"message": message, "code": "302 Found", "title": "Found"}, 302)
    response.headers["Location"] = f"{url}?{query}" if query else url
    return response
