"""Build the timeline of an action of a stack."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

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
from orchestrator.store.pictures.timeline import PARTS, ActionEvents, BarRow, Db, LaneRows
from orchestrator.store.stacks.stacks import StackRow

LONG: Final = 40_000  # events; the timeline of a shorter action is read at once


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
    is_draft: bool = False  # operations are counted by their events, and there is no path


def version(database: Database, stack: StackRow) -> str | None:
    """Return the version of the events of a stack, None while a transaction may add earlier ones."""
    with database.borrow(hot=False) as db:
        return stored.version(db, stack.id)


def is_long(database: Database, stack: StackRow, number: int | None) -> bool:
    """Whether the action of a timeline has more events than are read at once."""
    with database.borrow(hot=False) as db:
        of = stored.action_events(db, stack, number)
        return of is not None and stored.is_long(db, of, LONG)


def draft(database: Database, stack: StackRow, number: int | None) -> Timeline | None:
    """Return the first picture of an action, None without an action: its operations are counted by their
    events, and there is no path.
    """
    with snapshot(database) as db:
        of = stored.action_events(db, stack, number)
        if of is None:
            return None
        counted = stored.counted_lanes(db, of, is_open=_is_open(stack, of))
        return _with_lanes(of, stack, counted, [], is_draft=True)


def build(database: Database, stack: StackRow, number: int | None, limit: int = MAX_BARS) -> Timeline | None:
    """Return the timeline of the last action or of a revision's; None without any. More than `limit`
    operations are combined by type.
    """
    with snapshot(database) as db:
        of = stored.action_events(db, stack, number)
        if of is None:
            return None
        if not stored.is_large(db, of, limit):
            rows = stored.bars(db, of, limit + 1)
            if len(rows) <= limit:
                return _with_bars(db, of, rows, is_open=_is_open(stack, of))
        lanes = stored.lanes(db, of)
        return _with_lanes(of, stack, lanes, _path(db, of, stack, lanes.last))


def _is_open(stack: StackRow, of: ActionEvents) -> bool:
    return stack.in_progress and of.last is None


def _with_bars(db: Db, of: ActionEvents, rows: Sequence[BarRow], *, is_open: bool) -> Timeline:
    begun_at = of.since.timestamp()
    plain = [Bar(row.name, row.type, row.started_at, *row[2:]) for row in rows]
    requires = stored.requires(db, of, [bar.name for bar in plain])
    bars = with_queues(plain, requires, begun_at)
    ends = [bar.ended_at for bar in bars if bar.ended_at is not None]
    ended_at = time.time() if is_open else max(ends, default=begun_at)
    return Timeline(
        of.action,
        of.number,
        begun_at,
        ended_at,
        is_open,
        len(bars),
        throughput([(bar.started_at, bar.ended_at) for bar in bars], begun_at, ended_at, PARTS),
        bars,
        path=critical_path(bars, requires),
        folds=folds([(bar.started_at, bar.ended_at or ended_at) for bar in bars], begun_at, ended_at),
    )


def _path(db: Db, of: ActionEvents, stack: StackRow, last: str | None) -> list[Step]:
    """Return the critical path to the resource that ended last; none for an action of the past."""
    steps, at = [], of.since.timestamp()
    is_current = last is not None and of.traversal == stack.traversal
    for name, type_, end in stored.critical_path(db, of, last or "") if is_current else ():
        steps.append(Step(name, type_, at, end))
        at = end or at
    return steps


def _with_lanes(
    of: ActionEvents, stack: StackRow, lanes: LaneRows, path: Sequence[Step], *, is_draft: bool = False
) -> Timeline:
    counted: dict[str, _Counts] = {}
    for row in lanes.rows:
        its = counted.setdefault(row.type, _Counts())
        its.starts[row.part - 1] += row.begun
        its.ends[row.part - 1] += row.ended
        its.failed += row.failed
    return Timeline(
        of.action,
        of.number,
        of.since.timestamp(),
        lanes.ended_at,
        _is_open(stack, of),
        sum(its.number for its in counted.values()),
        _throughput(counted),
        lanes=_lanes(counted),
        path=path,
        is_draft=is_draft,
    )


@dataclass(slots=True)
class _Counts:
    """The operations of a type: begins and ends per part of the time."""

    starts: list[int] = field(default_factory=lambda: [0] * PARTS)
    ends: list[int] = field(default_factory=lambda: [0] * PARTS)
    failed: int = 0

    @property
    def number(self) -> int:
        """Return the number of operations; some have no event of their begin."""
        return max(sum(self.starts), sum(self.ends))

    @property
    def open(self) -> int:
        """Return the number of those in progress."""
        return max(0, sum(self.starts) - sum(self.ends))


def _throughput(counted: Mapping[str, _Counts]) -> Throughput:
    starts, ends = (
        [sum(part) for part in zip(*each, strict=True)] or [0] * PARTS
        for each in ([its.starts for its in counted.values()], [its.ends for its in counted.values()])
    )
    return Throughput(_density(starts, ends), ends)


def _density(starts: Sequence[int], ends: Sequence[int]) -> list[int]:
    """Return the operations in progress; an end whose begin has no event is not counted."""
    return [max(0, number) for number in lanes_density(starts, ends)]


def _lanes(counted: Mapping[str, _Counts]) -> list[Lane]:
    """Return a lane per type, those with most operations first."""
    lanes = [
        Lane(type_, its.number, its.failed, its.open, _density(its.starts, its.ends))
        for type_, its in counted.items()
    ]
    return sorted(lanes, key=lambda lane: (-lane.count, lane.type))[:MAX_BARS]
