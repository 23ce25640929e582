"""The API behind gunicorn, as it is deployed, in its own process; and raw bytes to it."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from api.serving.buffered_socket import BufferedSocket
from api.serving.gunicorn_worker import Worker
from orchestrator.embedded.process import Child, running
from tests import constants
from tests.e2e.running import environment, free_port
from tests.fork_server import running_fork_server

HEALTH = b"GET /healthcheck HTTP/1.1\r\nHost: localhost\r\n\r\n"
TREE = Path(__file__).resolve().parents[2]
PATH = ":".join(map(str, (TREE, TREE / "tests" / "integration", constants.SITE)))

constants.apply()  # in the process that serves


class HastyClient(BufferedSocket):
    """Short times, for the tests."""

    IDLE = 3.0
    GRACE = 2.0
    SLOWEST = 64 * 1024


class Hasty(Worker):
    """Short times, for the tests."""

    HEAD_SECONDS = 2.5
    LINGER_SECONDS = 0.5
    DRAIN_SECONDS = 0.0  # as on a machine so busy that any time is over before it is looked at
    connection = HastyClient


@contextmanager
def served(
    settings: Mapping[str, str], log: Path, threads: int = 4, further: Sequence[str] = ()
) -> Iterator[int]:
    """Serve the API with these settings, by few and hasty threads; yield the port."""
    port = free_port()
    options = (
        "-k",
        "served_api.Hasty",
        "--threads",
        str(threads),
        "-w",
        "1",
        "--no-control-socket",
        *further,
    )
    chosen = {"auth": "none", **settings}
    replaced = constants.environment(constants.take(chosen))
    named = {f"ORCHESTRATOR_{name.upper()}": value for name, value in chosen.items()}
    child = Child(
        name="api",
        argv=(sys.executable, "-m", "gunicorn", *options, "-b", f"127.0.0.1:{port}", "api.app:create_app()"),
        env=environment({**replaced, **named, "PYTHONPATH": PATH}),
        cwd=TREE,
        ready=lambda _pid: bool(answer(port, HEALTH, seconds=90)),  # it listens before it serves
        stop_seconds=20.0,
        fork_server=running_fork_server(),
    )
    with running(child, log, ready_seconds=180):
        yield port


def answer(port: int, *pieces: bytes, seconds: float = 20.0, between: float = 0.0) -> bytes:
    """Send the pieces on a new connection; return its bytes until it closes or an answer is complete.

    Returns nothing if the connection is refused.
    """
    try:
        connection = socket.create_connection(("127.0.0.1", port), timeout=seconds)
    except ConnectionRefusedError:
        return b""
    with connection:
        for piece in pieces:
            try:
                connection.sendall(piece)
            except (BrokenPipeError, ConnectionResetError):
                break  # it has heard enough
            if between:
                time.sleep(between)
        return received(connection)


def received(connection: socket.socket) -> bytes:
    """Return an answer, or a part of it if the connection closes."""
    data = b""
    try:
        while chunk := connection.recv(65536):
            data += chunk
            head, end, body = data.partition(b"\r\n\r\n")
            length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            if end and length and len(body) >= int(length[0].partition(b":")[2]):
                break
    except ConnectionResetError:
        pass
    return data


def status(answered: bytes) -> int:
    """Return the status of an answer; 0 for a connection closed without an answer."""
    return int(answered.split(b" ", 2)[1]) if answered else 0
