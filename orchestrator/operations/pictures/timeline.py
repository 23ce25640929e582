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
from orchestrator.store.pictures.timeline import PARTS, ActionEvents, BarRow, CountRow, Db, LaneRow
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
    """Return the first picture of an action: the begins and ends of its operations, without their names; None
    without an action.
    """
    with snapshot(database) as db:
        of = stored.action_events(db, stack, number)
        if of is None:
            return None
        last = None if _is_open(stack, of) else stored.last_event(db, of)
        ended_at = (last or time.time()) + 1e-3
        rows = stored.counts(db, of, ended_at)
    counted = _of_events(rows)
    return Timeline(
        of.action,
        of.number,
        of.since.timestamp(),
        ended_at,
        _is_open(stack, of),
        sum(counts.number for counts in counted.values()),
        _throughput(counted),
        lanes=_lanes(counted),
        is_draft=True,
    )


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
        return _with_lanes(db, of, stack)


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


def _with_lanes(db: Db, of: ActionEvents, stack: StackRow) -> Timeline:
    begun_at, rows = of.since.timestamp(), stored.lanes(db, of)
    is_current = bool(rows) and of.traversal == stack.traversal
    steps, at = [], begun_at
    for name, type_, end in stored.critical_path(db, of, rows[0].last) if is_current else ():
        steps.append(Step(name, type_, at, end))
        at = end or at
    counted = _of_operations(rows)
    return Timeline(
        of.action,
        of.number,
        begun_at,
        rows[0].ended_at if rows else time.time(),
        _is_open(stack, of),
        sum(row.number for row in rows),
        _throughput(counted),
        lanes=_lanes(counted),
        path=steps,
    )


@dataclass(slots=True)
class _Counts:
    """The operations of a type: begins and ends per part of the time."""

    starts: list[int] = field(default_factory=lambda: [0] * PARTS)
    ends: list[int] = field(default_factory=lambda: [0] * PARTS)
    number: int = 0
    failed: int = 0
    open: int = 0


def _of_operations(rows: Sequence[LaneRow]) -> dict[str, _Counts]:
    result: dict[str, _Counts] = {}
    for row in rows:
        its = result.setdefault(row.type, _Counts())
        its.starts[row.start - 1] += row.number
        its.number += row.number
        its.failed += row.number if row.failed else 0
        if row.open or row.finish is None:
            its.open += row.number
        else:
            its.ends[row.finish - 1] += row.number
    return result


def _of_events(rows: Sequence[CountRow]) -> dict[str, _Counts]:
    result: dict[str, _Counts] = {}
    for row in rows:
        its = result.setdefault(row.type, _Counts())
        (its.starts if row.status == "IN_PROGRESS" else its.ends)[row.part - 1] += row.number
        its.failed += row.number if row.status == "FAILED" else 0
    for its in result.values():
        begun, ended = sum(its.starts), sum(its.ends)
        its.number, its.open = max(begun, ended), max(0, begun - ended)
    return result


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
