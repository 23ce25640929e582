"""Figures of what this process does, for Prometheus: counted where it happens, in memory, and read as text.

No label names a stack, a project, an address or an id, so that their number stays small however much there
is. Where several processes answer for one another (`orchestrator up`, gunicorn or Celery with children), the
variable PROMETHEUS_MULTIPROC_DIR names an empty folder that they share: then each shows what all of them have
counted. What the database and the broker hold is asked of them by `api/monitoring/metrics.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
SHARED: Final = "PROMETHEUS_MULTIPROC_DIR"  # prometheus_client's own variable
OTHER: Final = (
    "other"  # a resource type that is no registered one: whoever writes templates chooses those names
)

_OURS: Final = CollectorRegistry()

_CHECKS: Final = Counter(
    "orchestrator_checks",
    "Visits to nodes, by resource type (of plan and finish nodes: kind), by step and its outcome.",
    ("type", "step", "outcome"),
    registry=_OURS,
)
_TASKS: Final = Histogram(
    "orchestrator_check_seconds",
    "What a check task took, by queue.",
    ("queue",),
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
    registry=_OURS,
)
_LEASES_LOST: Final = Counter(
    "orchestrator_leases_lost",
    "Nodes whose worker let its lease run out, as the sweep found them.",
    registry=_OURS,
)
_FOUND: Final = Counter(
    "orchestrator_sweep_found",
    "What the sweep found and set going again, by what it was.",
    ("what",),
    registry=_OURS,
)
_UNPUBLISHED: Final = Counter(
    "orchestrator_messages_unpublished",
    "Messages that the broker did not take; the sweep sends them again.",
    registry=_OURS,
)
_REQUESTS: Final = Histogram(
    "orchestrator_request_seconds",
    "What a request took until its answer was written, by endpoint and class of status.",
    ("endpoint", "status"),
    buckets=(0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
    registry=_OURS,
)
_LIMITED: Final = Counter(
    "orchestrator_requests_limited",
    "Requests refused because their project or caller sent too many.",
    registry=_OURS,
)

_checks: dict[tuple[str, str, str], Counter] = {}
_tasks: dict[str, Histogram] = {}
_requests: dict[tuple[str, str], Histogram] = {}


def checked(type_name: str, step: str, outcome: str) -> None:
    """Count a visit."""
    key = (type_name, step, outcome)
    counter = _checks.get(key)
    if counter is None:  # two threads may both make it: it is the same one
        counter = _checks[key] = _CHECKS.labels(*key)
    counter.inc()


def took(queue: str, seconds: float) -> None:
    """Count a check task and its time."""
    histogram = _tasks.get(queue)
    if histogram is None:
        histogram = _tasks[queue] = _TASKS.labels(queue)
    histogram.observe(seconds)


def found(what: str, count: int) -> None:
    """Count what a sweep found."""
    if count:
        _FOUND.labels(what).inc(count)
        if what == "lease_lost":
            _LEASES_LOST.inc(count)


def unpublished(count: int) -> None:
    """Count messages that the broker did not take."""
    _UNPUBLISHED.inc(count)


def answered(endpoint: str, status: int, seconds: float) -> None:
    """Count a request by the name of its view, never by its path."""
    key = (endpoint, f"{status // 100}xx")
    histogram = _requests.get(key)
    if histogram is None:
        histogram = _requests[key] = _REQUESTS.labels(*key)
    histogram.observe(seconds)


def limited() -> None:
    """Count a request that was one too many."""
    _LIMITED.inc()


def exposition(more: Iterable[Collector] = ()) -> bytes:
    """Return all of it as Prometheus reads it, with what further collectors have to say."""
    registry = CollectorRegistry()
    if os.environ.get(SHARED):
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        counted = generate_latest(registry)
    else:
        counted = generate_latest(_OURS)
    others = CollectorRegistry()
    for collector in more:
        others.register(collector)
    return counted + generate_latest(others)
