"""The fork server of this test process: workers and APIs of tests start without imports."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from orchestrator.embedded.forks import socket_path
from orchestrator.embedded.process import Process
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
