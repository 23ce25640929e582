"""The figures we hold ourselves to. Each is a function of the results; none measures anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tests.bench.measure import Run
from tests.bench.results import Results, middle

Bar = Callable[[Results], "Verdict"]

SHARE_LAYERED = 0.5  # of the yardstick
SHARE_OTHERS = 0.4
LINK_MS = 10.0
GROWTH = 1.3
# Rows of a check at 100k against 1k are the same, but for two things that are no matter of size: nine of ten
# resources have parents at 1k, ninety-nine of a hundred at 100k; and a little is done by the clock.
SAME_ROWS = 1.15
POST_1K_SECONDS, POST_20K_SECONDS = 1.0, 5.0
LIST_P99_SECONDS = 0.1
WORKER_MB, API_MB, PLANNER_MB = 150.0, 200.0, 1024.0
PARSE_TIMES_EVENTS, PARSE_TIMES_TEXT = 3.0, 8.0
RESOLVE_MS = 0.2


@dataclass(frozen=True, slots=True)
class Wanted:
    """A measurement that the bars need."""

    shape: str
    size: int
    operations: tuple[str, ...] = ("create",)
    times: int = 1
    rows: bool = False
    listing: bool = False


PLAN = (
    Wanted("layered", 1_000, ("create", "delete"), rows=True),
    Wanted("layered", 10_000, ("create", "delete"), times=3),
    Wanted("flat", 10_000, times=3),
    Wanted("fan-in", 10_000, times=3),
    Wanted("fan-out", 10_000, times=3),
    Wanted("chain", 10_000, times=3),
    Wanted("flat", 1_000, times=3, listing=True),
    Wanted("flat", 20_000, listing=True),
    Wanted("layered", 100_000, rows=True),
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One figure against its bar; `value` is None when it could not be measured."""

    name: str
    value: float | None
    unit: str
    bar: float
    at_least: bool = False  # else at most

    @property
    def ok(self) -> bool:
        """Whether the bar is reached."""
        if self.value is None:
            return False
        return self.value >= self.bar if self.at_least else self.value <= self.bar

    def __str__(self) -> str:
        """Say it in one line."""
        found = "not measured" if self.value is None else f"{self.value:,.2f}{self.unit}"
        bound = "at least" if self.at_least else "at most"
        return (
            f"{'ok   ' if self.ok else 'SHORT'} {self.name:52} {found:>14}  {bound} {self.bar:,g}{self.unit}"
        )


def layered(results: Results) -> Verdict:
    """Create, layered 10,000."""
    return _share(results, "layered", SHARE_LAYERED)


def flat(results: Results) -> Verdict:
    """Create, flat 10,000."""
    return _share(results, "flat", SHARE_OTHERS)


def fan_in(results: Results) -> Verdict:
    """Create, fan-in 10,000."""
    return _share(results, "fan-in", SHARE_OTHERS)


def fan_out(results: Results) -> Verdict:
    """Create, fan-out 10,000."""
    return _share(results, "fan-out", SHARE_OTHERS)


def chain(results: Results) -> Verdict:
    """A link of a chain of 10,000."""
    value = middle(run.ms_each for run in results.of("chain", 10_000, "create"))
    return Verdict("a link of chain 10,000", value, " ms", LINK_MS)


def growth(results: Results) -> Verdict:
    """Cost per resource at 100k over that at 10k."""
    small, large = (
        middle(run.ms_each for run in results.of("layered", size, "create")) for size in (10_000, 100_000)
    )
    return Verdict("cost of a resource, 100,000 over 10,000", _ratio(large, small), " times", GROWTH)


def rows_read(results: Results) -> Verdict:
    """Rows a resource's create reads at 100k over 1k."""
    return _rows(results, "rows read by a check", lambda run: run.reads)


def rows_written(results: Results) -> Verdict:
    """Rows a resource's create writes at 100k over 1k."""
    return _rows(results, "rows written by a check", lambda run: run.writes)


def post_1k(results: Results) -> Verdict:
    """The POST of 1,000 resources."""
    value = middle(run.request_seconds for run in results.of("flat", 1_000, "create"))
    return Verdict("POST of 1,000 resources", value, " s", POST_1K_SECONDS)


def post_20k(results: Results) -> Verdict:
    """The POST of 20,000 resources."""
    value = middle(run.request_seconds for run in results.of("flat", 20_000, "create"))
    return Verdict("POST of 20,000 resources", value, " s", POST_20K_SECONDS)


def list_p99(results: Results) -> Verdict:
    """Another client's lists during the POST of 20,000 resources."""
    runs = results.of("flat", 20_000, "create")
    value = middle(run.list_p99_seconds for run in runs if run.list_p99_seconds is not None)
    return Verdict("list p99 during that POST", value, " s", LIST_P99_SECONDS)


def worker_memory(results: Results) -> Verdict:
    """The most any worker ever held."""
    return Verdict("memory of a worker", _peak(results.runs, "worker"), " MB", WORKER_MB)


def api_memory(results: Results) -> Verdict:
    """The most any process of the API ever held."""
    return Verdict("memory of the API", _peak(results.runs, "api"), " MB", API_MB)


def planner_memory(results: Results) -> Verdict:
    """The most the process for large bodies held at 100k."""
    runs = results.of("layered", 100_000, "create")
    return Verdict("memory of the planner at 100,000", _peak(runs, "planner"), " MB", PLANNER_MB)


def parse_time(results: Results) -> Verdict:
    """Text to document of a large YAML template, over libyaml's bare events."""
    value = middle(run.times_events for run in results.parses)
    return Verdict("parse YAML of 20,000 resources", value, " times its events", PARSE_TIMES_EVENTS)


def parse_memory(results: Results) -> Verdict:
    """The most memory that takes."""
    value = middle(run.times_text for run in results.parses if run.times_text is not None)
    return Verdict("memory to parse it", value, " times its size", PARSE_TIMES_TEXT)


def resolve_time(results: Results) -> Verdict:
    """Resolving ten properties with four functions in a check."""
    return Verdict("resolve a resource's properties", middle(results.resolve_ms), " ms", RESOLVE_MS)


BARS: tuple[Bar, ...] = (
    *(layered, flat, fan_in, fan_out, chain, growth, rows_read, rows_written),
    *(post_1k, post_20k, list_p99, worker_memory, api_memory, planner_memory),
    *(parse_time, parse_memory, resolve_time),
)


def judge(results: Results) -> list[Verdict]:
    """Return every figure with its bar."""
    return [bar(results) for bar in BARS]


def _share(results: Results, shape: str, share: float) -> Verdict:
    rate = middle(run.per_second for run in results.of(shape, 10_000, "create"))
    value = _ratio(rate, results.yardstick)
    return Verdict(f"create {shape} 10,000", value, " of the empty task", share, at_least=True)


def _rows(results: Results, name: str, counts: Callable[[Run], dict[str, float] | None]) -> Verdict:
    def each(size: int) -> float | None:
        found = [counts(run) for run in results.of("layered", size, "create")]
        return middle(sum(rows.values()) for rows in found if rows is not None)

    return Verdict(f"{name}, 100,000 over 1,000", _ratio(each(100_000), each(1_000)), " times", SAME_ROWS)


def _peak(runs: Iterable[Run], role: str) -> float | None:
    return max((run.peak_mb[role] for run in runs if role in run.peak_mb), default=None)


def _ratio(value: float | None, base: float | None) -> float | None:
    return None if value is None or not base else value / base


def circumstances(results: Results) -> str:
    """Say how far wall clock figures can be trusted."""
    shares = [run.others for run in results.runs] + [run.others for run in results.yardsticks]
    others = middle(share for share in shares if share is not None)
    return "" if others is None else f"Others used {others:.0%} of the machine meanwhile (median of runs)."


def short(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return those that fall short."""
    return [verdict for verdict in verdicts if not verdict.ok]
