"""`orchestrator up` as a fork of the fork server of the tests, without imports of its own.

Its own fork server is a fork, too, made before anything else happens in this process. Everything else is as
in the command.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from typing import Any, BinaryIO

from orchestrator.cli.main import main
from orchestrator.embedded import fork_server, process
from orchestrator.embedded.forks import Fork
from orchestrator.embedded.process import Child
from orchestrator.process_control import die_with, show_command

SERVER = "fork-server"  # the name of the child


class Prepared:
    """A child that becomes the fork server on request."""

    def __init__(self) -> None:
        """Fork it. In the child this returns when it is requested."""
        parent = os.getpid()
        self.orders, receiver = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        self.argv: list[str] = []
        if self.pid:
            receiver.close()
            return
        die_with(parent, signal.SIGKILL)
        self.orders.close()
        with receiver:
            text, outputs, _, _ = socket.recv_fds(receiver, fork_server.MAX_REQUEST, 1)
        if not text:  # there was no start
            os._exit(0)
        self._become(json.loads(text), outputs[0])

    def start(self, child: Child, output: BinaryIO) -> Fork:
        """Let it run as `child`, with its output in a file."""
        order = {"argv": child.argv, "env": dict(child.env), "cwd": str(child.cwd)}
        with self.orders:
            socket.send_fds(self.orders, [json.dumps(order).encode()], [output.fileno()])
        return Fork(self.pid)

    def _become(self, order: Any, output: int) -> None:
        for fd in (1, 2):
            os.dup2(output, fd)
        os.close(output)
        os.setsid()
        os.chdir(order["cwd"])
        os.environ.clear()
        os.environ.update(order["env"])
        self.argv = order["argv"]
        show_command(self.argv)


def use(prepared: Prepared) -> None:
    """Start the fork server from `prepared` the first time, and by execution later."""
    execute = process._started
    unused = [prepared]

    def started(child: Child, output: BinaryIO) -> Fork | subprocess.Popen[bytes]:
        return (
            unused.pop().start(child, output) if child.name == SERVER and unused else execute(child, output)
        )

    process._started = started  # type: ignore[assignment]


if __name__ == "__main__":
    prepared = Prepared()
    if prepared.pid:
        use(prepared)
        main(prog_name="orchestrator")
    else:
        fork_server.main(prepared.argv[3], applications=prepared.argv[4:] != ["--libraries"])
