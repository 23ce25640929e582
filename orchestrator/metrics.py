"""Prometheus metrics of this process, counted in memory.

Labels never contain a stack, a project, an address or an id, so the number of time series stays small. If
several processes share an endpoint (`orchestrator up`, gunicorn or Celery with child processes), the
variable PROMETHEUS_MULTIPROC_DIR names an empty shared folder, and each process exposes the counts of all of
them. Gauges of the database and the broker are in `api/monitoring/metrics.py`.
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
OTHER: Final = "other"  # any resource type that is not registered: template authors choose these names

_REGISTRY: Final = CollectorRegistry()

_CHECKS: Final = Counter(
    "orchestrator_checks",
    "Visits to nodes, by resource type (or kind of a plan, join or finish node), step and outcome.",
    ("type", "step", "outcome"),
    registry=_REGISTRY,
)
_TASKS: Final = Histogram(
    "orchestrator_check_duration_seconds",
    "Duration of check tasks, by queue.",
    ("queue",),
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
    registry=_REGISTRY,
)
_LOST_LEASES: Final = Counter(
    "orchestrator_leases_lost",
    "Nodes whose lease expired, as found by the sweep.",
    registry=_REGISTRY,
)
_RECOVERED: Final = Counter(
    "orchestrator_sweep_recovered",
    "Items that the sweep recovered, by reason.",
    ("reason",),
    registry=_REGISTRY,
)
_PUBLISH_FAILURES: Final = Counter(
    "orchestrator_publish_failures",
    "Messages that could not be sent to the broker; the sweep re-enqueues them.",
    registry=_REGISTRY,
)
_REQUESTS: Final = Histogram(
    "orchestrator_http_request_duration_seconds",
    "Duration of HTTP requests until the response was written, by endpoint and status class.",
    ("endpoint", "status"),
    buckets=(0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
    registry=_REGISTRY,
)
_RATE_LIMITED: Final = Counter(
    "orchestrator_rate_limited_requests",
    "Requests rejected by a rate limit.",
    registry=_REGISTRY,
)
_BREAKERS: Final = Counter(
    "orchestrator_circuit_breaker_transitions",
    "Circuit breakers that opened or closed, by service and new state.",
    ("service", "state"),
    registry=_REGISTRY,
)
_REPAIRS: Final = Counter(
    "orchestrator_repairs",
    "Automatic repairs by outcome: started, done, failed, superseded or given_up.",
    ("outcome",),
    registry=_REGISTRY,
)
_ROUNDS: Final = Histogram(
    "orchestrator_observation_round_duration_seconds",
    "Duration of rounds of the observation, by kind of group and result (complete, continued, failed, "
    "postponed).",
    ("kind", "result"),
    buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
    registry=_REGISTRY,
)
_VERDICTS: Final = Counter(
    "orchestrator_observation_verdicts",
    "New verdicts on resources, by resource type and verdict (IN_SYNC: the end of a fault).",
    ("type", "verdict"),
    registry=_REGISTRY,
)
_LOSSES: Final = Counter(
    "orchestrator_observation_losses",
    "Losses of so many objects of a project at a service that nothing is repaired, by service.",
    ("service",),
    registry=_REGISTRY,
)
_NOTIFICATIONS: Final = Counter(
    "orchestrator_observation_notified_objects",
    "Objects named by notifications, by source (broker, request) and result (noted, dropped for lack of "
    "room, failed to be written).",
    ("source", "result"),
    registry=_REGISTRY,
)
_PROVIDER_REQUESTS: Final = Histogram(
    "orchestrator_provider_request_duration_seconds",
    "Duration of requests to OpenStack's services until the answer was read, by service, method and outcome "
    "(ok, refused, busy, error, no_answer, unreachable).",
    ("service", "method", "outcome"),
    buckets=(0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0),
    registry=_REGISTRY,
)

_checks: dict[tuple[str, str, str], Counter] = {}
_tasks: dict[str, Histogram] = {}
_requests: dict[tuple[str, str], Histogram] = {}
_provider_requests: dict[tuple[str, str, str], Histogram] = {}


def count_breaker(service: str, state: str) -> None:
    """Count a circuit breaker that opened or closed; services are declared by resource types."""
    _BREAKERS.labels(service, state).inc()


def observe_round(kind: str, result: str, seconds: float) -> None:
    """Count a round of the observation."""
    _ROUNDS.labels(kind, result).observe(seconds)


def count_verdict(type_name: str, verdict: str) -> None:
    """Count a new verdict."""
    _VERDICTS.labels(type_name, verdict).inc()


def count_loss(service: str) -> None:
    """Count the loss of many objects within a round."""
    _LOSSES.labels(service).inc()


def count_notified(source: str, result: str, count: int) -> None:
    """Count objects that notifications name."""
    if count:
        _NOTIFICATIONS.labels(source, result).inc(count)


def count_repair(outcome: str, count: int = 1) -> None:
    """Count automatic repairs."""
    _REPAIRS.labels(outcome).inc(count)


def count_visit(type_name: str, step: str, outcome: str) -> None:
    """Count a visit."""
    key = (type_name, step, outcome)
    counter = _checks.get(key)
    if counter is None:  # two threads may both create it: `labels` returns the same object
        counter = _checks[key] = _CHECKS.labels(*key)
    counter.inc()


def observe_check(queue: str, seconds: float) -> None:
    """Count a check task and its duration."""
    histogram = _tasks.get(queue)
    if histogram is None:
        histogram = _tasks[queue] = _TASKS.labels(queue)
    histogram.observe(seconds)


def count_recovered(reason: str, count: int) -> None:
    """Count items that a sweep recovered."""
    if count:
        _RECOVERED.labels(reason).inc(count)
        if reason == "lease_lost":
            _LOST_LEASES.inc(count)


def count_unpublished(count: int) -> None:
    """Count messages that could not be sent to the broker."""
    _PUBLISH_FAILURES.inc(count)


def observe_request(endpoint: str, status: int, seconds: float) -> None:
    """Count a request by the name of its view; a path would contain ids."""
    key = (endpoint, f"{status // 100}xx")
    histogram = _requests.get(key)
    if histogram is None:
        histogram = _requests[key] = _REQUESTS.labels(*key)
    histogram.observe(seconds)


def observe_provider_request(service: str, method: str, outcome: str, seconds: float) -> None:
    """Count a request to a service of OpenStack."""
    key = (service, method, outcome)
    histogram = _provider_requests.get(key)
    if histogram is None:
        histogram = _provider_requests[key] = _PROVIDER_REQUESTS.labels(*key)
    histogram.observe(seconds)


def count_rate_limited() -> None:
    """Count a request that a rate limit rejected."""
    _RATE_LIMITED.inc()


def exposition(collectors: Iterable[Collector] = ()) -> bytes:
    """Return all metrics in Prometheus' text format, including those of further collectors."""
    registry = CollectorRegistry()
    if os.environ.get(SHARED):
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        counted = generate_latest(registry)
    else:
        counted = generate_latest(_REGISTRY)
    additional = CollectorRegistry()
    for collector in collectors:
        additional.register(collector)
    return counted + generate_latest(additional)
