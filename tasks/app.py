"""The Celery application, and all its wiring: settings, the engine each process shares, the tick beside every
worker, and what is beside one that calls services: couriers, and a custodian.

`celery -A tasks.app worker -Q check,provider,observe,bulk` starts one by hand.
"""

from __future__ import annotations

import os
import threading
from typing import Any, Final

from celery import Celery
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
from orchestrator.operations.planning.process import stop_planners
from orchestrator.operations.reconcile.worker_context import WorkerContext
from orchestrator.resources.registry import load_registry
from orchestrator.security.encryption import cipher
from orchestrator.security.keystone import domain_admin
from orchestrator.store.connections.database import open_database
from orchestrator.store.schema.version import require_current
from tasks import metrics_server
from tasks.celery_settings import celery_settings
from tasks.keystone_cleanup import KeystoneCleanupThread
from tasks.periodic import PeriodicThread
from tasks.publisher import Dispatcher, broker_url
from tasks.webhook_delivery import WebhookDeliveryThread

log = logger()


app = Celery("orchestrator", include=["tasks.check", "tasks.signal"])
app.conf.update(celery_settings(broker_url(settings())))
dispatcher = Dispatcher(broker_url(settings()), settings().check_batch)

PROVIDER = "provider"  # the queue of those who may call, and wait

_engines: dict[int, WorkerContext] = {}
_lock = threading.Lock()


def engine() -> WorkerContext:
    """Return this process's engine, made on first use: after a fork nothing of the parent's is shared."""
    made = _engines.get(os.getpid())
    if made is None:
        with _lock:
            made = _engines.get(os.getpid()) or _engines.setdefault(os.getpid(), make_engine())
    return made


def make_engine() -> WorkerContext:
    """Return an engine on the configured database."""
    chosen = settings()
    database = open_database(chosen, "orchestrator-worker")
    return build_worker_context(database, cipher(chosen), load_registry(), chosen)


@celeryd_init.connect  # before Celery warns of anything
@setup_logging.connect
def _configure_logging(**_: Any) -> None:
    configure_logs()


@worker_init.connect
def _require_valid_setup(**_: Any) -> None:
    try:
        cipher(settings())
        metrics_server.require_protected_metrics(settings())
        domain_admin(settings())
        require_current(open_database(settings()).url)
    except Misconfigured as error:
        raise SystemExit(f"orchestrator worker: {error}") from error


SWEEP_SPACING: Final = 0.8  # of the interval: who comes a little early sweeps

_threads: list[PeriodicThread | WebhookDeliveryThread | KeystoneCleanupThread] = []


@worker_process_init.connect
def _preload_engine(**_: Any) -> None:
    engine()
    gc_policy.freeze_loaded_objects()


@worker_ready.connect
def _start_threads(sender: Any, **_: Any) -> None:
    chosen = settings()
    database = open_database(chosen, "orchestrator-sweep")
    tick = PeriodicThread(
        Sweep(
            database, chosen, load_registry(), cipher(chosen), SWEEP_SPACING * chosen.sweep_interval_seconds
        ),
        Heartbeat(database, sender.hostname, sorted(sender.app.amqp.queues.consume_from)),
        dispatcher,
        chosen.sweep_interval_seconds,
    )
    metrics_server.serve(chosen)
    tick.start()
    _threads.append(tick)
    if sender is not None and PROVIDER in sender.app.amqp.queues.consume_from:
        couriers = WebhookDeliveryThread(
            WebhookSender(open_database(chosen, "orchestrator-courier"), cipher(chosen), chosen)
        )
        couriers.start()
        _threads.append(couriers)
        if chosen.auth == "keystone":
            beside = open_database(chosen, "orchestrator-custodian")
            reapers = (credential_reaper(beside, cipher(chosen), chosen), stack_user_reaper(beside, chosen))
            custody = KeystoneCleanupThread([reaper for reaper in reapers if reaper is not None])
            custody.start()
            _threads.append(custody)


@worker_shutting_down.connect
def _stop_threads(**_: Any) -> None:
    for thread in _threads:
        thread.stop()


@worker_shutdown.connect
def _stop_planners(**_: Any) -> None:
    stop_planners()
