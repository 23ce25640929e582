"""The fork server of this test process: workers and APIs of tests start without imports."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from orchestrator.embedded.forks import socket_path
from orchestrator.embedded.process import Child, Process
from orchestrator.embedded.processes import fork_server


@cache
def running_fork_server() -> Path:
    """Return the socket of the fork server, which the first call starts; it ends with this process."""
    folder = Path(tempfile.mkdtemp(prefix="fork-server-"))
    env = {name: value for name, value in os.environ.items() if not name.startswith("ORCHESTRATOR_")}
    process = Process(fork_server(env, folder, libraries=True), folder / "log")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(process.stop)
    process.wait_ready(180)
    return socket_path(folder)


def forked(module: str, *arguments: str, env: Mapping[str, str], log: Path) -> Process:
    """Run `python -m module` by way of the fork server, with its output in `log`."""
    argv = (sys.executable, "-m", module, *arguments)
    child = Child(name=module, argv=argv, env=env, stop_seconds=20.0, fork_server=running_fork_server())
    return Process(child, log)
