"""Keep processes running until somebody says stop: start in stages, replace what dies, stop in reverse.

Everything happens in the main thread, driven by signals: a child's end wakes the loop at once.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

from orchestrator.embedded.process import Child, Process
from orchestrator.errors import Misconfigured
from orchestrator.logs import logger

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LONG_LIFE = 10.0  # seconds; a child that lived less has failed, and is started again later each time
FIRST_DELAY, LONGEST_DELAY = 0.5, 15.0  # seconds
READY_SECONDS = 90.0


class Stopped(Exception):
    """Somebody asked to stop while we were starting."""


class _Slot:
    """A child's place: its present process, or when the next one is due."""

    def __init__(self, process: Process) -> None:
        self.child, self.log = process.child, process.log
        self.process: Process | None = process
        self.failures = 0
        self.due_at = 0.0

    def ended(self) -> None:
        """Plan the next start after an end nobody asked for."""
        assert self.process is not None
        lived = time.monotonic() - self.process.started_at
        self.failures = 0 if lived >= LONG_LIFE else self.failures
        self.retry_later()

    def retry_later(self) -> None:
        """Plan the next start: at once the first time, then ever later."""
        delay = min(FIRST_DELAY * 2 ** (self.failures - 1), LONGEST_DELAY) if self.failures else 0.0
        self.failures += 1
        self.process, self.due_at = None, time.monotonic() + delay


class Supervisor:
    """Children in stages. Use `supervising()`, which takes the signals and stops everything at the end."""

    def __init__(self, logs: Path, wakeup: int) -> None:
        """Log each child to `logs`; `wakeup` becomes readable with every signal."""
        self.logs = logs
        self.asked = 0  # how often somebody said stop
        self._wakeup = wakeup
        self._stages: list[list[_Slot]] = []
        self._log = logger()

    def start(self, children: Sequence[Child]) -> None:
        """Start a stage and return when all of it is ready.

        Raises:
            Misconfigured: one ended instead, or took longer than READY_SECONDS.
            Stopped: somebody said stop meanwhile.
        """
        stage: list[_Slot] = []
        self._stages.append(stage)
        for child in children:
            self._go_on()
            stage.append(_Slot(Process(child, self.logs / f"{child.name}.log")))
        deadline = time.monotonic() + READY_SECONDS
        for slot in stage:
            assert slot.process is not None
            while not slot.process.child.ready(slot.process.pid):
                self._go_on()
                slot.process.require_running(deadline)
                self._wait(0.05)

    def watch(self) -> None:
        """Replace whatever dies; return when somebody says stop."""
        while not self.asked:
            now = time.monotonic()
            for slot in self._slots():
                if slot.process is not None and slot.process.returncode is not None:
                    self._mourn(slot)
                if slot.process is None and slot.due_at <= now and not self.asked:
                    self._restart(slot)
            due = [slot.due_at for slot in self._slots() if slot.process is None]
            self._wait(max(0.0, min(due, default=now + 60.0) - time.monotonic()))

    def stop(self) -> None:
        """Stop the last stage first, each politely; once somebody says stop a second time, at once."""
        patience = self.asked
        for stage in reversed(self._stages):
            running = [slot.process for slot in stage if slot.process is not None]
            for process in running:
                process.signal(process.child.stop_signal)
            deadlines = {p: time.monotonic() + p.child.stop_seconds for p in running}
            while alive := [p for p in running if p.returncode is None]:
                late = [p for p in alive if self.asked > patience or deadlines[p] < time.monotonic()]
                for process in late:
                    if self.asked <= patience:
                        self._log.warning("child_did_not_stop", name=process.child.name)
                    process.kill()
                if not late:
                    self._wait(0.1)
            for process in running:
                process.kill_group()
        self._stages.clear()

    def take(self, number: int, _frame: FrameType | None) -> None:
        """Note a signal (its arrival also wakes the loop)."""
        if number in STOP_SIGNALS:
            self.asked += 1

    def _slots(self) -> Iterator[_Slot]:
        return (slot for stage in self._stages for slot in stage)

    def _go_on(self) -> None:
        if self.asked:
            raise Stopped

    def _mourn(self, slot: _Slot) -> None:
        assert slot.process is not None
        said = slot.process.last_words() if (slot.process.returncode or 0) > 0 else ""
        self._log.error("child_died", name=slot.child.name, status=slot.process.returncode, said=said)
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
    """Take SIGINT, SIGTERM, SIGHUP and SIGCHLD for a block; in the end stop every child."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.set_blocking(write_end, False)
    supervisor = Supervisor(logs, read_end)
    taken = (*STOP_SIGNALS, signal.SIGCHLD)
    previous = {number: signal.signal(number, supervisor.take) for number in taken}
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
