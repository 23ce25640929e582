"""A process that has imported the modules of workers and API once, and forks itself for each of them.

`orchestrator up` starts it with `python -m orchestrator.embedded.fork_server SOCKET`, and `embedded/forks.py`
requests the forks. Their memory is shared until it is written, and a start needs no imports. The fork server
has no threads, no connections and no state, so that its forks begin like new processes.

A fork becomes a child of the process that requested it: its parent, which the fork server started only for
this purpose, ends at once, and the requesting process adopts it. Everything else is as with an exec: command
line, environment, working directory, session, niceness, and the end with the parent.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from orchestrator import gc_policy
from orchestrator.process_control import die_with, show_command, yield_processor
from orchestrator.start_up import prepare_imports

LIBRARIES: Final = (
    "celery.apps.worker",
    "celery.bin.celery",
    "celery.concurrency.solo",
    "celery.concurrency.thread",
    "gunicorn.app.wsgiapp",
    "kombu.transport.redis",
    "orchestrator.operations.bootstrap",
    "orchestrator.operations.offload",
    "orchestrator.operations.reconcile.batch",
    "orchestrator.operations.signals.process",
    "api.routes",
    "api.serving.gunicorn_logging",
    "api.serving.gunicorn_worker",
    "tasks.celery_settings",
    "tasks.periodic",
    "tasks.publisher",
)
APPLICATIONS: Final = (
    "api.app",
    "tasks.app",
    "tasks.check",
    "tasks.observe",
    "tasks.signal",
)  # read settings
GO: Final = b"go"  # the requesting process expects the fork
MAX_REQUEST: Final = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Request:
    """A module to run as a program."""

    argv: Sequence[str]  # interpreter, "-m", module, arguments
    env: Mapping[str, str]
    cwd: str
    niceness: int
    death_signal: int


def main(path: str, *, applications: bool) -> None:
    """Import everything, then listen at `path` until this process is killed."""
    prepare_imports()
    for name in (*LIBRARIES, *(APPLICATIONS if applications else ())):
        importlib.import_module(name)
    gc_policy.freeze_loaded_objects()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        connection = _serve(listener)
    request = _received(connection)
    _become(request)
    _run(request)


def _serve(listener: socket.socket) -> socket.socket:
    """Fork for each connection; return in the forks only."""
    owner = os.getppid()
    while True:
        connection, _ = listener.accept()
        with connection:
            if _peer(connection) != owner or threading.active_count() > 1:
                continue
            pid = os.fork()
            if not pid:
                intermediate = os.getpid()
                if os.fork():
                    os._exit(0)
                while os.getppid() == intermediate:
                    time.sleep(0.0005)
                return connection.dup()
            os.waitpid(pid, 0)


def _peer(connection: socket.socket) -> int:
    """Return the process id of the other end."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid: int = struct.unpack("3i", credentials)[0]
    return pid


def _received(connection: socket.socket) -> Request:
    """Read the request, redirect the output, and wait until the other end expects this process."""
    with connection:
        text, (output,), _, _ = socket.recv_fds(connection, MAX_REQUEST, 1)
        size = int.from_bytes(text[:4])
        while len(text) < size + 4:
            text += connection.recv(MAX_REQUEST) or _end()
        request = Request(**json.loads(text[4:]))
        for fd in (1, 2):
            os.dup2(output, fd)
        os.close(output)
        os.setsid()  # the other end may kill the group as soon as it knows the process id
        die_with(_peer(connection), signal.Signals(request.death_signal))
        connection.sendall(str(os.getpid()).encode())
        if connection.recv(len(GO)) != GO:
            _end()
    return request


def _end() -> NoReturn:
    """End this fork, which is not expected any more."""
    os._exit(1)


def _become(request: Request) -> None:
    """Take over everything else that an exec would have given to the program."""
    if request.niceness:
        yield_processor(request.niceness)
    os.chdir(request.cwd)
    own = _python_path()
    os.environ.clear()
    os.environ.update(request.env)
    inherited = [entry for entry in sys.path[not sys.flags.safe_path :] if entry not in own]
    sys.path[:] = [*([] if sys.flags.safe_path else [request.cwd]), *_python_path(), *inherited]
    importlib.invalidate_caches()
    show_command(request.argv)


def _python_path() -> list[str]:
    return [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]


def _run(request: Request) -> None:
    """Run the module as `python -m` does."""
    sys.argv[:] = request.argv[2:]
    runpy.run_module(request.argv[2], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1], applications=sys.argv[2:] != ["--libraries"])
