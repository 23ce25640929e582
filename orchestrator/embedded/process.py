"""One process of ours: started in its own group with its own log, told to stop, and killed if deaf.

A process started here dies with the thread that started it, even when that was killed with SIGKILL (on Linux;
elsewhere the next start finds it). So start processes from the main thread, or from one that outlives them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.errors import Misconfigured

PR_SET_PDEATHSIG = 1
AUTOGROUP = Path("/proc/self/autogroup")
LOG_LIMIT = 10 * 1024 * 1024  # bytes; a longer log is set aside when its process starts again
_prctl: Callable[..., int] | None = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


@dataclass(frozen=True, slots=True)
class Account:
    """The user that a server runs as."""

    name: str
    uid: int
    gid: int


def server_account() -> Account | None:
    """Return whom the servers run as: nobody when we are root (PostgreSQL refuses root), else None, us."""
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError as error:
        raise Misconfigured(
            "the database cannot run as root and there is no user nobody; run as an ordinary user"
        ) from error
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def identity(account: Account | None) -> dict[str, Any]:
    """Return subprocess's arguments for running as `account`."""
    return {"user": account.uid, "group": account.gid, "extra_groups": []} if account else {}


def _nothing() -> None:
    return None


def _always(_pid: int) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Child:
    """What to run and how to treat it; starting it makes a `Process`."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)  # the whole environment
    cwd: Path | None = None
    account: Account | None = None
    prepare: Callable[[], None] = _nothing  # before every start; raises Misconfigured when it cannot be run
    ready: Callable[[int], bool] = _always  # given the pid: does it do its work? Answers soon, asked often
    stop_signal: signal.Signals = signal.SIGTERM
    kill_signal: signal.Signals = signal.SIGKILL  # when there is no time left
    death_signal: signal.Signals = signal.SIGKILL  # what it gets when we die
    stop_seconds: float = 10.0
    niceness: int = 0  # how far it stands back, 0 to 19, while others want the processor


class Process:
    """One run of a child."""

    def __init__(self, child: Child, log: Path) -> None:
        """Start `child`, its output going to the end of `log`.

        Raises:
            Misconfigured: it cannot be prepared or executed.
        """
        child.prepare()
        self.child = child
        self.log = log
        if log.exists() and log.stat().st_size > LOG_LIMIT:
            log.replace(log.with_name(log.name + ".1"))
        self.started_at = time.monotonic()
        parent = os.getpid()
        with log.open("ab") as output:
            self.log_start = output.seek(0, os.SEEK_END)
            try:
                self._popen = subprocess.Popen(
                    child.argv,
                    cwd=child.cwd,
                    env=dict(child.env),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # a Ctrl-C on our terminal is ours to pass on, in order
                    preexec_fn=lambda: _prepare(child, parent),  # noqa: PLW1509 - no other way
                    **identity(child.account),
                )
            except OSError as error:
                raise Misconfigured(
                    f"cannot start {child.name} ({child.argv[0]}): {error.strerror}"
                ) from error
        self.pid = self._popen.pid

    @property
    def returncode(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        status: int | None = self._popen.poll()
        return status

    def wait_ready(self, seconds: float = 60.0) -> None:
        """Return when the child does its work.

        Raises:
            Misconfigured: it ended instead, or did not get there in time; with the end of its log.
        """
        deadline = time.monotonic() + seconds
        while not self.child.ready(self.pid):
            self.require_running(deadline)
            time.sleep(0.02)

    def require_running(self, deadline: float) -> None:
        """Return while it runs and the monotonic clock is before `deadline`.

        Raises:
            Misconfigured: it ended, or is late; with the end of its log.
        """
        if self.returncode is not None:
            raise Misconfigured(f"{self.child.name} ended with status {self.returncode}{self.last_words()}")
        if time.monotonic() > deadline:
            raise Misconfigured(f"{self.child.name} was not ready in time{self.last_words()}")

    def last_words(self, lines: int = 8) -> str:
        """Return the last lines this run logged, indented under its file's name, or nothing."""
        with self.log.open("rb") as log:
            log.seek(max(self.log_start, log.seek(0, os.SEEK_END) - 4096))
            said = log.read().decode(errors="replace").strip().splitlines()[-lines:]
        return "".join(f"\n  {line}" for line in (f"from {self.log}:", *said)) if said else ""

    def signal(self, number: signal.Signals) -> None:
        """Send a signal unless it has ended."""
        if self.returncode is None:
            self._popen.send_signal(number)

    def wait(self, seconds: float) -> bool:
        """Wait for its end; say whether it came."""
        try:
            self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """End it now, with whatever it has started in its group."""
        self.signal(self.child.kill_signal)
        if not self.wait(5.0):
            self.signal(signal.SIGKILL)
            self._popen.wait()
        self.kill_group()

    def kill_group(self) -> None:
        """Send SIGKILL to it and to whatever it has started, if any of them is still there."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def stop(self) -> None:
        """Ask it to stop, wait for `stop_seconds`, then kill it."""
        self.signal(self.child.stop_signal)
        if not self.wait(self.child.stop_seconds):
            self.kill()


@contextlib.contextmanager
def running(child: Child, log: Path, *, ready_seconds: float = 60.0) -> Iterator[Process]:
    """Keep `child` running for the duration of a block, from the moment it is ready."""
    process = Process(child, log)
    try:
        process.wait_ready(ready_seconds)
        yield process
    finally:
        process.stop()


def _prepare(child: Child, parent: int) -> None:
    """In the new process, before the program: stand back, and die when the parent does."""
    if child.niceness:
        os.nice(child.niceness)
        # Where the kernel shares among sessions first, it is the session that has to stand back.
        with contextlib.suppress(OSError):
            AUTOGROUP.write_text(str(child.niceness))
    _die_with(parent, child.death_signal)


def _die_with(parent: int, number: signal.Signals) -> None:
    """Be sent `number` when the parent dies, or go if it has died."""
    if _prctl is not None:
        _prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
