"""A child process: started in its own group with its own log, stopped with a signal, and killed after a
timeout.

On Linux a child receives a signal when the thread that started it ends, even after SIGKILL; on other systems
the next start finds it. Therefore start children in the main thread, or in a thread that outlives them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from orchestrator.embedded.accounts import Account, identity
from orchestrator.embedded.fork_server import Request
from orchestrator.embedded.forks import Fork, fork
from orchestrator.embedded.private_files import open_regular
from orchestrator.errors import Misconfigured
from orchestrator.process_control import die_with, yield_processor

LOG_LIMIT = 10 * 1024 * 1024  # bytes; a longer log is renamed at the next start of its process


def _nothing() -> None:
    return None


def _always(_pid: int) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Child:
    """A program with its environment and its signals; `Process` starts it."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)  # the whole environment
    cwd: Path | None = None
    account: Account | None = None
    prepare: Callable[[], None] = (
        _nothing  # before every start; raises Misconfigured if a start is impossible
    )
    ready: Callable[[int], bool] = _always  # with the process id: whether it is ready; called often
    stop_signal: signal.Signals = signal.SIGTERM
    kill_signal: signal.Signals = signal.SIGKILL  # after stop_seconds
    death_signal: signal.Signals = signal.SIGKILL  # sent by the kernel when the parent dies
    stop_seconds: float = 10.0
    niceness: int = 0  # 0 to 19; a higher number yields the processor to other processes
    # Socket of a fork server (embedded/forks.py), which starts `python -m …` as a fork, if it runs.
    fork_server: Path | None = None


class Process:
    """A run of a child."""

    def __init__(self, child: Child, log: Path) -> None:
        """Start `child`, its output going to the end of `log`.

        Raises:
            Misconfigured: the preparation or the start fails, or the log is a symbolic link.
        """
        child.prepare()
        self.child = child
        self.log = log
        if log.exists() and log.stat().st_size > LOG_LIMIT:
            log.replace(log.with_name(log.name + ".1"))
        self.started_at = time.monotonic()
        with _appended(log) as output:
            self.log_start = output.seek(0, os.SEEK_END)
            self._popen = _forked(child, output) or _started(child, output)
        self.pid = self._popen.pid

    @property
    def returncode(self) -> int | None:
        """The exit status, negative for a signal; None while the process runs."""
        status: int | None = self._popen.poll()
        return status

    def wait_ready(self, seconds: float = 60.0) -> None:
        """Return when the child is ready.

        Raises:
            Misconfigured: it ended, or was not ready in time; with the end of its log.
        """
        deadline = time.monotonic() + seconds
        while not self.child.ready(self.pid):
            self.require_running(deadline)
            time.sleep(0.02)

    def require_running(self, deadline: float) -> None:
        """Return if it is running, and `deadline` (monotonic clock) has not passed.

        Raises:
            Misconfigured: it ended, or the deadline has passed; with the end of its log.
        """
        if self.returncode is not None:
            raise Misconfigured(f"{self.child.name} ended with status {self.returncode}{self.last_output()}")
        if time.monotonic() > deadline:
            raise Misconfigured(f"{self.child.name} was not ready in time{self.last_output()}")

    def last_output(self, lines: int = 8) -> str:
        """Return the last log lines of this run, indented below the name of the log; "" if there are none."""
        with self.log.open("rb") as log:
            log.seek(max(self.log_start, log.seek(0, os.SEEK_END) - 4096))
            tail = log.read().decode(errors="replace").strip().splitlines()[-lines:]
        return "".join(f"\n  {line}" for line in (f"from {self.log}:", *tail)) if tail else ""

    def signal(self, number: signal.Signals) -> None:
        """Send a signal if the process is running."""
        if self.returncode is None:
            self._popen.send_signal(number)

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the process; return whether it has ended."""
        try:
            self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """Kill the process and its process group."""
        self.signal(self.child.kill_signal)
        if not self.wait(5.0):
            self.signal(signal.SIGKILL)
            self._popen.wait()
        self.kill_group()

    def kill_group(self) -> None:
        """Send SIGKILL to the remaining processes of its group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def stop(self) -> None:
        """Send the stop signal, and kill the process after `stop_seconds`."""
        self.signal(self.child.stop_signal)
        if not self.wait(self.child.stop_seconds):
            self.kill()


def _forked(child: Child, output: BinaryIO) -> Fork | None:
    """Start `child` by way of its fork server, if it has one that answers."""
    if child.fork_server is None:
        return None
    cwd = str(child.cwd or Path.cwd())
    request = Request(child.argv, dict(child.env), cwd, child.niceness, int(child.death_signal))
    return fork(child.fork_server, request, output.fileno())


def _started(child: Child, output: BinaryIO) -> subprocess.Popen[bytes]:
    """Start the program of `child`.

    Raises:
        Misconfigured: the start fails.
    """
    parent = os.getpid()
    try:
        return subprocess.Popen(
            child.argv,
            cwd=child.cwd,
            env=dict(child.env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # only the parent receives Ctrl-C
            preexec_fn=lambda: _prepare(child, parent),  # noqa: PLW1509 - no other way
            **identity(child.account),
        )
    except OSError as error:
        raise Misconfigured(f"cannot start {child.name} ({child.argv[0]}): {error.strerror}") from error


def _appended(log: Path) -> BinaryIO:
    """Open a log for writing at its end.

    Raises:
        Misconfigured: it is a symbolic link, or cannot be opened.
    """
    try:
        return os.fdopen(open_regular(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab")
    except OSError as error:
        raise Misconfigured(f"cannot write the log {log}: {error.strerror or error}") from error


@contextlib.contextmanager
def running(child: Child, log: Path, *, ready_seconds: float = 60.0) -> Iterator[Process]:
    """Run `child` for the duration of a block, which begins when the child is ready."""
    process = Process(child, log)
    try:
        process.wait_ready(ready_seconds)
        yield process
    finally:
        process.stop()


def _prepare(child: Child, parent: int) -> None:
    """In the new process, before the program: set the niceness and the signal for the death of the parent."""
    if child.niceness:
        yield_processor(child.niceness)
    die_with(parent, child.death_signal)
