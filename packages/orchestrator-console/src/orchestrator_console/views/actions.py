"""Create, update, delete, and the further actions of a stack; each with a page that explains it first.

A rejected form is shown again with everything that was typed.
"""

from __future__ import annotations

from typing import Final

import orjson
from flask import Blueprint, Response, make_response
from werkzeug.exceptions import BadRequest
from werkzeug.exceptions import NotFound as NoSuchPath

from orchestrator_console import plans
from orchestrator_console.actions import BY_NAME, offered
from orchestrator_console.api_client import ApiError
from orchestrator_console.context import api, page, path_of, redirect_to, stack_path
from orchestrator_console.forms import faults_of, read_form, stack_body
from orchestrator_console.json_types import JsonMapping, JsonObject
from orchestrator_console.plans import Plan
from orchestrator_console.views.stack import BASE, read_stack

actions = Blueprint("actions", __name__)

SECTIONS: Final = ("parameters", "parameter_defaults", "resource_registry", "event_sinks")  # of a form
PREVIEW: Final = "preview"
MASK: Final = "******"  # in place of a hidden value
MAX_SHOWN_TEMPLATE: Final = 2 << 20  # bytes; larger templates are not put into the form
REVISION_CHANGED: Final = "RevisionChanged"  # type of the error of the API
CHANGED: Final = (
    "The stack was changed while this page was open: it has revision {now}, the form began with {before}. "
    "Compare the revisions; send the form again to replace the newer revision."
)


@actions.get("/<project>/create")
def create_form(project: str) -> str:
    """Show the form of a new stack."""
    return page(
        "create.html", section="stacks", project=project, values={"rollback": "yes"}, faults=(), plan=None
    )


@actions.post("/<project>/create")
def create(project: str) -> Response:
    """Preview or create a stack."""
    values = read_form()
    name = values.get("stack_name", "").strip()
    try:
        body = {"stack_name": name} | stack_body(values)
        if values.get("intent") == PREVIEW:
            answer = api().send("POST", path_of(project, "stacks", "preview"), body)["stack"]
            return _create_page(project, values, [], plans.of_create(answer), 200)
        answer = api().send("POST", path_of(project, "stacks"), body)["stack"]
    except ApiError as error:
        return _create_page(project, values, faults_of(error.message, error.faults), None, error.status)
    except BadRequest as error:
        return _create_page(project, values, [{"message": error.description}], None, 400)
    return redirect_to("stack.summary", project=project, name=name, stack_id=answer["id"])


@actions.get(f"{BASE}/actions/<action>")
def form(project: str, name: str, stack_id: str, action: str) -> Response:
    """Show the form of an update, or the effect of another action."""
    if action not in BY_NAME:
        raise NoSuchPath
    if action == "update":
        return _update_form(project, name, stack_id)
    return _confirmation(project, name, stack_id, action, "", 200)


@actions.post(f"{BASE}/actions/<action>")
def act(project: str, name: str, stack_id: str, action: str) -> Response:
    """Preview or start an action."""
    if action not in BY_NAME:
        raise NoSuchPath
    if action == "update":
        return _update(project, name, stack_id)
    values, path = read_form(), stack_path(project, name, stack_id)
    try:
        if action == "delete":
            api().send("DELETE", path)
        elif action == "converge":
            planned = values.get("intent") == PREVIEW
            answer = api().send("POST", f"{path}/actions", {"converge": {"plan": planned}})["converge"]
            if planned:
                return _confirmation(project, name, stack_id, action, "", 200, answer)
        else:
            api().send("POST", f"{path}/actions", {action: None})
    except ApiError as error:
        if error.status in {401, 404}:
            raise
        return _confirmation(project, name, stack_id, action, error.message, error.status)
    return redirect_to("stack.summary", project=project, name=name, stack_id=stack_id)


def _create_page(
    project: str, values: dict[str, str], faults: list[JsonMapping], plan: Plan | None, status: int
) -> Response:
    text = page("create.html", section="stacks", project=project, values=values, faults=faults, plan=plan)
    return make_response(text, status)


def _update_form(project: str, name: str, stack_id: str) -> Response:
    path, stack = stack_path(project, name, stack_id), read_stack(project, name, stack_id)
    template, _ = api().data(f"{path}/template")
    too_large = len(template) > MAX_SHOWN_TEMPLATE
    environment = api().get(f"{path}/environment")
    values = {
        "template": ""
        if too_large
        else orjson.dumps(orjson.loads(template), option=orjson.OPT_INDENT_2).decode(),
        "environment": _environment_text(environment),
        "tags": ",".join(stack["tags"] or ()),
        "timeout_mins": str(stack["timeout_mins"] or ""),
        "rollback": "" if stack["disable_rollback"] else "yes",
        "revision": str(_revision(path)),
        "is_unchanged": "yes",
    }
    return _update_page(stack, values, [], None, 200)


def _environment_text(environment: JsonObject) -> str:
    """Return an environment for the form, without masked values: an update keeps the values not given."""
    used = {key: value for key, value in environment.items() if value and key in SECTIONS}
    for key in ("parameters", "parameter_defaults"):
        if key in used:
            used[key] = {name: value for name, value in used[key].items() if value != MASK}
    used = {key: value for key, value in used.items() if value and value != {"resources": {}}}
    return orjson.dumps(used, option=orjson.OPT_INDENT_2).decode() if used else ""


def _update(project: str, name: str, stack_id: str) -> Response:
    values, path = read_form(), stack_path(project, name, stack_id)
    stack = read_stack(project, name, stack_id)
    try:
        body = stack_body(values)
        if values.get("intent") == PREVIEW:
            answer = api().send("PATCH", f"{path}/preview", body, query={"show_nested": "true"})
            return _update_page(stack, values, [], plans.of_update(answer["resource_changes"]), 200)
        body["expected_revision"] = _number(values.get("revision", ""))
        api().send("PATCH", path, body)
    except ApiError as error:
        if error.status == 401:
            raise
        if error.type == REVISION_CHANGED:
            now = str(_revision(path))
            text = CHANGED.format(now=now, before=values["revision"])
            return _update_page(stack, values | {"revision": now}, [{"message": text}], None, 409)
        return _update_page(stack, values, faults_of(error.message, error.faults), None, error.status)
    except BadRequest as error:
        return _update_page(stack, values, [{"message": error.description}], None, 400)
    return redirect_to("stack.summary", project=project, name=name, stack_id=stack_id)


def _number(text: str) -> int:
    """Return the number of the revision with which the form began.

    Raises:
        BadRequest: it is not a number.
    """
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise BadRequest("The form has no revision: open it again.")
    return int(text)


def _revision(path: str) -> int:
    """Return the number of the newest revision."""
    [newest] = api().get(f"{path}/revisions", {"limit": 1})["revisions"]
    return int(newest["number"])


def _update_page(
    stack: JsonObject, values: dict[str, str], faults: list[JsonMapping], plan: Plan | None, status: int
) -> Response:
    text = page("update.html", stack=stack, tab="update", values=values, faults=faults, plan=plan, live=False)
    return make_response(text, status)


def _confirmation(
    project: str,
    name: str,
    stack_id: str,
    action: str,
    problem: str,
    status: int,
    plan: JsonMapping | None = None,
) -> Response:
    stack = read_stack(project, name, stack_id)
    why = api().get(stack_path(project, name, stack_id, "why"), {"limit": 1})["why"]
    [offer] = [offer for offer in offered(stack, why["accepts"]) if offer.action.name == action]
    text = page("confirm.html", stack=stack, tab=action, offer=offer, problem=problem, plan=plan, live=False)
    return make_response(text, status)
