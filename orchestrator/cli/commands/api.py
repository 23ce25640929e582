"""`orchestrator api`: the API behind gunicorn, configured for this application."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import click
from gunicorn.app.base import BaseApplication
from gunicorn.util import import_app

from orchestrator.cli.import_path import remove_current_directory
from orchestrator.cli.server_settings import load_settings, one_line_failures
from orchestrator.config import PREFIX, Settings
from orchestrator.embedded.processes import API_WORKER, KEEP_ALIVE_SECONDS, api_threads
from orchestrator.security.authenticators import require_authenticator
from orchestrator.security.bind_address import require_safe_binding


class Server(BaseApplication):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn without its command line: it adds the current directory to the import path, this does not."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        """Keep the options; gunicorn reads them in `load_config`."""
        self.options = options
        super().__init__(prog="orchestrator api")

    def load_config(self) -> None:
        """Set gunicorn's options."""
        for name, value in self.options.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        """Return the WSGI application; called in each process of the API."""
        return import_app("api.app:create_app()")  # it reads the settings, which the options complete


@click.command()
@click.option("--host", help="Listen on this address.  [default: ORCHESTRATOR_HOST or 127.0.0.1]")
@click.option(
    "--port", type=click.IntRange(1, 65535), help="Listen on this port.  [default: ORCHESTRATOR_PORT or 8004]"
)
@click.option(
    "--processes", type=click.IntRange(1, 256), default=1, show_default=True, help="Number of processes."
)
@click.option(
    "--threads",
    type=click.IntRange(1, 10_000),
    help="Threads of each process.  [default: 16, plus one for each event stream and slow body]",
)
@click.option(
    "--graceful-timeout",
    type=click.IntRange(0),
    metavar="SECONDS",
    default=30,
    show_default=True,
    help="Time for running requests after SIGTERM.",
)
def api(
    host: str | None, port: int | None, processes: int, threads: int | None, graceful_timeout: int
) -> None:
    """Run the API.

    Database, broker and keys come from ORCHESTRATOR_DATABASE_URL, ORCHESTRATOR_BROKER_URL and
    ORCHESTRATOR_ENCRYPTION_KEYS. Run `orchestrator migrate` first.
    """
    remove_current_directory()
    with one_line_failures():
        settings = load_settings(host=host, port=port)
        require_safe_binding(settings)
        require_authenticator(settings)
    os.environ[f"{PREFIX}HOST"] = settings.host  # the application reads its settings from the environment
    os.environ[f"{PREFIX}PORT"] = str(settings.port)
    options = gunicorn_options(settings, processes=processes, threads=threads)
    Server(options | {"graceful_timeout": graceful_timeout}).run()


def gunicorn_options(settings: Settings, *, processes: int, threads: int | None) -> dict[str, Any]:
    """Return gunicorn's options, under the names of its configuration file."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    ports = [settings.port] if settings.cfn_port is None else [settings.port, settings.cfn_port]
    return {
        "bind": [f"{host}:{port}" for port in ports],
        "workers": processes,
        "threads": threads or api_threads(settings),
        "worker_class": API_WORKER,
        "logger_class": "api.serving.gunicorn_logging.Logs",
        "keepalive": KEEP_ALIVE_SECONDS,
        "control_socket_disable": True,
    }
