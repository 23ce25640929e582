"""The map of a stack: groups of resources, drawn by the server as SVG."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from flask import Blueprint, request, url_for

from orchestrator_console.context import api, draft_query, page, stack_path
from orchestrator_console.drawings import map_layout
from orchestrator_console.drawings.map_layout import HEIGHT, WIDTH
from orchestrator_console.drawings.texts import anchor, shortened
from orchestrator_console.json_types import JsonMapping
from orchestrator_console.views.field import STATES

stack_map = Blueprint("stack_map", __name__)

LABEL_CHARACTERS: Final = 24
BAR: Final = WIDTH - 20


@dataclass(frozen=True, slots=True)
class BoxView:
    """A box as drawn."""

    x: int
    y: int
    label: str
    title: str
    count: int
    bars: list[tuple[str, float, float]]  # state, start and width
    levels: str
    failed: int
    drift: int
    url: str
    anchor: str  # id of its element, the same in later drawings


@stack_map.get("/<project>/stacks/<name>/<stack_id>/map")
def show(project: str, name: str, stack_id: str) -> str:
    """Show the map."""
    expanded = request.args.getlist("expand")
    query = {"expand": expanded, **draft_query()}
    body = api().get(stack_path(project, name, stack_id, "map"), query)["map"]
    return page(
        "map.html",
        name=name,
        stack_id=stack_id,
        picture=body,
        newer_in=0 if body["draft"] else body["newer_in_seconds"],
        expanded=expanded,
        states=STATES,
        **drawing(body, project, name, stack_id, expanded),
    )


def drawing(
    body: JsonMapping, project: str, name: str, stack_id: str, expanded: list[str]
) -> dict[str, object]:
    """Return the values of the drawing of a map."""
    levels = [group["levels"][0] for group in body["groups"]]
    layout = map_layout.lay_out(levels, [(edge["dependent"], edge["required"]) for edge in body["edges"]])
    boxes = [
        _box(group, place.x, place.y, project, name, stack_id, expanded)
        for group, place in zip(body["groups"], layout.boxes, strict=True)
    ]
    lines = [_line(edge, layout, body) for edge in body["edges"]]
    return {"layout": layout, "boxes": boxes, "lines": lines, "height": HEIGHT, "width": WIDTH}


def _box(
    group: JsonMapping, x: int, y: int, project: str, name: str, stack_id: str, expanded: list[str]
) -> BoxView:
    first, last = group["levels"]
    if group["expand"]:
        values = [*expanded, group["expand"]]
        url = url_for("stack_map.show", project=project, name=name, stack_id=stack_id, expand=values)
    elif group["stack_id"]:
        of = url_for("stack_map.show", project=project, name=group["stack_name"], stack_id=group["stack_id"])
        url = f"{of.removesuffix('/map')}/resources"
        if group["type"] and group["type"] != "other types":
            url += f"?{urlencode({'type': group['type']})}"
    else:
        url = ""
    counts: Mapping[str, int] = group["counts"]
    words = ", ".join(f"{number} {state.replace('_', ' ')}" for state, number in counts.items())
    return BoxView(
        x,
        y,
        shortened(group["label"], LABEL_CHARACTERS),
        f"{group['label']}: {words}",
        group["count"],
        _bars(counts, group["count"]),
        f"level {first}" if first == last else f"levels {first} to {last}",
        counts.get("failed", 0),
        counts.get("drift", 0),
        url,
        anchor("box", group["stack_id"], group["type"], first, last),
    )


def _bars(counts: Mapping[str, int], total: int) -> list[tuple[str, float, float]]:
    """Return the parts of the bar of a box; every state that occurs is at least two pixels wide."""
    shown = [(state, counts[state]) for state, _, _ in STATES if counts.get(state)]
    widths = [max(2.0, BAR * number / total) for _, number in shown]
    scale = BAR / sum(widths) if widths else 1.0
    result, at = [], 0.0
    for (state, _), width in zip(shown, widths, strict=True):
        result.append((state, round(at, 1), round(width * scale, 1)))
        at += width * scale
    return result


def _line(edge: JsonMapping, layout: map_layout.MapLayout, body: JsonMapping) -> tuple[str, float, str]:
    """Return path, width and title of an edge."""
    start, end = layout.boxes[edge["required"]], layout.boxes[edge["dependent"]]
    x1, y1, x2, y2 = start.x + WIDTH, start.y + HEIGHT // 2, end.x, end.y + HEIGHT // 2
    bend = max(30, abs(x2 - x1) // 2)
    labels = [body["groups"][edge[key]]["label"] for key in ("dependent", "required")]
    width = 1.0 + min(4.0, 0.8 * len(str(edge["count"])))
    title = f"{labels[0]} requires {labels[1]}: {edge['count']} dependencies"
    return f"M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}", width, title
