"""A watched stack that changes 2,000 times a second: delay, processor time per viewer, heap of the page."""

from __future__ import annotations

import contextlib
import os
import statistics
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import orjson
import psycopg
from playwright.sync_api import Browser, CDPSession, Page

from qa.console_bench.measure import OBSERVE, wait_drawn
from qa.console_bench.rows import BenchStack
from qa.console_bench.server import Server

RATE: Final = 2_000  # changes per second
BATCH_SECONDS: Final = 0.05
VIEWERS: Final = 20  # beside the browser
REFRESH_SECONDS: Final = 0.5  # as in field.js
VIEWER_SECONDS: Final = 20.0
WARM_UP_SECONDS: Final = 30.0
PAGES: Final = {
    "summary": "",
    "resources": "/resources",
    "events": "/events",
    "map": "/map",
    "timeline": "/timeline",
}
PAUSE_SECONDS: Final = {"/map": 2.0, "/timeline": 2.0}  # as in live.js, by default 1 s
REFRESH_FACTOR: Final = 20
MERGE_SECONDS: Final = 0.05
MAX_SHOWN: Final = 13  # values of a course
PROBE_SECONDS: Final = 1.3
DELAY_SECONDS: Final = 10.0

# Resources begin and complete at random, each with its event.
CHANGE: Final = """
WITH changed AS (
    UPDATE resource r SET action = 'CREATE',
        status = CASE r.status WHEN 'COMPLETE' THEN 'IN_PROGRESS' ELSE 'COMPLETE' END
    FROM (SELECT DISTINCT 'r' || lpad((1 + random() * (%(size)s - 2))::integer::text, 7, '0') AS name
        FROM generate_series(1, %(count)s)) AS x
    WHERE r.stack_id = %(id)s AND r.name = x.name
    RETURNING r.stack_id, r.name, r.type, r.physical_id, r.status)
INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason)
SELECT stack_id, name, type, physical_id, 'CREATE', status, 'state changed' FROM changed
"""
# The resource that nothing else changes.
PROBE: Final = """
WITH changed AS (
    UPDATE resource SET action = 'CREATE', status = 'COMPLETE', suspended = %(suspended)s
    WHERE stack_id = %(id)s AND name = 'r0000000' RETURNING *)
INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason)
SELECT stack_id, name, type, physical_id, 'SUSPEND', 'COMPLETE', 'state changed' FROM changed
"""
# Of the API, without those that change the stack, and without vacuum and the like, which the changes cause.
API_BACKENDS: Final = """
SELECT pid FROM pg_stat_activity
WHERE backend_type = 'client backend' AND NOT usename = current_user AND datname = current_database()
"""
SHOWN: Final = """() => document.querySelector("[data-state=suspended] .amount").textContent"""


@dataclass(slots=True)
class Watched:
    """What was measured."""

    seconds: float
    changes: float = 0.0  # per second
    delays: list[float] = field(default_factory=list)  # seconds from the commit until it is shown
    core_per_viewer: float = 0.0  # share of a core at the server
    core_of_all: float = 0.0  # share of a core with a single viewer
    core_per_page: dict[str, float] = field(default_factory=dict)  # as above, of the pages that are refreshed
    heaps: list[int] = field(default_factory=list)  # bytes of the page, after garbage collections
    memories: list[int] = field(default_factory=list)  # bytes of the server
    longest: float = 0.0  # task of the main thread, in milliseconds

    @property
    def heap_growth(self) -> float:
        """Return the growth of the heap between the first and the last third."""
        third = max(1, len(self.heaps) // 3)
        return statistics.median(self.heaps[-third:]) / statistics.median(self.heaps[:third]) - 1.0

    def lines(self) -> list[str]:
        """Return the report."""
        delays = sorted(self.delays)
        return [
            f"watched for {self.seconds:.0f} s with {self.changes:,.0f} changes per second",
            f"delay until a change is shown: median {statistics.median(delays):.2f} s, "
            f"95 % {delays[int(0.95 * (len(delays) - 1))]:.2f} s, maximum {delays[-1]:.2f} s "
            f"of {len(delays)}",
            f"server: {self.core_per_viewer:.2%} of a core per viewer, {self.core_of_all:.0%} in all",
            "API and database, share of a core per viewer of other pages: "
            + ", ".join(f"{page} {share:.2%}" for page, share in self.core_per_page.items()),
            f"heap of the page, growth {self.heap_growth:.1%}; over time in MB: {_course(self.heaps, 2)}",
            f"memory of the server over time in MB: {_course(self.memories, 0)}",
            f"longest task of the main thread: {self.longest:.0f} ms",
        ]


def _course(values: list[int], digits: int) -> str:
    """Return values in bytes as numbers in MB, at equal distances."""
    count = min(MAX_SHOWN, len(values))
    places = [round(nth * (len(values) - 1) / max(1, count - 1)) for nth in range(count)]
    return ", ".join(f"{values[place] / 1e6:.{digits}f}" for place in places)


def watch(browser: Browser, running: Server, stack: BenchStack, seconds: float) -> Watched:
    """Watch the field of a stack in the browser while it changes."""
    result = Watched(seconds)
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.add_init_script(OBSERVE)
    page.goto(f"{running.url}{stack.path}/field")
    wait_drawn(page, "field")
    devtools = context.new_cdp_session(page)
    with (
        psycopg.connect(running.administrator, autocommit=True) as db,
        _changing(running.administrator, stack, result),
    ):
        _probe_for(page, db, stack, result, WARM_UP_SECONDS)
        alone = _core(running.pid, VIEWER_SECONDS)
        with _viewers(_view, running.url + stack.path):
            crowded = _core(running.pid, VIEWER_SECONDS)
        result.core_of_all, result.core_per_viewer = alone, (crowded - alone) / VIEWERS
        before = _core(running.pid, VIEWER_SECONDS, db)
        for name, path in PAGES.items():
            with _viewers(_refresh, running.url + stack.path, path):
                share = _core(running.pid, VIEWER_SECONDS, db)
            after = _core(running.pid, VIEWER_SECONDS, db)
            result.core_per_page[name] = (share - (before + after) / 2) / VIEWERS
            before = after
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            result.heaps.append(_heap(devtools))
            result.memories.append(_memory(running.pid))
            _probe_for(page, db, stack, result, min(left, max(10.0, seconds / 30)))
        result.heaps.append(_heap(devtools))
        result.memories.append(_memory(running.pid))
    result.longest = page.evaluate("Math.max(0, ...window.longTasks)")
    context.close()
    return result


@contextlib.contextmanager
def _changing(url: str, stack: BenchStack, result: Watched) -> Iterator[None]:
    """Change resources for a block."""
    ends, changes, begun = threading.Event(), 0, time.monotonic()

    def change() -> None:
        nonlocal changes
        with psycopg.connect(url, autocommit=True) as db:
            due = time.monotonic()
            while not ends.is_set():
                values = {"id": stack.id, "size": stack.size, "count": round(RATE * BATCH_SECONDS)}
                changes += db.execute(CHANGE, values).rowcount
                due += BATCH_SECONDS
                ends.wait(max(0.0, due - time.monotonic()))

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()
        result.changes = changes / (time.monotonic() - begun)


def _probe_for(page: Page, db: Any, stack: BenchStack, result: Watched, seconds: float) -> None:
    """Change a resource repeatedly, and measure the time until the page shows it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        suspended = page.evaluate(SHOWN) == "0"
        db.execute(PROBE, {"id": stack.id, "suspended": suspended})
        begun = time.monotonic()
        while (page.evaluate(SHOWN) == "0") == suspended and time.monotonic() - begun < DELAY_SECONDS:
            page.wait_for_timeout(10)
        result.delays.append(time.monotonic() - begun)
        page.wait_for_timeout(1_000 * PROBE_SECONDS)


@contextlib.contextmanager
def _viewers(view: Callable[..., None], *address: str) -> Iterator[None]:
    """Let viewers request an address for a block. Raises the error of a viewer at its end."""
    ends = threading.Event()
    with ThreadPoolExecutor(VIEWERS) as threads:
        viewers = [threads.submit(view, ends, *address) for _ in range(VIEWERS)]
        try:
            ends.wait(2.0)
            yield
        finally:
            ends.set()
    for viewer in viewers:
        viewer.result()


def _view(ends: threading.Event, address: str) -> None:
    """Request changes as the script of the page does."""
    with httpx.Client(timeout=60.0) as client:
        header = _header(client.get(f"{address}/field/data").raise_for_status().content)
        while not ends.wait(REFRESH_SECONDS):
            query = {"order": header["order"], "cursor": header["cursor"]}
            answer = client.get(f"{address}/field/changes", params=query).raise_for_status()
            header = _header(answer.content)


def _refresh(ends: threading.Event, stack: str, path: str) -> None:
    """Follow the stream of a stack and request a page, as live.js does."""
    pause, news = PAUSE_SECONDS.get(path, 1.0), threading.Event()
    with ThreadPoolExecutor(1) as thread, httpx.Client(timeout=60.0) as client:
        stream = thread.submit(_follow, ends, f"{stack}/events/stream", news)
        while not ends.is_set():
            if not news.wait(0.1) or ends.wait(MERGE_SECONDS):
                continue
            news.clear()
            begun = time.monotonic()
            client.get(f"{stack}{path}", headers={"HX-Request": "true"}).raise_for_status()
            took = time.monotonic() - begun
            ends.wait(max(pause, REFRESH_FACTOR * took) - took)
    stream.result()


def _follow(ends: threading.Event, address: str, news: threading.Event) -> None:
    """Follow a stream of events."""
    with httpx.stream("GET", address, timeout=60.0) as response:
        response.raise_for_status()
        for line in response.iter_lines():
            if line.startswith("data:"):
                news.set()
            if ends.is_set():
                return


def _header(body: bytes) -> Any:
    return orjson.loads(body[8 : 8 + struct.unpack("<I", body[4:8])[0]])


def _core(pid: int, seconds: float, db: Any = None) -> float:
    """Return the share of a core that a process and its children use, and with `db` their backends."""
    before, begun = _processor_seconds(pid, db), time.monotonic()
    time.sleep(seconds)
    return (_processor_seconds(pid, db) - before) / (time.monotonic() - begun)


def _family(pid: int) -> set[int]:
    """Return a process and its descendants."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    family = {pid}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return family


def _processor_seconds(pid: int, db: Any) -> float:
    ticks, processes = 0, _family(pid)
    if db is not None:
        processes |= {backend for (backend,) in db.execute(API_BACKENDS)}
    for each in processes:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> int:
    pages = 0
    for each in _family(pid):
        with contextlib.suppress(OSError):
            pages += int(Path(f"/proc/{each}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _heap(devtools: CDPSession) -> int:
    devtools.send("HeapProfiler.collectGarbage")
    used: int = devtools.send("Runtime.getHeapUsage")["usedSize"]
    return used
