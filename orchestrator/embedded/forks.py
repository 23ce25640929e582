"""Processes that the fork server (`embedded/fork_server.py`) starts for this process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Final

from orchestrator.embedded.fork_server import GO, Request
from orchestrator.embedded.socket_paths import short_path
from orchestrator.process_control import adopting

SOCKET: Final = "fork.sock"
ANSWER_SECONDS: Final = 10.0  # on a loaded machine; afterwards the process is started without the fork server


class Fork:
    """A child of this process, with the methods of `subprocess.Popen` that `embedded/process.py` uses."""

    def __init__(self, pid: int) -> None:
        """Watch the child `pid`."""
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit status, negative for a signal; None while the process runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the process.

        Raises:
            subprocess.TimeoutExpired: it still runs after `timeout` seconds.
        """
        end = None if timeout is None else time.monotonic() + timeout
        delay = 0.0005
        while (status := self.poll()) is None:
            if end is not None and time.monotonic() > end:
                raise subprocess.TimeoutExpired("fork", timeout or 0.0)
            delay = min(2 * delay, 0.05)
            time.sleep(delay)
        return status

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal if the process is running."""
        if self.poll() is None:
            os.kill(self.pid, number)


def fork(server: Path, request: Request, output: int) -> Fork | None:
    """Start a process by way of the fork server at the socket `server`; its output goes to `output`.

    Return None if the fork server does not run or does not answer.
    """
    if sys.platform != "linux":
        return None
    text = json.dumps(asdict(request)).encode()
    with contextlib.suppress(OSError, ValueError), socket.socket(socket.AF_UNIX) as connection, adopting():
        connection.settimeout(ANSWER_SECONDS)
        connection.connect(str(server))
        socket.send_fds(connection, [len(text).to_bytes(4)], [output])
        connection.sendall(text)
        pid = int(connection.recv(32))
        connection.sendall(GO)
        return Fork(pid)
    return None


def socket_path(folder: Path) -> Path:
    """Return the path of the socket of a fork server in `folder`."""
    return short_path(folder, SOCKET) / SOCKET
