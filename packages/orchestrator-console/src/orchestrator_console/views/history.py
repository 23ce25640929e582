"""The history of a stack: field and map at a past time."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final

from flask import Blueprint, request, url_for

from orchestrator_console.context import api, draft_query, page, stack_path
from orchestrator_console.formats import moment
from orchestrator_console.json_types import JsonMapping
from orchestrator_console.views.field import STATES
from orchestrator_console.views.map import drawing

history = Blueprint("history", __name__)

STEPS: Final = 100  # positions of the slider between the oldest event and now
MAX_AT_ONCE: Final = 20_000  # resources whose past states the first response of a page contains


@dataclass(frozen=True, slots=True)
class Slider:
    """The position in the history."""

    step: int
    since: dt.datetime
    at: dt.datetime


@history.get("/<project>/stacks/<name>/<stack_id>/history")
def show(project: str, name: str, stack_id: str) -> str:
    """Show field and map at a step of the slider."""
    path, drafts = (project, name, stack_id), draft_query()
    present = api().get(stack_path(*path, "field", "summary"), drafts)["field"]
    slider = _slider(present)
    at = slider.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    query, is_past = {"at": at, **drafts}, slider.step < STEPS
    is_pending = bool(drafts) and is_past and present["count"] > MAX_AT_ONCE
    if is_pending:  # the script and the live part request the states of that time
        summary, body = {**present, "at": at, "pending": True}, None
    else:
        summary = api().get(stack_path(*path, "field", "summary"), query)["field"]
        body = api().get(stack_path(*path, "map"), query)["map"]
    return page(
        "history.html",
        name=name,
        stack_id=stack_id,
        field=summary,
        slider=slider,
        steps=STEPS,
        states=STATES,
        picture=body,
        newer_in=0 if body is None or body["draft"] else None,
        complete_url=url_for(".show", step=slider.step, at=at, **(request.view_args or {})),
        **({} if body is None else drawing(body, project, name, stack_id, [])),
    )


def _slider(summary: JsonMapping) -> Slider:
    """Return the requested position; without one the present."""
    text = request.args.get("step", "")
    step = min(int(text), STEPS) if text.isascii() and text.isdigit() and len(text) < 5 else STEPS
    now = dt.datetime.now(dt.UTC)
    since = moment(summary["history_from"]) or now
    return Slider(step, since, _requested_time() or since + (now - since) * step / STEPS)


def _requested_time() -> dt.datetime | None:
    """Return the time of the first response, so that a refreshed part shows the same."""
    try:
        return moment(request.args.get("at"))
    except ValueError:
        return None
