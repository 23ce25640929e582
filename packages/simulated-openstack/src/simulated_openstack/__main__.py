"""The command `simulated-openstack`, also `python -m simulated_openstack`."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sqlite3
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from simulated_openstack.cloud import SimulatedCloud
from simulated_openstack.environment import delays_from
from simulated_openstack.storage import FileStorage


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    about = "An OpenStack without servers behind it, for tests and laptops."
    parser = argparse.ArgumentParser(prog="simulated-openstack", description=about)
    parser.add_argument("--version", action="version", version=version("simulated-openstack"))
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="run the cloud until SIGTERM or Ctrl-C")
    serve.set_defaults(run=_serve)
    add = serve.add_argument
    add(
        "--port",
        type=int,
        default=0,
        help="of Keystone, and the following ones; default: free ports",
    )
    add("--state", type=Path, help="file that keeps the objects; default: memory")
    add("--faults", type=Path, help="file with faults, read whenever it changes")
    add("--delays", type=delays_from, default="typical", help="typical, none, or server_build=2,...")
    add("--orchestration-url", default="", help="address of a Heat or its equivalent, for the catalog")
    add("--password-file", type=Path, help="file with the password; default: a random one")
    options = parser.parse_args(arguments)
    status: int = options.run(options)
    return status


def _serve(options: argparse.Namespace) -> int:
    """Run a cloud; return 1 with a message if a file or a port cannot be used."""
    try:
        password = None if options.password_file is None else options.password_file.read_text().strip()
        cloud = SimulatedCloud(
            delays=options.delays,
            storage=None if options.state is None else FileStorage(options.state),
            faults_file=options.faults,
            password=password,
            orchestration_url=options.orchestration_url,
        )
        asyncio.run(_run(cloud, options.port, is_new=password is None))
    except (OSError, sqlite3.Error) as error:
        print(f"simulated-openstack: {error}", file=sys.stderr)
        return 1
    return 0


async def _run(cloud: SimulatedCloud, port: int, *, is_new: bool) -> None:
    """Serve until a stop signal, after printing the variables of the administrator."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    await cloud.listen(port)
    variables = cloud.variables("admin")
    if not is_new:  # it may be a secret of the caller
        del variables["OS_PASSWORD"]
    print(f"simulated cloud: {cloud.auth_url} (users admin and demo, project demo)")
    print(f"  export {' '.join(f'{name}={value}' for name, value in variables.items())}", flush=True)
    await stopped.wait()
    await cloud.close()


if __name__ == "__main__":
    sys.exit(main())
