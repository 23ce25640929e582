"""The history of a stack: field and map at a past time."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final

from flask import Blueprint, request

from api.console.context import api, page, stack_path
from api.console.formats import moment
from api.console.views.field import STATES
from api.console.views.map import drawing
from orchestrator.json_types import JsonMapping

history = Blueprint("history", __name__)

STEPS: Final = 100  # positions of the slider between the oldest event and now


@dataclass(frozen=True, slots=True)
class Slider:
    """The position in the history."""

    step: int
    since: dt.datetime
    at: dt.datetime


@history.get("/<project>/stacks/<name>/<stack_id>/history")
def show(project: str, name: str, stack_id: str) -> str:
    """Show field and map at a step of the slider."""
    path = (project, name, stack_id)
    slider = _slider(api().get(stack_path(*path, "field", "summary"))["field"])
    at = slider.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    summary = api().get(stack_path(*path, "field", "summary"), {"at": at})["field"]
    body = api().get(stack_path(*path, "map"), {"at": at})["map"]
    return page(
        "history.html",
        name=name,
        stack_id=stack_id,
        field=summary,
        slider=slider,
        steps=STEPS,
        states=STATES,
        picture=body,
        **drawing(body, project, name, stack_id, []),
    )


def _slider(summary: JsonMapping) -> Slider:
    """Return the requested position; without one the present."""
    text = request.args.get("step", "")
    step = min(int(text), STEPS) if text.isascii() and text.isdigit() and len(text) < 5 else STEPS
    now = dt.datetime.now(dt.UTC)
    since = moment(summary["history_from"]) or now
    return Slider(step, since, since + (now - since) * step / STEPS)
