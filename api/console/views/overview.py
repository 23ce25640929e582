"""The overview of a project: its stacks by state, slow operations, failures by cause, and workers."""

from __future__ import annotations

from typing import Final

from flask import Blueprint

from api.console import flower
from api.console.context import api, page, path_of

overview = Blueprint("overview", __name__)

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
        flower=flower.address(),
        total=sum(found["counts"].values()),
    )
