"""Keep processes running until a stop signal: start in stages, restart after failures, stop in reverse order.

Everything happens in the main thread, driven by signals: the end of a child wakes the loop at once.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType

from orchestrator.embedded.process import Child, Process
from orchestrator.errors import Misconfigured
from orchestrator.logs import logger

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
MIN_STABLE_SECONDS = (
    10.0  # seconds; a child with a shorter life has failed, and its restart is delayed more each time
)
FIRST_DELAY, LONGEST_DELAY = 0.5, 15.0  # seconds
READY_SECONDS = 180.0  # on a loaded machine


class Stopped(Exception):
    """A stop signal arrived during the start."""


class _Slot:
    """The current process of a child, or the time of its next start."""

    def __init__(self, process: Process) -> None:
        self.child, self.log = process.child, process.log
        self.process: Process | None = process
        self.failures = 0
        self.due_at = 0.0

    def ended(self) -> None:
        """Schedule the next start after an unexpected end."""
        assert self.process is not None
        lived = time.monotonic() - self.process.started_at
        self.failures = 0 if lived >= MIN_STABLE_SECONDS else self.failures
        self.retry_later()

    def retry_later(self) -> None:
        """Schedule the next start: immediately after the first failure, then with growing delays."""
        delay = min(FIRST_DELAY * 2 ** (self.failures - 1), LONGEST_DELAY) if self.failures else 0.0
        self.failures += 1
        self.process, self.due_at = None, time.monotonic() + delay


class Supervisor:
    """Children in stages. Use `supervising()`, which installs the signal handlers and stops all children."""

    def __init__(self, logs: Path, wakeup: int) -> None:
        """Log each child to `logs`; `wakeup` becomes readable with every signal."""
        self.logs = logs
        self.stop_signals = 0  # number of stop signals received
        self._wakeup = wakeup
        self._stages: list[list[_Slot]] = []
        self._log = logger()

    def start(self, children: Sequence[Child], on_ready: Callable[[Child], None] | None = None) -> None:
        """Start a stage, and return when all its children are ready; call `on_ready` for each of them.

        Raises:
            Misconfigured: a child ended, or was not ready after READY_SECONDS.
            Stopped: a stop signal arrived.
        """
        stage: list[_Slot] = []
        self._stages.append(stage)
        for child in children:
            self._raise_if_stopped()
            stage.append(_Slot(Process(child, self.logs / f"{child.name}.log")))
        deadline = time.monotonic() + READY_SECONDS
        waiting = list(stage)
        while waiting:
            for slot in list(waiting):
                assert slot.process is not None
                if slot.child.ready(slot.process.pid):
                    waiting.remove(slot)
                    if on_ready is not None:
                        on_ready(slot.child)
                    continue
                self._raise_if_stopped()
                slot.process.require_running(deadline)
            if waiting:
                self._wait(0.05)

    def watch(self) -> None:
        """Restart children that end; return after a stop signal."""
        while not self.stop_signals:
            now = time.monotonic()
            for slot in self._slots():
                if slot.process is not None and slot.process.returncode is not None:
                    self._report_death(slot)
                if slot.process is None and slot.due_at <= now and not self.stop_signals:
                    self._restart(slot)
            due = [slot.due_at for slot in self._slots() if slot.process is None]
            self._wait(max(0.0, min(due, default=now + 60.0) - time.monotonic()))

    def stop(self) -> None:
        """Stop the last stage first; after a further stop signal, kill the remaining children."""
        received = self.stop_signals
        for stage in reversed(self._stages):
            running = [slot.process for slot in stage if slot.process is not None]
            for process in running:
                process.signal(process.child.stop_signal)
            deadlines = {p: time.monotonic() + p.child.stop_seconds for p in running}
            while alive := [p for p in running if p.returncode is None]:
                late = [p for p in alive if self.stop_signals > received or deadlines[p] < time.monotonic()]
                for process in late:
                    if self.stop_signals <= received:
                        self._log.warning("child_did_not_stop", name=process.child.name)
                    process.kill()
                if not late:
                    self._wait(0.1)
            for process in running:
                process.kill_group()
        self._stages.clear()

    def handle_signal(self, number: int, _frame: FrameType | None) -> None:
        """Count a stop signal (any signal also wakes the loop)."""
        if number in STOP_SIGNALS:
            self.stop_signals += 1

    def _slots(self) -> Iterator[_Slot]:
        return (slot for stage in self._stages for slot in stage)

    def _raise_if_stopped(self) -> None:
        if self.stop_signals:
            raise Stopped

    def _report_death(self, slot: _Slot) -> None:
        assert slot.process is not None
        output = slot.process.last_output() if (slot.process.returncode or 0) > 0 else ""
        self._log.error("child_died", name=slot.child.name, status=slot.process.returncode, output=output)
        slot.process.kill_group()
        slot.ended()

    def _restart(self, slot: _Slot) -> None:
        try:
            slot.process = Process(slot.child, slot.log)
        except Misconfigured as error:
            slot.retry_later()
            self._log.error("child_restart_failed", name=slot.child.name, reason=str(error))
        else:
            self._log.info("child_restarted", name=slot.child.name, pid=slot.process.pid)

    def _wait(self, seconds: float) -> None:
        """Sleep until a signal arrives, at most `seconds`."""
        readable, _, _ = select.select([self._wakeup], [], [], seconds)
        if readable:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wakeup, 4096)


@contextlib.contextmanager
def supervising(logs: Path) -> Iterator[Supervisor]:
    """Handle SIGINT, SIGTERM, SIGHUP and SIGCHLD for a block; at its end, stop every child."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.set_blocking(write_end, False)
    supervisor = Supervisor(logs, read_end)
    handled = (*STOP_SIGNALS, signal.SIGCHLD)
    previous = {number: signal.signal(number, supervisor.handle_signal) for number in handled}
    previous_fd = signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    try:
        yield supervisor
    finally:
        try:
            supervisor.stop()
        finally:
            signal.set_wakeup_fd(previous_fd)
            for number, handler in previous.items():
                signal.signal(number, handler)
            os.close(read_end)
            os.close(write_end)
