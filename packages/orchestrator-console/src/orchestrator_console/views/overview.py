"""The overview of a project: its stacks by state, slow operations, failures by cause, and workers."""

from __future__ import annotations

from typing import Final

from flask import Blueprint

from orchestrator_console import flower
from orchestrator_console.context import api, page, path_of
from orchestrator_console.views import repairs

overview = Blueprint("overview", __name__)

MAX_REPAIRS: Final = 5  # shown of those that wait for an approval
STATES: Final = (("IN_PROGRESS", "In progress"), ("FAILED", "Failed"), ("COMPLETE", "Complete"))


@overview.get("/<project>/")
def show(project: str) -> str:
    """Show the overview."""
    found = api().get(path_of(project, "overview"))["overview"]
    counts = [
        (status, label, sum(number for state, number in found["counts"].items() if state.endswith(status)))
        for status, label in STATES
    ]
    return page(
        "overview.html",
        section="overview",
        overview=found,
        counts=counts,
        repairs=repairs.pending(project, limit=MAX_REPAIRS),
        max_repairs=MAX_REPAIRS,
        effects=repairs.ACTIONS,
        flower=flower.address(),
        total=sum(found["counts"].values()),
    )
