"""Build the timeline of an action of a stack."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from orchestrator.engine.pictures.timeline import (
    MAX_BARS,
    Bar,
    Fold,
    Step,
    Throughput,
    critical_path,
    folds,
    lanes_density,
    throughput,
    with_queues,
)
from orchestrator.store.connections.database import Database
from orchestrator.store.pictures import timeline as stored
from orchestrator.store.pictures.field import snapshot
from orchestrator.store.pictures.timeline import PARTS, LaneRow
from orchestrator.store.stacks.stacks import StackRow


@dataclass(frozen=True, slots=True)
class Lane:
    """The operations of a type."""

    type: str
    count: int
    failed: int
    open: int
    density: list[int]  # operations in progress, per part of the time


@dataclass(frozen=True, slots=True)
class Timeline:
    """The operations of an action: a bar for each, or a lane per type."""

    action: str
    revision: int
    begun_at: float
    ended_at: float  # now, if in progress
    in_progress: bool
    count: int
    throughput: Throughput
    bars: Sequence[Bar] = ()
    lanes: Sequence[Lane] = ()
    path: Sequence[Step] = ()
    folds: Sequence[Fold] = field(default=())


def build(database: Database, stack: StackRow, number: int | None, limit: int = MAX_BARS) -> Timeline | None:
    """Return the timeline of the last action or of a revision's; None without any. More than `limit`
    operations are combined by type.
    """
    with snapshot(database) as db:
        of = stored.action_events(db, stack, number)
        if of is None:
            return None
        begun_at, now = of.since.timestamp(), time.time()
        is_large = stored.is_large(db, of, limit)
        rows = [] if is_large else stored.bars(db, of, limit + 1)
        if not is_large and len(rows) <= limit:
            plain = [Bar(row.name, row.type, row.started_at, *row[2:]) for row in rows]
            requires = stored.requires(db, of, [bar.name for bar in plain])
            bars = with_queues(plain, requires, begun_at)
            open_ = stack.in_progress and of.last is None
            ends = [bar.ended_at for bar in bars if bar.ended_at is not None]
            ended_at = now if open_ else max(ends, default=begun_at)
            spans = [(bar.started_at, bar.ended_at or ended_at) for bar in bars]
            return Timeline(
                of.action,
                of.number,
                begun_at,
                ended_at,
                open_,
                len(bars),
                throughput([(bar.started_at, bar.ended_at) for bar in bars], begun_at, ended_at, PARTS),
                bars,
                path=critical_path(bars, requires),
                folds=folds(spans, begun_at, ended_at),
            )
        lanes = stored.lanes(db, of)
        is_current = bool(lanes) and of.traversal == stack.traversal
        path = stored.critical_path(db, of, lanes[0].last) if is_current else []
    steps, at = [], begun_at
    for name, type_, end in path:
        steps.append(Step(name, type_, at, end))
        at = end or at
    open_ = stack.in_progress and of.last is None
    return Timeline(
        of.action,
        of.number,
        begun_at,
        lanes[0].ended_at if lanes else now,
        open_,
        sum(row.number for row in lanes),
        _throughput(lanes),
        lanes=_lanes(lanes),
        path=steps,
    )


def _throughput(rows: Sequence[LaneRow]) -> Throughput:
    starts, ends = [0] * PARTS, [0] * PARTS
    for row in rows:
        starts[row.start - 1] += row.number
        if not row.open and row.finish is not None:
            ends[row.finish - 1] += row.number
    return Throughput(lanes_density(starts, ends), ends)


def _lanes(rows: Sequence[LaneRow]) -> list[Lane]:
    """Return a lane per type, those with most operations first."""
    starts: dict[str, list[int]] = {}
    ends: dict[str, list[int]] = {}
    numbers: dict[str, list[int]] = {}
    for row in rows:
        its = numbers.setdefault(row.type, [0, 0, 0])
        its[0] += row.number
        its[1] += row.number if row.failed else 0
        its[2] += row.number if row.open else 0
        starts.setdefault(row.type, [0] * PARTS)[row.start - 1] += row.number
        finish = PARTS if row.open or row.finish is None else row.finish
        ends.setdefault(row.type, [0] * PARTS)[finish - 1] += row.number
    lanes = [
        Lane(type_, count, failed, open_, lanes_density(starts[type_], ends[type_]))
        for type_, (count, failed, open_) in numbers.items()
    ]
    return sorted(lanes, key=lambda lane: (-lane.count, lane.type))[:MAX_BARS]
