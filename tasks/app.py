"""The Celery application and its wiring: settings, the worker context of each process, the periodic thread of
each worker, and the threads of provider workers for webhooks and Keystone cleanup.

Start a worker by hand with `celery -A tasks.app worker -Q check,provider,observe,bulk`.
"""

from __future__ import annotations

import os
import threading
import warnings
from typing import Any, Final

from celery import Celery
from celery.exceptions import CPendingDeprecationWarning, SecurityWarning
from celery.signals import (
    celeryd_init,
    setup_logging,
    worker_init,
    worker_process_init,
    worker_ready,
    worker_shutdown,
    worker_shutting_down,
)

from orchestrator import gc_policy
from orchestrator.config import settings
from orchestrator.errors import Misconfigured
from orchestrator.logs import configure_logs, logger
from orchestrator.operations.bootstrap import build_worker_context
from orchestrator.operations.events.webhook_delivery import WebhookSender
from orchestrator.operations.keystone.delegated_credentials import credential_reaper
from orchestrator.operations.keystone.stack_users import stack_user_reaper
from orchestrator.operations.maintenance.heartbeat import Heartbeat
from orchestrator.operations.maintenance.sweep import Sweep
from orchestrator.operations.reconcile.worker_context import WorkerContext
from orchestrator.resources.registry import load_registry
from orchestrator.security.encryption import cipher
from orchestrator.security.keystone import domain_admin
from orchestrator.store.connections.database import open_database
from orchestrator.store.schema.version import wait_for_current
from orchestrator.watchdog.watch import watch
from tasks import metrics_server
from tasks.broker_connections import install_transport
from tasks.broker_stats import BrokerStats
from tasks.celery_settings import celery_settings
from tasks.fair_queues import WorkerReport
from tasks.notification_listener import NotificationThread, notification_thread
from tasks.periodic import KeystoneCleanupThread, PeriodicThread
from tasks.publisher import Dispatcher, StackProjects, broker_url
from tasks.webhook_delivery import WebhookDeliveryThread

log = logger()


install_transport()
app = Celery("orchestrator", include=["tasks.check", "tasks.observe", "tasks.signal"])
app.conf.update(celery_settings(broker_url(settings())))
projects = StackProjects(lambda: engine().database)
dispatcher = Dispatcher(broker_url(settings()), projects)

PROVIDER = "provider"  # queue of types whose calls may block on a provider

_engines: dict[int, WorkerContext] = {}
_lock = threading.Lock()


def engine() -> WorkerContext:
    """Return this process's worker context, created on first use so that a forked process shares no
    connection.
    """
    context = _engines.get(os.getpid())
    if context is None:
        with _lock:
            context = _engines.get(os.getpid()) or _engines.setdefault(os.getpid(), make_engine())
    return context


def make_engine() -> WorkerContext:
    """Return a worker context for the configured database."""
    chosen = settings()
    database = open_database(chosen, "orchestrator-worker")
    return build_worker_context(database, cipher(chosen), load_registry(), chosen)


@celeryd_init.connect  # before Celery's first warning
@setup_logging.connect
def _configure_logging(**_: object) -> None:
    configure_logs()
    # Messages are numbers in JSON: they cannot make a worker that runs as root execute code.
    warnings.filterwarnings("ignore", category=SecurityWarning)


@worker_init.connect
def _require_valid_setup(**_: object) -> None:
    try:
        cipher(settings())
        metrics_server.require_protected_metrics(settings())
        domain_admin(settings())
        wait_for_current(open_database(settings()).url)
    except Misconfigured as error:
        raise SystemExit(f"orchestrator worker: {error}") from error
    watch("worker")


SWEEP_SECONDS: Final = 0.5  # interval between sweeps, for all workers together
SWEEP_SPACING: Final = 0.8  # of the interval: a sweep slightly early still runs

_threads: list[PeriodicThread | WebhookDeliveryThread | KeystoneCleanupThread | NotificationThread] = []


@worker_process_init.connect
def _preload_engine(**_: object) -> None:
    watch("worker")  # its own child process
    engine()
    gc_policy.freeze_loaded_objects()


@worker_ready.connect  # after Celery has turned them on
def _ignore_future_defaults(**_: object) -> None:
    """Have no warning of a later default at each loss of the broker: the setting is intended."""
    warnings.filterwarnings("ignore", category=CPendingDeprecationWarning)


@worker_ready.connect
def _start_threads(sender: Any, **_: Any) -> None:
    chosen = settings()
    database = open_database(chosen, "orchestrator-sweep")
    periodic = PeriodicThread(
        Sweep(
            database,
            chosen,
            load_registry(),
            cipher(chosen),
            SWEEP_SPACING * SWEEP_SECONDS,
            BrokerStats(broker_url(chosen)).waiting_seconds,
        ),
        Heartbeat(database, sender.hostname, sorted(sender.app.amqp.queues.consume_from)),
        dispatcher,
        SWEEP_SECONDS,
        WorkerReport(sender.hostname, sorted(sender.app.amqp.queues.consume_from), sender.pool.num_processes),
    )
    metrics_server.serve(chosen)
    periodic.start()
    _threads.append(periodic)
    if sender is not None and PROVIDER in sender.app.amqp.queues.consume_from:
        webhook_thread = WebhookDeliveryThread(
            WebhookSender(
                open_database(chosen, "orchestrator-webhooks"), cipher(chosen), chosen, engine().quarantine
            )
        )
        webhook_thread.start()
        _threads.append(webhook_thread)
        notifications = notification_thread(chosen, dispatcher.publish)
        if notifications is not None:
            notifications.start()
            _threads.append(notifications)
        if chosen.auth == "keystone":
            cleanup_database = open_database(chosen, "orchestrator-keystone")
            reapers = (
                credential_reaper(cleanup_database, cipher(chosen), chosen),
                stack_user_reaper(cleanup_database, chosen),
            )
            cleanup_thread = KeystoneCleanupThread([reaper for reaper in reapers if reaper is not None])
            cleanup_thread.start()
            _threads.append(cleanup_thread)


@worker_shutting_down.connect
def _stop_threads(**_: object) -> None:
    for thread in _threads:
        thread.stop()


@worker_shutdown.connect
def _stop_planners(**_: object) -> None:
    context = _engines.get(os.getpid())
    if context is not None:
        context.planner_processes.stop()
