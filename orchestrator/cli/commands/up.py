"""`orchestrator up`: database, broker, workers and API as children of one process in the foreground."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from pathlib import Path
from typing import Any

import click

from orchestrator.cli.commands.server import data_dir_option, load_settings, one_line_failures
from orchestrator.config import Settings
from orchestrator.embedded import processes
from orchestrator.embedded.data_dir import DataDir
from orchestrator.embedded.supervisor import Stopped, Supervisor, supervising
from orchestrator.errors import Misconfigured
from orchestrator.logs import configure_logs
from orchestrator.security.authenticators import require_authenticator
from orchestrator.security.bind_address import require_safe_binding
from orchestrator.security.encryption import cipher
from orchestrator.store.schema import migrate

DEFAULT_URL = "http://127.0.0.1:8004"  # where the client commands look by themselves


@click.command()
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(1, 65535), help="Port to listen on.  [default: 8004]")
@click.option("--workers", type=click.IntRange(1, 256), help="Worker processes.  [default: one per core]")
@data_dir_option
@click.option("--flower/--no-flower", help="Watch the tasks with Flower.")
@click.option("--flower-port", type=click.IntRange(1, 65535), default=5555, show_default=True)
def up(
    *,
    host: str | None,
    port: int | None,
    workers: int | None,
    data_dir: Path | None,
    flower: bool,
    flower_port: int,
) -> None:
    """Start the whole server and keep it running until Ctrl-C.

    Its own PostgreSQL and Valkey are started too, unless ORCHESTRATOR_DATABASE_URL or
    ORCHESTRATOR_BROKER_URL name others.
    """
    with one_line_failures():
        settings = load_settings(host=host, port=port, data_dir=data_dir)
        require_safe_binding(settings)
        require_authenticator(settings)
        configure_logs(level="INFO")
        logging.getLogger("httpx").setLevel(logging.WARNING)  # our own health checks are no news
        folder = DataDir(settings.data_dir)
        with folder.lock(), supervising(folder.logs) as supervisor, contextlib.suppress(Stopped):
            require_free(settings.host, settings.port, "--port")
            if settings.cfn_port is not None:
                require_free(settings.host, settings.cfn_port, "ORCHESTRATOR_CFN_PORT")
            if flower:
                require_free("127.0.0.1", flower_port, "--flower-port")
            count = workers or available_cores()
            start(supervisor, settings, folder, count=count, flower_port=flower_port if flower else None)
            announce(settings, folder, count, flower_port if flower else None)
            supervisor.watch()
        click.echo("Stopped.")


def start(
    supervisor: Supervisor, settings: Settings, folder: DataDir, *, count: int, flower_port: int | None
) -> None:
    """Start everything in order; return when all of it is ready.

    Raises:
        Misconfigured: something cannot start.
        Stopped: somebody said stop meanwhile.
    """
    keys = folder.keys_file() if settings.encryption_keys is None else None
    if keys is None:
        cipher(settings)  # refuse keys that are none before anything is started
    servers = []
    if settings.database_url is None:
        postgres = folder.postgres()
        servers.append(postgres.child())
        database_url = postgres.url()
    else:
        database_url = settings.database_url.get_secret_value()
    if settings.broker_url is None:
        valkey = folder.valkey()
        servers.append(valkey.child())
        broker_url = valkey.url()
    else:
        broker_url = settings.broker_url.get_secret_value()
    supervisor.start(servers)
    migrate.upgrade(database_url)
    env = processes.environment(settings, database_url, broker_url, keys, folder.root / "figures")
    children = processes.workers(env, folder.run, count=count, events=flower_port is not None)
    children.append(processes.api(env, folder.run, settings))
    if flower_port is not None:
        children.append(processes.flower(env, folder.run, flower_port))
    supervisor.start(children)


def announce(settings: Settings, folder: DataDir, count: int, flower_port: int | None) -> None:
    """Say that it is ready, where, and what to try."""
    url = settings.address
    facts = {
        "data": str(folder.root),
        "logs": str(folder.logs),
        "workers": f"{count} for checks, 1 for calls to services",
    }
    if flower_port is not None:
        facts["flower"] = f"http://127.0.0.1:{flower_port}"
    lines = [f"Ready: {url} (Ctrl-C stops it)", *(f"  {name:8} {value}" for name, value in facts.items())]
    lines.append("Next, in another terminal:")
    if settings.auth == "token":
        command = f"orchestrator token create --project demo --data-dir {folder.root}"
        lines.append(f"  export ORCHESTRATOR_TOKEN=$({command})")
    if url != DEFAULT_URL:
        lines.append(f"  export ORCHESTRATOR_URL={url}")
    lines.append("  orchestrator stack create -t template.yaml --wait my-stack")
    click.echo("\n".join(lines))


def require_free(host: str, port: int, option: str) -> None:
    """Return when nobody listens there.

    Raises:
        Misconfigured: somebody does, or the address is not this machine's.
    """
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except OSError as error:
        raise Misconfigured(
            f"cannot listen on {host} port {port}: {error.strerror}; choose another with {option}"
        ) from error


def available_cores() -> int:
    """Return how many cores we may use."""
    affinity: Any = getattr(os, "sched_getaffinity", None)  # not on macOS
    return len(affinity(0)) if affinity else os.cpu_count() or 1
