"""The demonstration, `make demo`: create, change and delete a web application on a simulated cloud.

Every command is printed before it runs, ready to be repeated. Nothing remains: the server is a child process
in a temporary directory, and ends with the demonstration.
"""

from __future__ import annotations

import contextlib
import os
import random
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import FrameType

import click

from orchestrator.cli.exit_codes import Exit
from orchestrator.config import PREFIX
from orchestrator.embedded.process import Child, running
from orchestrator.embedded.simulated_cloud import PORTS as CLOUD_PORTS
from orchestrator.embedded.simulated_cloud import SIMULATED, kept_password, user_variables
from orchestrator.errors import OrchestratorError

TEMPLATE = Path("examples", "three-tier.yaml")
STACK = "shop"
READY_SECONDS = 180.0
STOP_SECONDS = 60.0
ORCHESTRATOR = (sys.executable, "-m", "orchestrator.cli.main")


def main() -> int:
    """Run the demonstration; return the exit status."""
    signal.signal(signal.SIGTERM, _terminated)
    if not TEMPLATE.exists():
        click.echo(f"Error: {TEMPLATE} is missing; run this in the directory of the project", err=True)
        return Exit.ERROR
    try:
        with tempfile.TemporaryDirectory(prefix="orchestrator-demo-") as folder:
            return _demonstrate(Path(folder))
    except OrchestratorError as error:
        click.echo(f"Error: {error}", err=True)
        return Exit.ERROR
    except KeyboardInterrupt:
        click.echo("\nInterrupted; the server is stopped and all its data are deleted.", err=True)
        return Exit.INTERRUPTED


def _demonstrate(folder: Path) -> int:
    folder.chmod(0o711)  # for root, the database runs as a different user and needs access to subdirectories
    port, cloud_port = _free_port(), _free_ports(CLOUD_PORTS)
    url = f"http://127.0.0.1:{port}"
    # Without the settings of the user: the demonstration must not use existing servers and tokens.
    env = {name: value for name, value in os.environ.items() if not name.startswith((PREFIX, "OS_"))}
    cloud = ("--cloud", SIMULATED, "--cloud-port", str(cloud_port))
    arguments = ("up", *cloud, "--port", str(port), "--data-dir", str(folder / "data"))
    _announce(
        "Start a server with its own PostgreSQL, Valkey, workers, API and simulated OpenStack:", arguments
    )
    log = folder / "up.log"
    server = Child(
        name="orchestrator up",
        argv=(*ORCHESTRATOR, *arguments),
        env=env,
        ready=lambda _pid: "Ready: " in log.read_text(errors="replace"),
        death_signal=signal.SIGTERM,  # so that it stops its children
        stop_seconds=STOP_SECONDS,
    )
    with running(server, log, ready_seconds=READY_SECONDS):
        click.echo(f"Ready: {url} (web console: {url}/ui)")
        variables = {f"{PREFIX}URL": url, **user_variables(cloud_port, kept_password(folder / "data"))}
        exports = " ".join(f"{name}={value}" for name, value in variables.items())
        _announce(f"Select the server and the user for the next commands:\n$ export {exports}")
        client = env | variables
        template = ("-t", str(TEMPLATE))
        _run("Validate the template; this creates nothing:", ("validate", *template), client)
        _run("Create a stack, and wait for it:", ("stack", "create", *template, "--wait", STACK), client)
        _run("List the stacks:", ("stack", "list"), client)
        more = (*template, "--parameter", "web_count=3")
        _run("Preview a third web server:", ("stack", "update", *more, "--preview", STACK), client)
        _run("Add it; nothing else changes:", ("stack", "update", *more, "--wait", STACK), client)
        _run("Print a single output, for a script:", ("stack", "outputs", STACK, "web_addresses"), client)
        _run("Delete the stack, in reverse order:", ("stack", "delete", "--yes", "--wait", STACK), client)
        _run("List the stacks again:", ("stack", "list"), client)
        _announce("Stop the server. `make up` starts a permanent server; more templates are in examples/.")
    return Exit.OK


def _run(title: str, arguments: tuple[str, ...], env: Mapping[str, str]) -> None:
    """Run a client command; after a failure, end the demonstration with its exit code."""
    _announce(title, arguments)
    status = subprocess.run([*ORCHESTRATOR, *arguments], env=env, check=False).returncode
    if status:
        raise SystemExit(status if status > 0 else 128 - status)


def _announce(title: str, arguments: tuple[str, ...] = ()) -> None:
    """Print the next step and its command line."""
    click.echo()
    click.secho(f"# {title}", dim=True)
    if arguments:
        click.secho(f"$ {shlex.join(('orchestrator', *arguments))}", bold=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _free_ports(count: int) -> int:
    """Return the first of consecutive free ports, below those that the system gives to clients."""
    while True:
        first = random.randrange(20_000, 32_000)  # noqa: S311 - no secret
        with contextlib.suppress(OSError), contextlib.ExitStack() as probes:
            for port in range(first, first + count):
                probes.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first


def _terminated(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + signal.SIGTERM)


if __name__ == "__main__":
    raise SystemExit(main())
