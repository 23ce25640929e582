"""The timeline of a stack's action, drawn by the server as SVG."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

import orjson
from flask import Blueprint, request, url_for

from orchestrator_console.context import api, draft_query, page, stack_path
from orchestrator_console.drawings.texts import anchor, shortened
from orchestrator_console.drawings.time_axis import Axis, Fold
from orchestrator_console.formats import duration, moment
from orchestrator_console.json_types import JsonMapping

timeline = Blueprint("timeline", __name__)

LABELS: Final = 230  # width of the column of names, in pixels
PLOT: Final = 930
ROW: Final = 20
LANE: Final = 44
CHART: Final = 90  # height of the throughput
TOP: Final = 26
TICKS: Final = 6
MAX_LISTED: Final = 50  # steps of the critical path in the list
LABEL_CHARACTERS: Final = 30


@dataclass(frozen=True, slots=True)
class Part:
    """A phase of a bar as drawn."""

    phase: str
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the timeline: a bar, or the lane of a type."""

    y: int
    label: str
    title: str
    url: str
    anchor: str  # id of its element, the same in later drawings
    critical: bool = False
    parts: list[Part] = field(default_factory=list)
    area: str = ""  # path of the density


@dataclass(frozen=True, slots=True)
class Chart:
    """Operations in progress and ended over time."""

    series: str  # JSON
    area: str  # path of those in progress
    line: str  # path of those that ended
    most: int  # in progress at once
    ended: int


@timeline.get("/<project>/stacks/<name>/<stack_id>/timeline")
def show(project: str, name: str, stack_id: str) -> str:
    """Show the timeline."""
    query = {"revision": request.args.get("revision", ""), **draft_query()}
    body = api().get(stack_path(project, name, stack_id, "timeline"), query)["timeline"]
    begun, ended = _seconds(body["begun_at"]), _seconds(body["ended_at"])
    folded = [Fold(_seconds(idle["begun_at"]), _seconds(idle["ended_at"])) for idle in body["idle"]]
    axis = Axis(begun, ended, folded)
    base = url_for(".show", project=project, name=name, stack_id=stack_id).removesuffix("/timeline")
    if body["bars"]:
        lines = [_bar(bar, nth, axis, ended, base) for nth, bar in enumerate(body["bars"])]
        height = TOP + ROW * len(lines) + 8
    else:
        lines = [_lane(lane, nth, base) for nth, lane in enumerate(body["lanes"])]
        height = TOP + LANE * len(lines) + 8
    path = body["critical_path"]
    return page(
        "timeline.html",
        name=name,
        stack_id=stack_id,
        base=base,
        picture=body,
        chart=_chart(body["throughput"], ended - begun),
        lines=lines,
        ticks=_ticks(axis, begun, ended, folded),
        folds=[_fold(fold, axis) for fold in folded],
        seconds=ended - begun,
        steps=[_step(step, ended, base) for step in path[-MAX_LISTED:]],
        omitted=max(0, len(path) - MAX_LISTED),
        width=LABELS + PLOT + 10,
        height=height,
        labels=LABELS,
        row=ROW,
        chart_height=CHART,
        live=not query["revision"],
        newer_in=0 if body["draft"] else body["newer_in_seconds"],
    )


def _chart(throughput: JsonMapping, seconds: float) -> Chart:
    """Return the chart of the throughput: its values for the script, and its paths without scripts."""
    in_progress, ended = throughput["in_progress"], list(accumulate(throughput["ended"]))
    parts = max(1, len(ended))
    series = {
        "seconds": [round(seconds * (part + 1) / parts, 3) for part in range(len(ended))],
        "in_progress": in_progress,
        "ended": ended,
    }
    width, most, total = PLOT / parts, max([1, *in_progress]), max([1, *ended])
    area, line = [f"M{LABELS} {CHART}"], [f"M{LABELS} {CHART}"]
    for part, (number, sum_) in enumerate(zip(in_progress, ended, strict=True)):
        x = LABELS + (part + 1) * width
        area.append(f"V{CHART * (1 - number / most):.1f}H{x:.1f}")
        line.append(f"L{x:.1f} {CHART * (1 - sum_ / total):.1f}")
    return Chart(
        orjson.dumps(series).decode(),
        "".join(area) + f"V{CHART}Z",
        "".join(line),
        most,
        sum(throughput["ended"]),
    )


def _seconds(text: str | None) -> float:
    at = moment(text)
    return 0.0 if at is None else at.timestamp()


def _bar(bar: JsonMapping, nth: int, axis: Axis, now: float, base: str) -> Line:
    queued, started = _seconds(bar["queued_at"]), _seconds(bar["started_at"])
    ended = _seconds(bar["ended_at"]) if bar["ended_at"] else now
    waiting = min(max(_seconds(bar["waiting_at"]), started), ended) if bar["waiting_at"] else ended
    end_phase = "failed" if bar["failed"] else "ready" if bar["ended_at"] else "open"
    spans = (("queued", queued, started), ("provider", started, waiting), ("waiting", waiting, ended))
    parts = [_part(phase, start, end, axis) for phase, start, end in spans if end > start]
    mark = _part(end_phase, ended, ended, axis)
    words = [
        f"queued {duration(started - queued)}",
        f"at the provider {duration(waiting - started)}",
        f"waiting for ready {duration(ended - waiting)}",
        {"failed": "failed", "ready": "ready", "open": "in progress"}[end_phase],
    ]
    critical = " (critical path)" if bar["critical"] else ""
    return Line(
        TOP + nth * ROW,
        shortened(bar["resource_name"], LABEL_CHARACTERS),
        f"{bar['resource_name']}, {bar['resource_type']}: {', '.join(words)}{critical}",
        f"{base}/resources/{bar['resource_name']}",
        anchor("bar", bar["resource_name"]),
        bar["critical"],
        [*parts, Part(mark.phase, mark.x - 1.5, 3.0)],
    )


def _part(phase: str, start: float, end: float, axis: Axis) -> Part:
    x = LABELS + PLOT * axis.place(start)
    return Part(phase, round(x, 1), round(max(1.0, LABELS + PLOT * axis.place(end) - x), 1))


def _lane(lane: JsonMapping, nth: int, base: str) -> Line:
    density, y = lane["density"], TOP + nth * LANE
    most, bottom, width = max([1, *density]), y + LANE - 6, PLOT / max(1, len(density))
    points = [f"M{LABELS} {bottom}"]
    for part, number in enumerate(density):
        top = bottom - (LANE - 12) * number / most
        points.append(f"V{top:.1f}H{LABELS + (part + 1) * width:.1f}")
    failed = f", {lane['failed']} failed" if lane["failed"] else ""
    open_ = f", {lane['in_progress']} in progress" if lane["in_progress"] else ""
    return Line(
        y,
        shortened(lane["resource_type"], LABEL_CHARACTERS - 6) + (" ✕" if lane["failed"] else ""),
        f"{lane['resource_type']}: {lane['count']} operations, at most {most} at once{open_}{failed}",
        f"{base}/resources?type={lane['resource_type']}",
        anchor("lane", lane["resource_type"]),
        area=f"{''.join(points)}V{bottom}Z",
    )


def _ticks(axis: Axis, begun: float, ended: float, folded: list[Fold]) -> list[tuple[float, str]]:
    """Return places and labels of times since the start; folded times have none."""
    result: list[tuple[float, str]] = []
    for nth in range(TICKS + 1):
        time = begun + (ended - begun) * nth / TICKS
        place = LABELS + PLOT * axis.place(time)
        crowded = result and place - result[-1][0] < 60
        if not crowded and not any(fold.begun_at < time < fold.ended_at for fold in folded):
            result.append((round(place, 1), duration(time - begun) if nth else "0 s"))
    return result


def _fold(fold: Fold, axis: Axis) -> tuple[float, float, str]:
    x, end = (LABELS + PLOT * axis.place(time) for time in (fold.begun_at, fold.ended_at))
    return round(x, 1), round(end - x, 1), f"idle for {duration(fold.ended_at - fold.begun_at)}"


def _step(step: JsonMapping, now: float, base: str) -> dict[str, str]:
    begun = _seconds(step["begun_at"])
    ended = _seconds(step["ended_at"]) if step["ended_at"] else now
    return {
        "name": step["resource_name"],
        "type": step["resource_type"],
        "duration": duration(max(0.0, ended - begun)),
        "url": f"{base}/resources/{step['resource_name']}",
    }
