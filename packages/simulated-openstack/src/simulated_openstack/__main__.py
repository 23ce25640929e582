"""The command `simulated-openstack`, also `python -m simulated_openstack`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from simulated_openstack.cloud import SimulatedCloud, delays_from
from simulated_openstack.storage import FileStorage


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    about = "An OpenStack without servers behind it, for tests and laptops."
    parser = argparse.ArgumentParser(prog="simulated-openstack", description=about)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="run the cloud until SIGTERM or Ctrl-C")
    serve.set_defaults(run=_serve)
    add = serve.add_argument
    add("--port", type=int, default=0, help="port of Keystone; the services have the following ones")
    add("--state", type=Path, help="file that keeps the objects; default: memory")
    add("--faults", type=Path, help="file with faults, read whenever it changes")
    add("--delays", type=delays_from, default="typical", help="typical, none, or server_build=2,...")
    add("--orchestration-url", default="", help="address of a Heat or its equivalent, for the catalog")
    add("--password-file", type=Path, help="file with the password; default: a random one")
    options = parser.parse_args(arguments)
    status: int = options.run(options)
    return status


def _serve(options: argparse.Namespace) -> int:
    password = None if options.password_file is None else options.password_file.read_text().strip()
    cloud = SimulatedCloud(
        delays=options.delays,
        storage=None if options.state is None else FileStorage(options.state),
        faults_file=options.faults,
        password=password,
        orchestration_url=options.orchestration_url,
    )
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_run(cloud, options.port, is_new=password is None))
    return 0


async def _run(cloud: SimulatedCloud, port: int, *, is_new: bool) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    await cloud.listen(port)
    secret = f"password {cloud.password}" if is_new else "password from the file"
    print(f"simulated cloud: {cloud.auth_url} (users admin and demo, project demo, {secret})", flush=True)
    await stopped.wait()
    await cloud.close()


if __name__ == "__main__":
    sys.exit(main())
