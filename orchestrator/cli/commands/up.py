"""`orchestrator up`: database, broker, workers and API as child processes in the foreground."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import time
from pathlib import Path
from typing import Any, Final

import click

from orchestrator.cli.options import only_with
from orchestrator.cli.profiles import DEFAULT_URL
from orchestrator.cli.server_settings import data_dir_option, load_settings, one_line_failures
from orchestrator.config import Settings
from orchestrator.embedded import processes, simulated_cloud
from orchestrator.embedded.data_dir import DataDir
from orchestrator.embedded.forks import socket_path
from orchestrator.embedded.process import Child
from orchestrator.embedded.simulated_cloud import SIMULATED
from orchestrator.embedded.supervisor import Stopped, Supervisor, supervising
from orchestrator.errors import Misconfigured
from orchestrator.logs import configure_logs
from orchestrator.security.authenticators import require_authenticator
from orchestrator.security.bind_address import require_safe_binding
from orchestrator.security.encryption import cipher
from orchestrator.store.schema import migrate

MIN_WORKERS: Final = 2  # a single worker executes each task of a project to its end while all others wait
PROVIDER_WORKERS: Final = 1


@click.command()
@click.option("--host", help="Listen on this address.  [env: ORCHESTRATOR_HOST; default: 127.0.0.1]")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="Listen on this port.  [env: ORCHESTRATOR_PORT; default: 8004]",
)
@click.option(
    "--workers", type=click.IntRange(1, 256), help="Number of workers.  [default: one per core, at least two]"
)
@data_dir_option
@click.option("--flower/--no-flower", is_eager=True, help="Run Flower, which shows the tasks of the workers.")
@click.option(
    "--flower-port",
    type=click.IntRange(1, 65535),
    default=5555,
    show_default=True,
    callback=only_with("--flower"),
    help="With --flower: port of Flower.",
)
@click.option(
    "--cloud",
    type=click.Choice([SIMULATED]),
    is_eager=True,
    help="Run a simulated OpenStack, and use it (docs/simulated-cloud.md lists its services).",
)
@click.option(
    "--cloud-port",
    type=click.IntRange(1, 65535 - simulated_cloud.PORTS + 1),
    default=18_300,
    show_default=True,
    callback=only_with("--cloud"),
    help="With --cloud: port of Keystone; the other services have the following ports.",
)
def up(
    *,
    host: str | None,
    port: int | None,
    workers: int | None,
    data_dir: Path | None,
    flower: bool,
    flower_port: int,
    cloud: str | None,
    cloud_port: int,
) -> None:
    """Run database, broker, workers and API until Ctrl-C.

    PostgreSQL and Valkey run as child processes, unless ORCHESTRATOR_DATABASE_URL or ORCHESTRATOR_BROKER_URL
    select existing servers. Progress is printed on standard error.
    """
    with one_line_failures():
        settings = _with_defaults(load_settings(host=host, port=port, data_dir=data_dir), flower, flower_port)
        password = simulated_cloud.new_password()
        if cloud is not None:
            settings = settings.model_copy(update=simulated_cloud.settings_of(cloud_port, password))
        require_safe_binding(settings)
        require_authenticator(settings)
        configure_logs(level="WARNING")
        logging.getLogger("httpx").setLevel(logging.WARNING)  # our own health checks
        directory = DataDir(settings.data_dir)
        with directory.lock(), supervising(directory.logs) as supervisor, contextlib.suppress(Stopped):
            require_free(settings.host, settings.port, "--port")
            if settings.cfn_port is not None:
                require_free(settings.host, settings.cfn_port, "ORCHESTRATOR_CFN_PORT")
            if flower:
                require_free("127.0.0.1", flower_port, "--flower-port")
            count = workers or max(MIN_WORKERS, available_cores())
            if cloud is not None:
                password = simulated_cloud.kept_password(directory.root, password)
                settings = _use_cloud(settings, cloud_port, password)
            start(
                supervisor,
                settings,
                directory,
                count=count,
                flower_port=flower_port if flower else None,
                cloud_port=None if cloud is None else cloud_port,
            )
            configure_logs(level="INFO")
            announce(settings, directory, count, flower_port if flower else None)
            if cloud is not None:
                _announce_cloud(cloud_port, password)
            supervisor.watch()
        click.echo("Stopped.")


def _with_defaults(settings: Settings, flower: bool, flower_port: int) -> Settings:
    """Return the settings; without a configured authentication mode, with `none`, and with the address of
    Flower if it runs.

    Both are defaults of this command only, which serves the user of this machine.
    """
    flower_url = settings.flower_url or (flower_address(flower_port) if flower else None)
    return settings.model_copy(update={"auth": settings.auth or "none", "flower_url": flower_url})


def flower_address(port: int) -> str:
    """Return the address of Flower on this machine."""
    return f"http://127.0.0.1:{port}"


def _use_cloud(settings: Settings, port: int, password: str) -> Settings:
    """Let this process and its children use the simulated cloud; return the settings. All its ports must be
    free.
    """
    for offset in range(simulated_cloud.PORTS):
        require_free("127.0.0.1", port + offset, "--cloud-port")
    os.environ.update(simulated_cloud.environment_of(port, password))
    return settings.model_copy(update=simulated_cloud.settings_of(port, password))


def _announce_cloud(port: int, password: str) -> None:
    """Print the variables of a user of the simulated cloud."""
    variables = simulated_cloud.user_variables(port, password)
    click.echo("The cloud is simulated: nothing is real. Its users are admin and demo:")
    click.echo(f"  export {' '.join(f'{name}={value}' for name, value in variables.items())}")


class Steps:
    """Lines about the start on standard error, with the elapsed seconds."""

    def __init__(self) -> None:
        """Start the clock."""
        self.began = time.monotonic()

    def report(self, text: str) -> None:
        """Print a line."""
        click.echo(f"{time.monotonic() - self.began:6.1f}s  {text}", err=True)

    def ready(self, child: Child) -> None:
        """Report that a process is ready."""
        self.report(f"{child.name} is ready")


def start(
    supervisor: Supervisor,
    settings: Settings,
    directory: DataDir,
    *,
    count: int,
    flower_port: int | None,
    cloud_port: int | None,
) -> None:
    """Start all processes in order; return when they are ready.

    Raises:
        Misconfigured: a process cannot start.
        Stopped: a signal requested the end.
    """
    steps = Steps()
    keys = directory.keys_file() if settings.encryption_keys is None else None
    if keys is None:
        cipher(settings)  # refuse invalid keys before any process starts
    servers, database_url, broker_url = _servers(settings, directory)
    if servers:
        new = not (directory.root / "postgres").exists()
        names = " and ".join(child.name for child in servers)
        steps.report(f"starting {names}{' (first start: creating the database)' if new else ''}")
    env = processes.environment(settings, database_url, broker_url, keys, directory.root / "figures")
    forks = socket_path(directory.run)
    supervisor.start([*servers, processes.fork_server(env, directory.run)], on_ready=steps.ready)
    steps.report("migrating the database schema")
    migrate.upgrade(database_url)
    if cloud_port is not None:
        cloud = simulated_cloud.child(cloud_port, directory.root, settings.address)
        supervisor.start([cloud], on_ready=steps.ready)
    events = flower_port is not None
    children = processes.workers(env, directory.run, count=count, events=events, fork_server=forks)
    app = processes.API_APP if cloud_port is None else processes.LOCAL_API_APP
    children.append(processes.api(env, directory.run, settings, app, fork_server=forks))
    if flower_port is not None:
        children.append(processes.flower(env, directory.run, flower_port))
    steps.report(f"starting {count + PROVIDER_WORKERS} workers and the API")
    supervisor.start(children, on_ready=steps.ready)


def _servers(settings: Settings, directory: DataDir) -> tuple[list[Child], str, str]:
    """Return the database and broker processes to start, and the URLs of database and broker."""
    servers = []
    if settings.database_url is None:
        postgres = directory.postgres()
        servers.append(postgres.child())
        database_url = postgres.url()
    else:
        database_url = settings.database_url.get_secret_value()
    if settings.broker_url is None:
        valkey = directory.valkey()
        servers.append(valkey.child())
        broker_url = valkey.url()
    else:
        broker_url = settings.broker_url.get_secret_value()
    return servers, database_url, broker_url


def announce(settings: Settings, directory: DataDir, count: int, flower_port: int | None) -> None:
    """Print the address, the directories and the next commands."""
    url = settings.address
    facts = {
        "console": f"{url}/ui",
        "data": str(directory.root),
        "logs": str(directory.logs),
        "workers": f"{count} for checks, {PROVIDER_WORKERS} for provider calls",
    }
    if flower_port is not None:
        facts["flower"] = flower_address(flower_port)
    lines = [f"Ready: {url} (Ctrl-C stops it)", *(f"  {name:8} {value}" for name, value in facts.items())]
    lines.append("Next, in another terminal:")
    if settings.auth == "token":
        command = f"orchestrator token create --project demo --data-dir {directory.root}"
        lines.append(f"  export ORCHESTRATOR_TOKEN=$({command})")
    if url != DEFAULT_URL:
        lines.append(f"  export ORCHESTRATOR_URL={url}")
    lines.append("  orchestrator stack create -t template.yaml --wait my-stack")
    click.echo("\n".join(lines))


def require_free(host: str, port: int, option: str) -> None:
    """Return if it is possible to listen on the port.

    Raises:
        Misconfigured: the port is in use, or the address is not an address of this machine.
    """
    try:
        family, socket_type, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket_type, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise Misconfigured(
            f"cannot listen on {host} port {port}: {error.strerror}; choose a different port with {option}"
        ) from error


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    affinity: Any = getattr(os, "sched_getaffinity", None)  # not on macOS
    return len(affinity(0)) if affinity else os.cpu_count() or 1
