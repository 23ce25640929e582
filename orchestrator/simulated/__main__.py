"""Run the simulated cloud until SIGTERM: `python -m orchestrator.simulated --port 18300`.

The process that `orchestrator up --cloud simulated` starts.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
from pathlib import Path

from orchestrator.simulated.cloud import SimulatedCloud, delays_from
from orchestrator.simulated.storage import FileStorage


def main() -> int:
    """Run until a stop signal; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m orchestrator.simulated", description=__doc__)
    parser.add_argument(
        "--port", type=int, default=0, help="of Keystone; the services have the following ones"
    )
    parser.add_argument("--state", type=Path, help="SQLite file that keeps the objects; default: memory")
    parser.add_argument("--faults", type=Path, help="file with faults, read whenever it changes")
    parser.add_argument(
        "--delays", type=delays_from, default="typical", help="typical, none, or server_build=2,..."
    )
    parser.add_argument(
        "--orchestration-url", default="", help="address of an orchestrator, for the service catalog"
    )
    parser.add_argument("--password-file", type=Path, help="file with the password; default: a random one")
    options = parser.parse_args()
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
