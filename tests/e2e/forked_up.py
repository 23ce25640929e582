"""`orchestrator up` as a fork of the fork server of the tests, without imports.

Its own fork server is a fork, too, made before anything else happens in this process: the launcher requests
it at a socket, as it requests workers of a fork server. Everything else is as in the command.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from orchestrator.cli.main import main
from orchestrator.embedded import fork_server, processes
from orchestrator.embedded.process import Child
from orchestrator.process_control import die_with, show_command
from tests.constants import apply


class Prepared:
    """A child that becomes the fork server when it is requested, once."""

    def __init__(self) -> None:
        """Fork it. In the child this returns when it is requested."""
        self.folder = Path(tempfile.mkdtemp(prefix="up-"))
        self.socket = self.folder / "socket"
        self.request: fork_server.Request | None = None  # in the child only
        parent = os.getpid()
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.socket))
            listener.listen()
            if os.fork():
                return
            die_with(parent, signal.SIGKILL)
            connection, _ = listener.accept()
        self.remove()  # a later start finds no socket, and executes the program
        self.request = self._received(connection)

    def remove(self) -> None:
        """Remove the socket."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _received(self, connection: socket.socket) -> fork_server.Request:
        """Answer the request as the fork server does, and take over what an exec would have given."""
        with connection:
            text, (output,), _, _ = socket.recv_fds(connection, fork_server.MAX_REQUEST, 1)
            size = int.from_bytes(text[:4])
            while len(text) < size + 4:
                text += connection.recv(fork_server.MAX_REQUEST) or os._exit(1)
            request = fork_server.Request(**json.loads(text[4:]))
            for fd in (1, 2):
                os.dup2(output, fd)
            os.close(output)
            os.setsid()
            connection.sendall(str(os.getpid()).encode())
            if connection.recv(len(fork_server.GO)) != fork_server.GO:
                os._exit(1)
        os.chdir(request.cwd)
        os.environ.clear()
        os.environ.update(request.env)
        show_command(request.argv)
        return request


def use(prepared: Prepared) -> None:
    """Request the fork server of `prepared`."""
    made = processes.fork_server

    def requested(env: Mapping[str, str], run: Path, *, libraries: bool = False) -> Child:
        return replace(made(env, run, libraries=libraries), fork_server=prepared.socket)

    processes.fork_server = requested


if __name__ == "__main__":
    apply()
    prepared = Prepared()
    if prepared.request is not None:
        arguments = prepared.request.argv[3:]
        fork_server.main(arguments[0], applications=arguments[1:] != ["--libraries"])
    else:
        use(prepared)
        try:
            main(prog_name="orchestrator")
        finally:
            prepared.remove()
