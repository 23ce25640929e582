"""Templates and revisions: the history of a stack, the differences, and rollback."""

from __future__ import annotations

from typing import Final

import orjson
from flask import Blueprint, Response, make_response, request
from werkzeug.exceptions import BadRequest

from orchestrator_console.api_client import ApiError
from orchestrator_console.context import api, may, page, redirect_to, stack_path
from orchestrator_console.views.stack import BASE, read_stack

revisions = Blueprint("revisions", __name__)

PAGE: Final = 25
MAX_TEMPLATE: Final = 1 << 20  # bytes shown


@revisions.get(f"{BASE}/revisions")
def index(project: str, name: str, stack_id: str) -> str:
    """List the revisions, the newest first."""
    query: dict[str, object] = {"marker": _number("marker"), "limit": PAGE}
    rows = api().get(stack_path(project, name, stack_id, "revisions"), query)["revisions"]
    return page(
        "revisions.html",
        stack=read_stack(project, name, stack_id),
        tab="revisions",
        revisions=rows,
        next_marker=rows[-1]["number"] if len(rows) == PAGE else "",
    )


@revisions.get(f"{BASE}/diff")
def diff(project: str, name: str, stack_id: str) -> str:
    """Show the differences between two revisions."""
    before, after = _number("before"), _number("after")
    path = stack_path(project, name, stack_id, "revisions", before, "diff", after)
    return page(
        "diff.html",
        stack=read_stack(project, name, stack_id),
        tab="revisions",
        diff=api().get(path)["diff"],
    )


@revisions.get(f"{BASE}/revisions/<number>")
def one(project: str, name: str, stack_id: str, number: str) -> str:
    """Show a revision: its effects, parameters, template and environment."""
    return _one(project, name, stack_id, number, "")


@revisions.get(f"{BASE}/template")
def template(project: str, name: str, stack_id: str) -> Response:
    """Redirect to the newest revision, which has the template."""
    rows = api().get(stack_path(project, name, stack_id, "revisions"), {"limit": 1})["revisions"]
    values = {"project": project, "name": name, "stack_id": stack_id}
    if not rows:
        return redirect_to("revisions.index", **values)
    return redirect_to("revisions.one", number=rows[0]["number"], **values)


@revisions.post(f"{BASE}/revisions/<number>/rollback")
def rollback(project: str, name: str, stack_id: str, number: str) -> Response:
    """Roll the stack back to a revision."""
    try:
        api().send("POST", stack_path(project, name, stack_id, "revisions", number, "rollback"))
    except ApiError as error:
        if error.status in {401, 404}:
            raise
        return make_response(_one(project, name, stack_id, number, error.message), error.status)
    return redirect_to("stack.summary", project=project, name=name, stack_id=stack_id)


def _one(project: str, name: str, stack_id: str, number: str, problem: str) -> str:
    path = stack_path(project, name, stack_id, "revisions", number)
    shown = api().get(path)["revision"]
    text, environment = b"", {}
    if may("stacks:show_revision"):
        text, _ = api().data(f"{path}/template")
        environment = api().get(f"{path}/environment")
    return page(
        "revision.html",
        stack=read_stack(project, name, stack_id),
        tab="template" if shown["is_desired"] else "revisions",
        revision=shown,
        problem=problem,
        template=_indented(text) if len(text) <= MAX_TEMPLATE else "",
        template_size=len(text),
        environment={key: value for key, value in environment.items() if value},
    )


def _indented(text: bytes) -> str:
    return orjson.dumps(orjson.loads(text or b"null"), option=orjson.OPT_INDENT_2).decode()


def _number(name: str) -> str:
    """Return a number in the query, empty if it is absent.

    Raises:
        BadRequest: it is not a number.
    """
    text = request.args.get(name, "")
    if text and not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise BadRequest(f"Not the number of a revision: {text[:40]}")
    return text
