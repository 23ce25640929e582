"""Repairs that wait for an approval: their list, and the answers of a user.

Lists elsewhere are refreshed while they are read; the page with the buttons is not, so that no row moves
below the pointer. An answer has the effect that was shown. If the repair is another one by then, nothing is
done, and it is shown again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from flask import Blueprint, Response, make_response, request
from werkzeug.exceptions import BadRequest

from orchestrator_console.api_client import ApiError
from orchestrator_console.context import api, may, page, path_of, redirect_to
from orchestrator_console.forms import read_form
from orchestrator_console.json_types import JsonMapping

repairs = Blueprint("repairs", __name__)

PAGE: Final = 50
VERBS: Final = {"approve": "approved", "decline": "declined"}
EFFECT: Final = "effect."  # prefix of the fields with the shown effects
ALL: Final = "all"
# What an action does, for people who have to approve it.
ACTIONS: Final = {
    "update": "Changes the properties of the object back.",
    "recover": "Lets the service repair the object.",
    "recreate": "Creates a new object.",
    "replace": "Deletes the object, and creates a new one.",
}


def pending(project: str, *, stack_id: str = "", marker: str = "", limit: int = PAGE) -> list[JsonMapping]:
    """Return repairs that wait for an approval, the oldest first; none if the caller may not list them."""
    if not may("stacks:list_repairs"):
        return []
    query = {"status": "pending", "stack": stack_id, "marker": marker, "limit": limit}
    found: list[JsonMapping] = api().get(path_of(project, "repairs"), query)["repairs"]
    return found


@repairs.get("/<project>/repairs")
def index(project: str) -> str:
    """List the pending repairs of a project, or of a stack and its nested stacks."""
    return _index(project, request.args.get("stack", ""), request.args.get("marker", ""), "", "")


@repairs.post("/<project>/repairs")
def answer(project: str) -> Response:
    """Approve or decline one of the shown repairs, or all of them."""
    values = read_form()
    verb, _, wanted = values.get("answer", "").partition(":")
    shown = {name.removeprefix(EFFECT): effect for name, effect in values.items() if name.startswith(EFFECT)}
    if verb not in VERBS or (wanted != ALL and wanted not in shown):
        raise BadRequest("The form names no shown repair.")
    chosen = shown if wanted == ALL else {wanted: shown[wanted]}
    refused = _answered(project, verb, chosen, values.get("reason", "").strip())
    stack = values.get("stack", "")
    if not refused:
        return redirect_to(".index", project=project, stack=stack or None)
    done = len(chosen) - len(refused)
    problem = (
        f"{_count(len(refused), 'repair')} changed or ended while the page was open. Nothing was done for "
        f"{'it' if len(refused) == 1 else 'them'}; what still waits is shown below."
    )
    if done:
        problem += f" {_count(done, 'repair')} {'was' if done == 1 else 'were'} {VERBS[verb]}."
    return make_response(_index(project, stack, "", problem, values.get("reason", "")), 409)


def _answered(project: str, verb: str, chosen: Mapping[str, str], reason: str) -> list[str]:
    """Send the answers; return the ids of the repairs that are no longer those that were shown."""
    refused = []
    for id_, effect in chosen.items():
        body = {"effect": effect, **({"reason": reason} if reason else {})}
        try:
            api().send("POST", path_of(project, "repairs", id_, verb), body)
        except ApiError as error:
            if error.status not in {404, 409}:
                raise
            refused.append(id_)
    return refused


def _index(project: str, stack: str, marker: str, problem: str, reason: str) -> str:
    rows = pending(project, stack_id=stack, marker=marker)
    return page(
        "repairs.html",
        section="overview",
        rows=rows,
        effects=ACTIONS,
        stack_id=stack,
        problem=problem,
        reason=reason,
        next_marker=rows[-1]["id"] if len(rows) == PAGE else "",
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
