"""Small stacks created on an idle system, and again next to the creation of a large stack: the slowdown.

The duration of a stack is the time from its accepted request to its last event, by the clock of the database.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import median

import orjson

from qa.bench import counters
from qa.bench.measure import JSON, PROJECT, Measurement, Unfinished
from qa.bench.shapes import template

SHAPE = "layered"
STACKS, SIZE = 100, 50
LARGE = 100_000
CLIENTS = 4
UNDER_WAY = 2_000  # resources of the large stack that are created before the small stacks start
LIMIT_SECONDS = 600.0
POLL_SECONDS = 0.2

TIMES = """
SELECT extract(epoch FROM e.created_at - s.created_at)::float8
FROM stack s JOIN event e ON e.stack_id = s.id AND e.resource_type = 'OS::Heat::Stack'
WHERE s.project_id = %s AND s.name LIKE 'small-%%' AND e.status <> 'IN_PROGRESS'
"""
FAILED = "SELECT name, status_reason FROM stack WHERE project_id = %s AND status = 'FAILED' LIMIT 1"
LARGE_ONE = "SELECT id, status = 'IN_PROGRESS' FROM stack WHERE project_id = %s AND name = 'large'"
MADE = """
SELECT count(*) FROM (SELECT 1 FROM resource WHERE stack_id = %s AND action = 'CREATE' LIMIT %s) AS made
"""


@dataclass(frozen=True, slots=True)
class CrowdRun:
    """Seconds to COMPLETE of the small stacks: the medians."""

    idle_seconds: float
    beside_seconds: float

    @property
    def times_idle(self) -> float:
        """Slowdown next to the large stack."""
        return self.beside_seconds / self.idle_seconds

    def __str__(self) -> str:
        """Return the run as a line of text."""
        return (
            f"{STACKS} stacks of {SIZE}: {self.idle_seconds:.2f} s when idle, {self.beside_seconds:.2f} s "
            f"beside one of {LARGE:,}, {self.times_idle:.2f} times that (medians)"
        )


def measure_crowd(measurement: Measurement) -> CrowdRun:
    """Create the small stacks twice; the rest of the large stack is dropped with its system.

    Raises:
        Unfinished: a stack failed or took too long, or the large stack was complete before the small stacks.
    """
    counters.empty(measurement.db)
    idle = _small_ones(measurement)
    counters.empty(measurement.db)
    _post(measurement, "large", LARGE)
    _wait_until_under_way(measurement)
    sibling = _small_ones(measurement)
    if not _single_row(measurement, LARGE_ONE, PROJECT)[1]:
        raise Unfinished(f"the stack of {LARGE:,} was made before the small ones were")
    return CrowdRun(idle, sibling)


def _small_ones(measurement: Measurement) -> float:
    """Make the small stacks, all at once; return the median of their seconds."""
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(lambda number: _post(measurement, f"small-{number}", SIZE), range(STACKS)))
    deadline = time.monotonic() + LIMIT_SECONDS
    while len(times := measurement.db.execute(TIMES, (PROJECT,)).fetchall()) < STACKS:
        if time.monotonic() > deadline:
            raise Unfinished(f"{STACKS - len(times)} of {STACKS} small stacks are not complete")
        time.sleep(POLL_SECONDS)
    failed = measurement.db.execute(FAILED, (PROJECT,)).fetchone()
    if failed is not None:
        raise Unfinished(f"{failed[0]}: {failed[1]}")
    return median(float(seconds) for (seconds,) in times)


def _wait_until_under_way(measurement: Measurement) -> None:
    """Return once much of the large stack is made, and most of it is not."""
    deadline = time.monotonic() + LIMIT_SECONDS
    stack_id = _single_row(measurement, LARGE_ONE, PROJECT)[0]
    while _single_row(measurement, MADE, stack_id, UNDER_WAY)[0] < UNDER_WAY:
        if time.monotonic() > deadline:
            raise Unfinished(f"the stack of {LARGE:,} does not get under way")
        time.sleep(POLL_SECONDS)


def _single_row(measurement: Measurement, query: str, *values: object) -> tuple[int, ...]:
    result: tuple[int, ...] | None = measurement.db.execute(query, values).fetchone()
    assert result is not None
    return result


def _post(measurement: Measurement, name: str, size: int) -> None:
    body = orjson.dumps({"stack_name": name, "template": template(SHAPE, size), "timeout_mins": 60})
    answer = measurement.client.post(measurement.stacks, content=body, headers=JSON)
    if not answer.is_success:
        raise Unfinished(f"create {name}: {answer.status_code} {answer.text[:300]}")
