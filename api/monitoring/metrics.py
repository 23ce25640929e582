"""`/metrics` in Prometheus' text format.

Counters come from `orchestrator/metrics.py`. Gauges of the database and the broker are sampled here at most
every CACHE_SECONDS, however many clients read them.
"""

from __future__ import annotations

import hmac
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final

import psycopg
import sqlalchemy.exc
from flask import Blueprint, Request, Response, request
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector
from sqlalchemy.pool import QueuePool

import orchestrator
from api.dependencies import app_state, dependencies
from api.monitoring.health import required_schema
from orchestrator import metrics as counted
from orchestrator.config import Settings
from orchestrator.engine.states import STACK_ACTIONS
from orchestrator.errors import Forbidden
from orchestrator.store.connections.database import Database
from orchestrator.store.maintenance.gauges import Gauges, read_gauges
from tasks.broker_stats import UNREACHABLE
from tasks.celery_settings import QUEUES

metrics = Blueprint("metrics", __name__)

CACHE_SECONDS: Final = 5.0
QUARANTINED_KINDS: Final = ("node", "observation", "request", "round", "signals", "webhook")
WATCHED_PROCESSES: Final = ("api", "planner", "worker")
DATABASE_ERRORS: Final = (sqlalchemy.exc.SQLAlchemyError, psycopg.Error)


@metrics.get("/metrics")
def show() -> Response:
    """Return all metrics."""
    require_reader(request, dependencies().settings)
    return Response(counted.exposition([_sampler()]), content_type=counted.CONTENT_TYPE)


def require_reader(request_: Request, settings: Settings) -> None:
    """Return if the request may read metrics: with the token, or from this machine if no token is set.

    A request that a proxy on this machine forwarded does not count as local.

    Raises:
        Forbidden: any other request.
    """
    if settings.metrics_token is not None:
        token = request_.headers.get("Authorization", "").removeprefix("Bearer ").encode()
        if not hmac.compare_digest(token, settings.metrics_token.get_secret_value().encode()):
            raise Forbidden("Access was denied to this resource.")
        return
    passed_on = not settings.trusted_proxies and _is_forwarded(request_)
    if passed_on or not _is_local(request_.remote_addr):
        raise Forbidden("Access was denied to this resource.")


def _is_forwarded(request_: Request) -> bool:
    return any(name in request_.headers for name in ("X-Forwarded-For", "X-Real-IP", "Forwarded", "Via"))


def _is_local(address: str | None) -> bool:
    try:
        return address is not None and ip_address(address).is_loopback
    except ValueError:  # a unix socket has no address; its client is a proxy
        return False


@dataclass(slots=True, eq=False)
class Sampler(Collector):
    """Sampled gauges, at most CACHE_SECONDS old."""

    database: Database
    depths: Callable[[], Mapping[str, int]] | None  # of the broker's queues; None without a broker
    _gauges: Gauges | None = None
    _messages: Mapping[str, int] | None = None
    _seen_at: float = -CACHE_SECONDS
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def collect(self) -> Iterator[GaugeMetricFamily | InfoMetricFamily | CounterMetricFamily]:
        """Yield the current values; an unreachable dependency has none."""
        with self._lock:
            if time.monotonic() - self._seen_at >= CACHE_SECONDS:
                self._sample()
                self._seen_at = time.monotonic()
            observed, messages = self._gauges, self._messages
        yield InfoMetricFamily(
            "orchestrator_build",
            "Version and schema of this installation.",
            {"version": orchestrator.__version__, "schema": required_schema()},
        )
        yield GaugeMetricFamily(
            "orchestrator_database_reachable", "1 when the database answered.", float(observed is not None)
        )
        yield from self._pool()
        if self.depths is not None:
            yield GaugeMetricFamily(
                "orchestrator_broker_reachable", "1 when the broker answered.", float(messages is not None)
            )
        if messages is not None:
            yield _gauge("orchestrator_queue_messages", "Messages in the broker.", "queue", messages)
        if observed is not None:
            yield from _engine_gauges(observed)

    def describe(self) -> list[GaugeMetricFamily]:
        """Return nothing: registration must not query the database."""
        return []

    def _sample(self) -> None:
        try:
            self._gauges = read_gauges(self.database)
        except DATABASE_ERRORS:
            self._gauges = None
        try:
            self._messages = None if self.depths is None else self.depths()
        except UNREACHABLE:
            self._messages = None

    def _pool(self) -> Iterator[GaugeMetricFamily]:
        """Yield the connections of this process."""
        pool = self.database.engine.pool
        if isinstance(pool, QueuePool):
            counts = {"in_use": pool.checkedout(), "idle": pool.checkedin()}
            yield _gauge(
                "orchestrator_database_connections",
                "Connections in the pool of this API process.",
                "state",
                counts,
            )
            maximum = pool.size() + pool._max_overflow
            yield GaugeMetricFamily(
                "orchestrator_database_connections_limit",
                "Maximum number of connections in the pool.",
                float(maximum),
            )


def _zeros(names: Iterable[str]) -> dict[str, float]:
    """Return zero for each name, so that time series have no gaps."""
    return dict.fromkeys(names, 0.0)


def _gauge(name: str, said: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, said, labels=[label])
    for key, value in sorted(values.items()):
        family.add_metric([key], value)
    return family


def _sampler() -> Sampler:
    broker = dependencies().broker_stats
    depths = None if broker is None else broker.depths
    return app_state().part(Sampler, lambda: Sampler(dependencies().database, depths))


def _engine_gauges(observed: Gauges) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
    """Yield the gauges of nodes, stacks, webhooks and the quarantine, and the ended processes."""
    enqueued, oldest = (
        {**_zeros(QUEUES), **observed.enqueued},
        {**_zeros(QUEUES), **observed.oldest_seconds},
    )
    yield _gauge(
        "orchestrator_queue_nodes",
        "Nodes in the queue, enqueued but not yet checked.",
        "queue",
        enqueued,
    )
    yield _gauge(
        "orchestrator_queue_oldest_node_seconds",
        "Age of the oldest queued node in seconds.",
        "queue",
        oldest,
    )
    yield _gauge("orchestrator_nodes", "Unfinished nodes.", "state", observed.nodes)
    stacks = {**_zeros(STACK_ACTIONS), **observed.stacks}
    yield _gauge("orchestrator_stacks_in_progress", "Stacks with an action in progress.", "action", stacks)
    description = "Webhooks by state: due, failing and dead."
    yield _gauge("orchestrator_webhooks", description, "state", observed.webhooks)
    yield GaugeMetricFamily(
        "orchestrator_webhook_oldest_pending_seconds",
        "Age of the oldest undelivered event in seconds.",
        observed.webhook_seconds,
    )
    quarantined = {**_zeros(QUARANTINED_KINDS), **observed.quarantined}
    description = "Work that has hung its process repeatedly and is not executed, by kind."
    yield _gauge("orchestrator_quarantined_work", description, "kind", quarantined)
    ended = CounterMetricFamily(
        "orchestrator_watchdog_ended_processes",
        "Hung processes that the watchdog has ended, by kind of process.",
        labels=["process"],
    )
    for process, count in sorted({**_zeros(WATCHED_PROCESSES), **observed.ended}.items()):
        ended.add_metric([process], count)
    yield ended
