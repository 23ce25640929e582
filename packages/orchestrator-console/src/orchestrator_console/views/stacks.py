"""The list of stacks: search, filters, pages, and nested stacks below their owners."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from flask import Blueprint, request

from orchestrator_console.context import api, marker_of, may, page, path_of
from orchestrator_console.json_types import JsonMapping
from orchestrator_console.progress import Progress

stacks = Blueprint("stacks", __name__)

PAGE: Final = 25
MAX_NESTED: Final = 500  # nested stacks of a page
STATES: Final = ("IN_PROGRESS", "FAILED", "COMPLETE")


@dataclass(frozen=True, slots=True)
class Line:
    """A stack in the list."""

    stack: JsonMapping
    progress: Progress | None
    nested: list[JsonMapping]


@stacks.get("/<project>/stacks")
def index(project: str) -> str:
    """List the stacks."""
    query = _query()
    extras = {"limit": PAGE, "with_count": "true", "with_progress": _if_permitted("stacks:progress")}
    listed = api().get(path_of(project, "stacks"), query | extras | _drift())
    rows = listed["stacks"]
    nested = _nested(project, rows)
    lines = [
        Line(
            row,
            Progress.of(row["progress"]) if "progress" in row else None,
            nested[row["id"]],
        )
        for row in rows
    ]
    return page(
        "stacks.html",
        section="stacks",
        lines=lines,
        count=listed["count"],
        query=query,
        states=STATES,
        next_marker=marker_of(listed, rows[-1]["id"] if rows else ""),
        parent=request.args.get("parent", ""),
    )


def _query() -> dict[str, object]:
    """Return the filters of the list, as the API has them."""
    values = {name: request.args.get(name, "").strip() for name in ("search", "status", "tags", "marker")}
    if parent := request.args.get("parent"):
        values |= {"owner_id": parent, "show_nested": "true"}
    return {name: value for name, value in values.items() if value}


def _nested(project: str, rows: list[JsonMapping]) -> dict[str, list[JsonMapping]]:
    """Return the nested stacks of the listed stacks, by the id of their owner."""
    found: dict[str, list[JsonMapping]] = defaultdict(list)
    if rows:
        query = {"owner_id": [row["id"] for row in rows], "show_nested": "true", "limit": MAX_NESTED}
        for child in api().get(path_of(project, "stacks"), query | _drift())["stacks"]:
            found[child["parent"]].append(child)
    return found


def _drift() -> dict[str, object]:
    """Return the option of a list of stacks with their drift."""
    return {"with_drift": _if_permitted("observations:index")}


def _if_permitted(right: str) -> str:
    return str(may(right)).lower()
