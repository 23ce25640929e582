"""Application factory of the API: `gunicorn 'api.app:create_app()'`. All dependencies are created here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flask import Flask

from api.dependencies import Dependencies, Operations
from api.routes import assemble
from orchestrator import config, logs
from orchestrator.engine.messages import Message
from orchestrator.operations import offload
from orchestrator.operations.outputs import outputs
from orchestrator.operations.signals import accept, health_marks
from orchestrator.operations.stacks import actions, create_delete
from orchestrator.resources.registry import load_registry
from orchestrator.security.bind_address import require_safe_binding, require_safe_sockets
from orchestrator.security.encryption import cipher
from orchestrator.store.connections.database import Database, open_database
from orchestrator.store.schema import version
from tasks.broker_stats import BrokerStats
from tasks.publisher import Dispatcher, StackProjects, broker_url

PATIENCE_SECONDS = 5.0  # longest interruption by a restart of the database that is retried silently


def create_app(
    settings: config.Settings | None = None,
    database: Database | None = None,
    publish: Callable[[Sequence[Message]], None] | None = None,
    *,
    local: bool = False,
) -> Flask:
    """Return the application; parts that are not given are created from the settings. `local`: reject
    requests for other hosts than this machine.

    Raises:
        Misconfigured: the binding is unsafe, a setting is missing, or the database schema has another
            version.
    """
    if settings is None:
        settings = config.settings()
        logs.configure_logs()
    require_safe_binding(settings)
    require_safe_sockets(settings)
    database = database or open_database(settings, "orchestrator-api", patience_seconds=PATIENCE_SECONDS)
    try:
        version.require_current(database.url)
    except version.DatabaseUnreachable as error:  # requests receive 503, and /readyz checks the schema later
        logs.logger().warning("database_unreachable", error=str(error))
    sealing = cipher(settings)
    offload.preload_forkserver(cloud=settings.auth == "keystone")
    return assemble(
        Dependencies(
            settings,
            database,
            sealing,
            load_registry(),
            operations(),
            publish or _publish_to_workers(settings, database),
            None if settings.broker_url is None else BrokerStats(broker_url(settings)),
            local,
        )
    )


def operations() -> Operations:
    """Return the operations that views call."""
    return Operations(
        create=offload.create,
        delete=create_delete.delete,
        update=offload.update,
        start_action=actions.start_action,
        signal=accept.signal,
        signal_by_url=accept.signal_by_url,
        mark_unhealthy=health_marks.mark_unhealthy,
        pending_hooks=accept.waiting,
        validate=offload.validate,
        resolve_outputs=outputs.resolve_outputs,
        roll_back=offload.roll_back,
        diff_revisions=offload.differ,
        preview_create=offload.preview_create,
        preview_update=offload.preview_update,
        signal_fast=accept.signal_fast,
    )


def _publish_to_workers(settings: config.Settings, database: Database) -> Callable[[Sequence[Message]], None]:
    """Return the function that publishes messages to the workers.

    Raises:
        Misconfigured: no broker is set.
    """
    projects = StackProjects(lambda: database)
    return Dispatcher(broker_url(settings), projects).publish
