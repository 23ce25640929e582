"""The promised figures.

Each bar is a function of the results and declares the measurements it needs. A bar measures nothing itself,
and each can be selected alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from qa.bench.judging import BARS, Expected, Verdict, bar, doing
from qa.bench.measure import Run
from qa.bench.observing import ObserveRun
from qa.bench.results import Results, cost, middle
from qa.bench.shapes import CHILDREN

__all__ = ["BARS"]  # complete after the import of this module

SHARE_LAYERED = 0.5  # of the yardstick
SHARE_REPLACED = 0.25  # two operations for each
SHARE_OTHERS = 0.4
LINK_MS = 10.0
GROWTH = 1.3
# Rows of a check at 100k against 1k are the same, but for two things that are no matter of size: nine of ten
# resources have parents at 1k, ninety-nine of a hundred at 100k; and a little is done by the clock.
SAME_ROWS = 1.15
# for an update of 100,000 resources with at most a single change, without parsing and validation
UPDATE_SECONDS = 5.0
FEW_ROWS = 99  # maximum of rows written, for any size
SLOWER_BESIDE = 3.0  # small stacks next to a large stack
DEARER_NESTED = 1.3  # a resource of a nested stack, or of a group, over that of a flat stack
CHILD_BYTES = 20_000.0  # of a nested stack in the database, beyond its resources
GROW_GROUP_SECONDS = 2.0  # for adding a member to a group of 100,000
POST_1K_SECONDS, POST_20K_SECONDS = 1.0, 5.0
LIST_P99_SECONDS = 0.1
API_PER_SECOND, API_P99_MS, API_GROWTH = 300.0, 100.0, 1.5
WORKER_MB, API_MB, PLANNER_MB = 150.0, 200.0, 1024.0
PARSE_TIMES_EVENTS, PARSE_TIMES_TEXT = 3.0, 8.0
RESOLVE_MS = 0.2
OBSERVE_CALLS, OBSERVE_ROWS, OBSERVE_SHARE = 12.0, 0.0, 0.05  # of a quiet round of 10,000 objects
OBSERVE_MB = 1.0  # growth of the database in a quiet hour
REPAIR_GROWTH = 3.0  # of the time of a repair, in a stack ten times as large

SMALL = Expected("layered", 1_000, rows=True)
USUAL = Expected("layered", 10_000, times=3)
LARGE = Expected("layered", 100_000, rows=True)
POSTED = Expected("flat", 20_000, listing=True)


@bar(USUAL)
def layered(results: Results) -> Verdict:
    """Create, layered 10,000."""
    return _share(results, "layered", SHARE_LAYERED)


@bar(Expected("flat", 10_000, times=3))
def flat(results: Results) -> Verdict:
    """Create, flat 10,000."""
    return _share(results, "flat", SHARE_OTHERS)


@bar(Expected("fan-in", 10_000, times=3))
def fan_in(results: Results) -> Verdict:
    """Create, fan-in 10,000."""
    return _share(results, "fan-in", SHARE_OTHERS)


@bar(Expected("fan-out", 10_000, times=3))
def fan_out(results: Results) -> Verdict:
    """Create, fan-out 10,000."""
    return _share(results, "fan-out", SHARE_OTHERS)


@bar(Expected("chain", 10_000, times=3))
def chain(results: Results) -> Verdict:
    """A link of a chain of 10,000."""
    value = middle(run.ms_each for run in results.of("chain", 10_000, "create"))
    return Verdict("a link of chain 10,000", value, " ms", LINK_MS)


@bar(doing(USUAL, "change-all"))
def change_all(results: Results) -> Verdict:
    """Change every resource of layered 10,000 in place."""
    return _share(results, "layered", SHARE_LAYERED, "change-all")


@bar(doing(USUAL, "replace-all"))
def replace_all(results: Results) -> Verdict:
    """Replace every resource of layered 10,000."""
    return _share(results, "layered", SHARE_REPLACED, "replace-all")


@bar(doing(USUAL, "delete"))
def delete(results: Results) -> Verdict:
    """Delete layered 10,000."""
    return _share(results, "layered", SHARE_LAYERED, "delete")


@bar(doing(LARGE, "no-change"))
def no_change(results: Results) -> Verdict:
    """An update of 100,000 that changes nothing."""
    return _quick(results, "no-change")


@bar(doing(LARGE, "no-change", "change-one"))
def change_one(results: Results) -> Verdict:
    """An update of 100,000 resources that changes a single value without dependents."""
    return _quick(results, "change-one")


@bar(doing(LARGE, "no-change"))
def no_change_rows(results: Results) -> Verdict:
    """Rows written by an update of 100,000 that changes nothing."""
    return _few(results, "no-change")


@bar(doing(LARGE, "no-change", "change-one"))
def change_one_rows(results: Results) -> Verdict:
    """Rows written by an update of 100,000 resources that changes a single value."""
    return _few(results, "change-one")


@bar(doing(USUAL, "no-change"), doing(LARGE, "no-change"))
def no_change_growth(results: Results) -> Verdict:
    """Cost per resource of an update that changes nothing, at 100k over that at 10k."""
    return _grown(results, "no-change")


@bar(doing(USUAL, "no-change", "change-one"), doing(LARGE, "no-change", "change-one"))
def change_one_growth(results: Results) -> Verdict:
    """Cost per resource of an update that changes a single value: at 100,000 over that at 10,000."""
    return _grown(results, "change-one")


TREE = Expected("nested", 11_000, times=3)
BESIDE_TREE = Expected("flat", 11_000, times=3)
GROUP = Expected("group", 100_000, ("create", "change-one"))


@bar(TREE, BESIDE_TREE)
def nested(results: Results) -> Verdict:
    """A resource of 1,000 nested stacks of ten, over that of a flat stack of the same size."""
    return _dearer(results, "nested", 11_000)


@bar(GROUP, Expected("flat", 100_000))
def group(results: Results) -> Verdict:
    """A member of a group of 100,000, over a resource of a flat stack as large."""
    return _dearer(results, "group", 100_000)


@bar(GROUP)
def group_growth(results: Results) -> Verdict:
    """A new member of a group of 100,000, from the request to COMPLETE."""
    value = middle(run.request_seconds + run.seconds for run in results.of("group", 100_000, "change-one"))
    return Verdict("a group of 100,000 grows by one", value, " s", GROW_GROUP_SECONDS)


@bar(TREE, BESIDE_TREE)
def child_bytes(results: Results) -> Verdict:
    """Database size of a nested stack beyond its resources."""
    whole, plain = (
        middle(
            run.bytes_per_resource for run in results.of(shape, 11_000, "create") if run.bytes_per_resource
        )
        for shape in ("nested", "flat")
    )
    value = None if whole is None or plain is None else (whole - plain) * (CHILDREN + 1) + plain
    return Verdict("a nested stack in the database", value, " bytes", CHILD_BYTES)


@bar(crowd=True)
def crowd(results: Results) -> Verdict:
    """Small stacks created next to a large stack, over the same on an idle system."""
    value = middle(run.times_idle for run in results.crowds)
    return Verdict("small stacks beside 100,000", value, " times idle", SLOWER_BESIDE)


@bar(USUAL, LARGE)
def growth(results: Results) -> Verdict:
    """Cost per resource at 100k over that at 10k."""
    small, large = (cost(results.of("layered", size, "create")) for size in (10_000, 100_000))
    return Verdict("cost of a resource, 100,000 over 10,000", _ratio(large, small), " times", GROWTH)


@bar(SMALL, LARGE)
def rows_read(results: Results) -> Verdict:
    """Rows a resource's create reads at 100k over 1k."""
    return _rows(results, "rows read by a check", _read_by_checks)


@bar(SMALL, LARGE)
def rows_written(results: Results) -> Verdict:
    """Rows a resource's create writes at 100k over 1k."""
    return _rows(results, "rows written by a check", lambda run: run.writes)


@bar(Expected("flat", 1_000, times=3, listing=True))
def post_1k(results: Results) -> Verdict:
    """The POST of 1,000 resources."""
    value = middle(run.request_seconds for run in results.of("flat", 1_000, "create"))
    return Verdict("POST of 1,000 resources", value, " s", POST_1K_SECONDS)


@bar(POSTED)
def post_20k(results: Results) -> Verdict:
    """The POST of 20,000 resources."""
    value = middle(run.request_seconds for run in results.of("flat", 20_000, "create"))
    return Verdict("POST of 20,000 resources", value, " s", POST_20K_SECONDS)


@bar(POSTED)
def list_p99(results: Results) -> Verdict:
    """Another client's lists during the POST of 20,000 resources."""
    runs = results.of("flat", 20_000, "create")
    value = middle(run.list_p99_seconds for run in runs if run.list_p99_seconds is not None)
    return Verdict("list p99 during that POST", value, " s", LIST_P99_SECONDS)


@bar(USUAL, LARGE)
def worker_memory(results: Results) -> Verdict:
    """The most any worker ever held."""
    return Verdict("memory of a worker", _peak(results.runs, "worker"), " MB", WORKER_MB)


@bar(USUAL, LARGE)
def api_memory(results: Results) -> Verdict:
    """The most any process of the API ever held."""
    return Verdict("memory of the API", _peak(results.runs, "api"), " MB", API_MB)


@bar(LARGE)
def planner_memory(results: Results) -> Verdict:
    """The most the process for large bodies held at 100k."""
    runs = results.of("layered", 100_000, "create")
    return Verdict("memory of the planner at 100,000", _peak(runs, "planner"), " MB", PLANNER_MB)


@bar(parsing=True)
def parse_time(results: Results) -> Verdict:
    """Text to document of a large YAML template, over libyaml's bare events."""
    value = middle(run.times_events for run in results.parses)
    return Verdict("parse YAML of 20,000 resources", value, " times its events", PARSE_TIMES_EVENTS)


@bar(parsing=True)
def parse_memory(results: Results) -> Verdict:
    """The most memory that takes."""
    value = middle(run.times_text for run in results.parses if run.times_text is not None)
    return Verdict("memory to parse it", value, " times its size", PARSE_TIMES_TEXT)


@bar(parsing=True)
def resolve_time(results: Results) -> Verdict:
    """Resolving ten properties with four functions in a check."""
    return Verdict("resolve a resource's properties", middle(results.resolve_ms), " ms", RESOLVE_MS)


@bar(api=True)
def api(results: Results) -> Verdict:
    """The slowest kind of request to a project of 1,000 stacks."""
    value = min((run.per_second for run in results.api), default=None)
    return Verdict("slowest kind of API request", value, "/s", API_PER_SECOND, at_least=True)


@bar(api=True)
def api_p99(results: Results) -> Verdict:
    """The 99th percentile of the latency of a request."""
    value = max((run.p99_ms for run in results.api), default=None)
    return Verdict("p99 of the slowest kind of API request", value, " ms", API_P99_MS)


@bar(api=True)
def api_growth(results: Results) -> Verdict:
    """A request to a stack of 100,000 resources over the same to a stack of 100."""
    value = max((run.grown for run in results.api), default=None)
    return Verdict("API request, 100,000 resources over 100", value, " times", API_GROWTH)


@bar(observing=True)
def observe_growth(results: Results) -> Verdict:
    """Processor time per resource of a quiet round: at 100,000 over that at 10,000."""
    large, small = (_quiet(results, size) for size in (100_000, 10_000))
    value = _ratio(large and large.cpu_us, small and small.cpu_us)
    return Verdict("quiet round by resource, 100,000 over 10,000", value, " times", GROWTH)


@bar(observing=True)
def observe_calls(results: Results) -> Verdict:
    """Requests of a quiet round of 10,000 objects."""
    run = _quiet(results, 10_000)
    return Verdict("requests of a quiet round of 10,000", run and run.calls, "", OBSERVE_CALLS)


@bar(observing=True)
def observe_rows(results: Results) -> Verdict:
    """Rows that a quiet round writes, beyond that of its group."""
    run = _quiet(results, 10_000)
    return Verdict("rows written by a quiet round", run and run.written, "", OBSERVE_ROWS)


@bar(observing=True)
def observe_share(results: Results) -> Verdict:
    """Share of a core that the quiet rounds of 10,000 objects take."""
    run = _quiet(results, 10_000)
    return Verdict("share of a core, quiet rounds of 10,000", run and run.share, "", OBSERVE_SHARE)


@bar(observing=True)
def observe_bytes(results: Results) -> Verdict:
    """Growth of the database in a quiet hour."""
    grown = results.observed.hour_bytes
    value = None if grown is None else grown / 1e6
    return Verdict("database growth in a quiet hour", value, " MB", OBSERVE_MB)


@bar(observing=True)
def repair_growth(results: Results) -> Verdict:
    """Time of a repair in a stack of 10,000 resources over that in a stack of 1,000."""
    seconds = results.observed.repair_seconds
    value = _ratio(seconds.get(10_000), seconds.get(1_000))
    return Verdict("a repair, stack of 10,000 over 1,000", value, " times", REPAIR_GROWTH)


def _quiet(results: Results, size: int) -> ObserveRun | None:
    return next((run for run in results.observed.rounds if run.size == size), None)


def _dearer(results: Results, shape: str, size: int) -> Verdict:
    """Return the cost of a resource of a shape over that of a flat stack of the same size."""
    other, plain = (cost(results.of(item, size, "create")) for item in (shape, "flat"))
    return Verdict(
        f"cost of a resource, {shape} over flat {size:,}", _ratio(other, plain), " times", DEARER_NESTED
    )


def _share(results: Results, shape: str, share: float, operation: str = "create") -> Verdict:
    runs = results.of(shape, 10_000, operation)
    value = middle(run.times_empty for run in runs if run.times_empty is not None)
    return Verdict(f"{operation} {shape} 10,000", value, " of the empty task", share, at_least=True)


def _beyond(results: Results, size: int, operation: str) -> float | None:
    runs = results.of("layered", size, operation)
    return middle(run.beyond_reading for run in runs if run.beyond_reading is not None)


def _quick(results: Results, operation: str) -> Verdict:
    value = _beyond(results, 100_000, operation)
    return Verdict(f"{operation} layered 100,000, beyond parsing", value, " s", UPDATE_SECONDS)


def _few(results: Results, operation: str) -> Verdict:
    counts = [run.total(run.writes) for run in results.of("layered", 100_000, operation)]
    value = middle(count for count in counts if count is not None)
    return Verdict(f"{operation} layered 100,000", value, " rows written", FEW_ROWS)


def _grown(results: Results, operation: str) -> Verdict:
    small, large = (_beyond(results, size, operation) for size in (10_000, 100_000))
    times = _ratio(large, small)
    value = None if times is None else times / 10
    return Verdict(f"{operation} by resource, 100,000 over 10,000", value, " times", GROWTH)


def _rows(results: Results, name: str, counts: Callable[[Run], dict[str, float] | None]) -> Verdict:
    def each(size: int) -> float | None:
        result = [counts(run) for run in results.of("layered", size, "create")]
        return middle(sum(rows.values()) for rows in result if rows is not None)

    return Verdict(f"{name}, 100,000 over 1,000", _ratio(each(100_000), each(1_000)), " times", SAME_ROWS)


def _read_by_checks(run: Run) -> dict[str, float] | None:
    """Return the rows read, without the progress counts of the sweep (store/stacks/progress.py).

    These counts are limited by time: each reads all nodes by their index.
    """
    if run.reads is None or run.writes is None or run.index_entries is None:
        return run.reads
    counted = run.writes.get("progress", 0.0) * run.size
    counting = min(counted, run.index_entries.get("ix_graph_node_visit", 0.0))
    return run.reads | {"graph_node": run.reads.get("graph_node", 0.0) - counting}


def _peak(runs: Iterable[Run], role: str) -> float | None:
    return max((run.peak_mb[role] for run in runs if role in run.peak_mb), default=None)


def _ratio(value: float | None, base: float | None) -> float | None:
    return None if value is None or not base else value / base
