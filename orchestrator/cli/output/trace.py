"""A timeline as a trace in the JSON format of Chrome, which Perfetto opens. Pure.

A resource type and a nested stack are processes, and operations that do not overlap share a thread. Each
operation is a slice with its phases below it. The critical path is its own process.
"""

from __future__ import annotations

import datetime as dt
import heapq
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Final

from orchestrator.json_types import JsonMapping, JsonObject

CRITICAL: Final = 1  # number of the process with the critical path


def trace_document(timeline: JsonMapping, nested: Sequence[tuple[str, JsonMapping]] = ()) -> JsonObject:
    """Return the trace of a timeline of the API, with its bars, and of the timelines of nested stacks."""
    return {"displayTimeUnit": "ms", "traceEvents": list(_events(timeline, nested))}


def _events(timeline: JsonMapping, nested: Sequence[tuple[str, JsonMapping]]) -> Iterator[JsonObject]:
    end = _micros(timeline["ended_at"])
    yield _name("process_name", CRITICAL, 0, "Critical path")
    for step in timeline["critical_path"]:
        yield _slice(
            step["resource_name"], CRITICAL, 1, _micros(step["begun_at"]), _micros(step["ended_at"], end)
        )
    by_type: dict[str, list[JsonMapping]] = {}
    for bar in timeline["bars"]:
        by_type.setdefault(bar["resource_type"], []).append(bar)
    numbers = count(CRITICAL + 1)
    for type_, bars in sorted(by_type.items()):
        yield from _process(next(numbers), type_, bars, end)
    for name, inner in nested:
        yield from _process(next(numbers), f"stack {name}", inner["bars"], _micros(inner["ended_at"]))


def _process(number: int, name: str, bars: list[JsonMapping], end: int) -> Iterator[JsonObject]:
    yield _name("process_name", number, 0, name)
    yield {"name": "process_sort_index", "ph": "M", "pid": number, "tid": 0, "args": {"sort_index": number}}
    for thread, bar in _threads(bars, end):
        yield from _bar(bar, number, thread, end)


def _threads(bars: list[JsonMapping], end: int) -> Iterator[tuple[int, JsonMapping]]:
    """Yield each bar with the first thread that is free at its start."""
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    count = 0
    for bar in sorted(bars, key=lambda bar: (_micros(bar["queued_at"]), _micros(bar["ended_at"], end))):
        while busy and busy[0][0] <= _micros(bar["queued_at"]):
            heapq.heappush(free, heapq.heappop(busy)[1])
        if not free:
            count += 1
            heapq.heappush(free, count)
        thread = heapq.heappop(free)
        heapq.heappush(busy, (_micros(bar["ended_at"], end), thread))
        yield thread, bar


def _bar(bar: JsonMapping, process: int, thread: int, end: int) -> Iterator[JsonObject]:
    queued, started = _micros(bar["queued_at"]), _micros(bar["started_at"])
    ended = _micros(bar["ended_at"], end)
    waiting = min(max(_micros(bar["waiting_at"], ended), started), ended)
    state = "failed" if bar["failed"] else "ready" if bar["ended_at"] else "in progress"
    details = {"state": state, "critical": bar["critical"]}
    yield _slice(bar["resource_name"], process, thread, queued, ended, details)
    phases = (("queued", queued, started), ("provider", started, waiting), ("waiting", waiting, ended))
    for name, begin, finish in phases:
        if finish > begin:
            yield _slice(name, process, thread, begin, finish)


def _slice(
    name: str, process: int, thread: int, begin: int, end: int, details: JsonMapping | None = None
) -> JsonObject:
    event: JsonObject = {
        "name": name,
        "ph": "X",
        "pid": process,
        "tid": thread,
        "ts": begin,
        "dur": max(0, end - begin),
    }
    return event if details is None else event | {"args": dict(details)}


def _name(kind: str, process: int, thread: int, text: str) -> JsonObject:
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": text}}


def _micros(text: str | None, missing: int = 0) -> int:
    """Return a time of the API in microseconds."""
    if text is None:
        return missing
    return round(dt.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1_000_000)
