"""The monitor of a process: ends it when its interpreter hangs. Its own program, started by `watch.py`
as `python -I -S monitor.py PID SECONDS PROCESS SHARED TRACES COMMAND…`.

The watched process shares a file with it: a count that its heartbeat thread increments each second, and the
work of its threads. Its standard input is a pipe whose end means that the watched process has ended.

A second without a heartbeat counts only as far as the process could have run. A stopped process (SIGSTOP), a
suspended machine, a process that waits for a disk or for the processor of a loaded machine is not hung.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

TICK_SECONDS = 1.0
TRACE_SECONDS = 0.5  # for the watched process to write its stack traces
RECORD_SECONDS = 4.0  # for the record of the work, before the process is killed
LARGEST_TRACE = 64 * 1024  # bytes
MAX_FRAMES = 2  # of the position of a thread
MIN_SHARE = 0.8  # of the processor time of a process: a thread that used so much holds the interpreter
MIN_BUSY = 0.2  # of a second of processor time: the second counts completely

HEARTBEATS = struct.Struct("<Q")
SLOT = struct.Struct("<QQB47s")  # a `Slot`
SLOTS = 1_024
SIZE = HEARTBEATS.size + SLOTS * SLOT.size
TRACE_SIGNAL = getattr(signal, "SIGRTMIN", 0) + 7 if hasattr(signal, "SIGRTMIN") else None


class Sample(NamedTuple):
    """The state of a process, as the system shows it."""

    states: frozenset[str]  # of its threads, as in `ps`; empty if the system does not say it
    processor_seconds: float = 0.0


class Slot(NamedTuple):
    """The work of a thread."""

    thread: int  # its id in the system
    name: int  # its id in stack traces
    alone: bool  # no other work in the process at the same time
    work: str  # "KIND ID"


def counted(sample: Sample, used: float) -> float:
    """Return how much of a second without a heartbeat counts: 0 to 1. `used` is the processor time since the
    last sample.

    If a thread can run, the second counts as far as the process got the processor. If all threads
    sleep, the holder of the interpreter lock sleeps.
    """
    if not sample.states:
        return 1.0
    if sample.states & {"T", "t"}:
        return 0.0
    if "R" in sample.states:
        return min(1.0, used / MIN_BUSY)
    return 0.0 if "D" in sample.states else 1.0


def suspects(slots: Sequence[Slot], used: Mapping[int, float], total: float) -> tuple[list[Slot], bool]:
    """Return the work that may have caused the hang, and whether it certainly has.

    A thread that used nearly all processor time since the last heartbeat is the cause. Otherwise a thread
    sleeps with the interpreter lock: of the only work, or of the work that is done alone.

    Args:
        slots: the work of all threads.
        used: the processor time of each thread since the last heartbeat, in seconds.
        total: the processor time of the process since the last heartbeat.
    """
    busiest = max(used, key=lambda thread: used[thread], default=0)
    if total > MIN_BUSY and used.get(busiest, 0.0) >= MIN_SHARE * total:
        return [slot for slot in slots if slot.thread == busiest], True
    alone = [slot for slot in slots if slot.alone]
    if len(alone) == 1:
        return alone, True
    return list(slots), len(slots) == 1


def position(trace: str, thread: int) -> str:
    """Return the innermost calls of a thread in stack traces, "" if they do not show it."""
    _, found, after = trace.partition(f"0x{thread:016x} (most recent call first):\n")
    frames = []
    for line in after.splitlines()[:MAX_FRAMES] if found else ():
        file, _, rest = line.strip().removeprefix('File "').partition('", line ')
        number, _, function = rest.partition(" in ")
        if not number.isdigit():
            break
        frames.append(f"{function} ({'/'.join(file.split('/')[-2:])}, line {number})")
    return ", called by ".join(frames)


def read_slots(shared: int) -> list[Slot]:
    """Return the work of the threads of the watched process."""
    data = os.pread(shared, SLOTS * SLOT.size, HEARTBEATS.size)
    return [
        Slot(thread, name, bool(alone), text.rstrip(b"\0").decode())
        for thread, name, alone, text in SLOT.iter_unpack(data[: len(data) // SLOT.size * SLOT.size])
        if thread
    ]


def sample(pid: int) -> Sample:
    """Return the states of a process; nothing on systems without /proc."""
    try:
        threads = [_stat(f"/proc/{pid}/task/{thread}/stat") for thread in _threads(pid)]
        return Sample(frozenset(state for state, _ in threads), _stat(f"/proc/{pid}/stat")[1])
    except OSError:
        return Sample(frozenset())


def processor_seconds(pid: int) -> dict[int, float]:
    """Return the processor time of each thread; nothing on systems without /proc."""
    times = {}
    with contextlib.suppress(OSError):
        for thread in _threads(pid):
            with contextlib.suppress(OSError):  # it ends just now
                times[thread] = _stat(f"/proc/{pid}/task/{thread}/stat")[1]
    return times


def _threads(pid: int) -> list[int]:
    return [int(name) for name in os.listdir(f"/proc/{pid}/task")]  # noqa: PTH208 - as below


def _stat(path: str) -> tuple[str, float]:
    """Return state and processor time, from a file that the system makes."""
    with open(path) as file:  # noqa: PTH123 - this program imports as little as possible
        fields = file.read().rpartition(")")[2].split()
    return fields[0], (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Monitor:
    """The monitor of a process."""

    def __init__(self, arguments: Sequence[str]) -> None:
        """Take the arguments of the program."""
        self.pid, self.limit, self.process = int(arguments[0]), float(arguments[1]), arguments[2]
        self.shared, self.traces, self.command = int(arguments[3]), int(arguments[4]), list(arguments[5:])
        self.heartbeats = -1
        self.silent_seconds = 0.0
        self.before = Sample(frozenset())
        self.threads: dict[int, float] | None = None  # processor times after the last heartbeat

    def run(self) -> None:
        """Watch until the process has ended, or hangs; then end it."""
        while not select.select([0], [], [], TICK_SECONDS)[0]:
            if self._is_hung() and self._end():
                return

    def _beats(self) -> int:
        (beats,) = HEARTBEATS.unpack(os.pread(self.shared, HEARTBEATS.size, 0))
        return int(beats)

    def _is_hung(self) -> bool:
        now = sample(self.pid)
        beats = self._beats()
        if beats != self.heartbeats:
            self.heartbeats, self.silent_seconds, self.threads = beats, 0.0, None
        elif self.threads is None:
            self.threads = processor_seconds(self.pid)
        else:
            self.silent_seconds += counted(now, now.processor_seconds - self.before.processor_seconds)
        self.before = now
        return self.silent_seconds >= self.limit

    def _end(self) -> bool:
        """Log and record the work of the process, and kill it, unless it has continued by then.

        Return whether it is killed.
        """
        with contextlib.suppress(Exception):  # a report that fails does not protect the process
            self._tell()
        if self._beats() != self.heartbeats:
            os.truncate(self.traces, 0)
            os.lseek(self.traces, 0, os.SEEK_SET)  # of the watched process, too
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        return True

    def _tell(self) -> None:
        import json  # noqa: PLC0415 - needed once, if ever

        report = self._report()
        line = {"event": "process_hung", "level": "error", "timestamp": _now(), **report}
        print(json.dumps(line), file=sys.stderr, flush=True)
        if self.command:
            self._record(json.dumps(report).encode())

    def _record(self, report: bytes) -> None:
        """Have the report recorded; a record that takes long does not delay the end of the process."""
        import subprocess  # noqa: PLC0415 - as above

        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            recorder = subprocess.Popen(self.command, stdin=subprocess.PIPE, start_new_session=True)
            assert recorder.stdin is not None
            with recorder.stdin as pipe:
                pipe.write(report)
            recorder.wait(RECORD_SECONDS)

    def _report(self) -> dict[str, Any]:
        slots = read_slots(self.shared)
        before = self.threads or {}
        used = {
            thread: seconds - before.get(thread, 0.0)
            for thread, seconds in processor_seconds(self.pid).items()
        }
        work, certain = suspects(slots, used, sum(used.values()))
        trace = self._trace()
        return {
            "process": self.process,
            "pid": self.pid,
            "seconds": round(self.silent_seconds, 1),
            "work": [slot.work for slot in work],
            "certain": certain,
            "position": position(trace, work[0].name) if certain and work else "",
            "trace": trace,
        }

    def _trace(self) -> str:
        """Return the stack traces of the threads of the process."""
        if TRACE_SIGNAL is None:
            return ""
        with contextlib.suppress(OSError):
            os.kill(self.pid, TRACE_SIGNAL)
            time.sleep(TRACE_SECONDS)
            return os.pread(self.traces, LARGEST_TRACE, 0).decode(errors="replace")
        return ""


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends with the watched process
    Monitor(sys.argv[1:]).run()
