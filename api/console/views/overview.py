"""The overview of a project: its stacks by state, and those that need attention."""

from __future__ import annotations

from typing import Final

from flask import Blueprint

from api.console.context import api, page, path_of

overview = Blueprint("overview", __name__)

MAX_LISTED: Final = 10
STATES: Final = (("IN_PROGRESS", "In progress"), ("FAILED", "Failed"), ("COMPLETE", "Complete"))


@overview.get("/<project>/")
def show(project: str) -> str:
    """Show the overview."""
    listed = {
        status: api().get(
            path_of(project, "stacks"), {"status": status, "with_count": "true", "limit": MAX_LISTED}
        )
        for status, _ in STATES
    }
    counts = [(status, label, listed[status]["count"]) for status, label in STATES]
    return page(
        "overview.html",
        section="overview",
        counts=counts,
        total=sum(count for _, _, count in counts),
        busy=listed["IN_PROGRESS"]["stacks"],
        failed=listed["FAILED"]["stacks"],
    )
