"""The main job from beginning to end, on servers of its own: `make demo`.

Every command is printed before it runs, so that a reader can type the same. Nothing stays behind: the server
is a child in a folder of its own, and goes with us however we end.
"""

from __future__ import annotations

import os
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
from orchestrator.errors import OrchestratorError

TEMPLATE = Path("examples", "shop.yaml")
STACK = "shop"
READY_SECONDS = 120.0
STOP_SECONDS = 60.0
ORCHESTRATOR = (sys.executable, "-m", "orchestrator.cli.main")


def main() -> int:
    """Run the demonstration; return the exit status."""
    signal.signal(signal.SIGTERM, _terminated)
    if not TEMPLATE.exists():
        click.echo(f"Error: {TEMPLATE} is not here; run the demonstration in the project's folder", err=True)
        return Exit.ERROR
    try:
        with tempfile.TemporaryDirectory(prefix="orchestrator-demo-") as folder:
            return _demonstrate(Path(folder))
    except OrchestratorError as error:
        click.echo(f"Error: {error}", err=True)
        return Exit.ERROR
    except KeyboardInterrupt:
        click.echo("\nInterrupted; the server is stopped and nothing is left.", err=True)
        return Exit.INTERRUPTED


def _demonstrate(folder: Path) -> int:
    folder.chmod(0o711)  # as root the database runs as somebody else, who has to pass through here
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    # Only what the demonstration sets: an operator's own servers and tokens stay out of it.
    env = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    arguments = ("up", "--port", str(port), "--data-dir", str(folder / "data"))
    _tell("A server with its own PostgreSQL, Valkey, workers and API:", arguments)
    log = folder / "up.log"
    server = Child(
        name="orchestrator up",
        argv=(*ORCHESTRATOR, *arguments),
        env=env,
        ready=lambda _pid: "Ready: " in log.read_text(errors="replace"),
        death_signal=signal.SIGTERM,  # it has to stop what it started
        stop_seconds=STOP_SECONDS,
    )
    with running(server, log, ready_seconds=READY_SECONDS):
        click.echo(f"Ready: {url}")
        client = env | {f"{PREFIX}URL": url}
        _tell(f"Commands find it by their environment:\n$ export {PREFIX}URL={url}")
        template = ("-t", str(TEMPLATE))
        _run("Is the template right? Nothing is made yet.", ("validate", *template), client)
        _run("Make a stack of it, and watch:", ("stack", "create", *template, "--wait", STACK), client)
        _run("What is there now:", ("stack", "list"), client)
        _run("One output alone, for a script:", ("stack", "outputs", STACK, "summary"), client)
        _run(
            "And away with it, in the opposite order:", ("stack", "delete", "--yes", "--wait", STACK), client
        )
        _run("Nothing is left:", ("stack", "list"), client)
        _tell("Stopping the server. To keep one running: `make up`; more templates: examples/.")
    return Exit.OK


def _run(why: str, arguments: tuple[str, ...], env: Mapping[str, str]) -> None:
    """Run a client command on our own terminal; one that fails ends the demonstration with its status."""
    _tell(why, arguments)
    status = subprocess.run([*ORCHESTRATOR, *arguments], env=env, check=False).returncode
    if status:
        raise SystemExit(status if status > 0 else 128 - status)


def _tell(why: str, arguments: tuple[str, ...] = ()) -> None:
    """Say what comes next, and the command line as one would type it."""
    click.echo()
    click.secho(f"# {why}", dim=True)
    if arguments:
        click.secho(f"$ {shlex.join(('orchestrator', *arguments))}", bold=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _terminated(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + signal.SIGTERM)


if __name__ == "__main__":
    raise SystemExit(main())
