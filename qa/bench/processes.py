"""Cost of processes, from /proc: families of processes, processor seconds, and peak memory of each process.

Without /proc the figures are empty.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

PROC = Path("/proc")
INTERVAL = 0.25  # seconds between samples; the activity of a process after its last sample is lost
MB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ProcessSample:
    """A process at a moment."""

    parent: int
    command: str
    cpu_seconds: float


@dataclass(slots=True)
class Usage:
    """Cost of a period, by role."""

    cpu_seconds: dict[str, float] = field(default_factory=dict)  # of all its processes together
    peak_mb: dict[str, float] = field(default_factory=dict)  # of its largest process
    foreign_share: float | None = None  # the share of the machine that went to strangers, 0 to 1


def role(command: str, parent_command: str) -> str:
    """Return the role of a process below `orchestrator up`."""
    if "orchestrator.operations.planner_process" in command:
        return "planner"
    if "multiprocessing.forkserver" in command:  # its children have its command line
        return "planner" if "multiprocessing.forkserver" in parent_command else "api"
    if "gunicorn" in command or "multiprocessing" in command:
        return "api"
    if "celery" in command:
        return "worker"
    return "up"


def family(roots: Mapping[int, str], observed: Mapping[int, ProcessSample]) -> dict[int, str]:
    """Return the role of each process at or below a root: the role of the root, except below `up`."""
    children: dict[int, list[int]] = {}
    for pid, process in observed.items():
        children.setdefault(process.parent, []).append(pid)
    roles: dict[int, str] = {}
    todo = [(pid, name) for pid, name in roots.items() if pid in observed]
    while todo:
        pid, name = todo.pop()
        parent = observed.get(observed[pid].parent)
        roles[pid] = role(observed[pid].command, parent.command if parent else "") if name == "up" else name
        todo += [(child, name) for child in children.get(pid, ())]
    return roles


def sample_processes() -> dict[int, ProcessSample]:
    """Return every process there is."""
    result = {}
    tick = os.sysconf("SC_CLK_TCK")
    for entry in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # the process has ended
            stat = (entry / "stat").read_text().rpartition(")")[2].split()
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            result[int(entry.name)] = ProcessSample(
                int(stat[1]), command, (int(stat[11]) + int(stat[12])) / tick
            )
    return result


def peak_memory(pid: int) -> float | None:
    """Return the most resident memory a process has held since the last `forget_peak`, in MB."""
    with contextlib.suppress(OSError):
        for line in (PROC / str(pid) / "status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / MB
    return None


def forget_peak(pid: int) -> None:
    """Reset the peak memory of a process, if permitted."""
    with contextlib.suppress(OSError):
        (PROC / str(pid) / "clear_refs").write_text("5")


def busy_seconds() -> float | None:
    """Return how long this machine's processors have been busy since it started, all together."""
    with contextlib.suppress(OSError):
        user, nice, system, _, _, *interrupts = map(
            int, (PROC / "stat").read_text().split("\n")[0].split()[1:9]
        )
        return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")
    return None


class Watch:
    """Samples families of processes for the duration of a block; afterwards `usage` has the cost."""

    def __init__(self, roots: Mapping[int, str], interval: float = INTERVAL) -> None:
        """Sample each root and its descendants every `interval` seconds. A sample reads all processes of the
        machine, and so takes processor time from them.
        """
        self.roots, self._interval = roots, interval
        self.usage = Usage()
        self._first: dict[int, float] = {}
        self._last: dict[int, float] = {}
        self._peaks: dict[int, float] = {}
        self._roles: dict[int, str] = {}
        self._busy: float | None = None
        self._own = self._begun = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watch", daemon=True)

    def __enter__(self) -> Watch:
        """Start from here: earlier costs do not count."""
        self._busy, self._own, self._begun = busy_seconds(), time.process_time(), time.monotonic()
        observed = sample_processes()
        for pid in family(self.roots, observed):
            self._first[pid] = observed[pid].cpu_seconds
            forget_peak(pid)
        self._sample()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Look a last time and add up."""
        self._over.set()
        self._thread.join()
        self._sample()
        for pid, name in self._roles.items():
            spent = self._last[pid] - self._first.get(pid, 0.0)
            self.usage.cpu_seconds[name] = self.usage.cpu_seconds.get(name, 0.0) + spent
            if pid in self._peaks:
                self.usage.peak_mb[name] = max(self.usage.peak_mb.get(name, 0.0), self._peaks[pid])
        self.usage.cpu_seconds["bench"] = time.process_time() - self._own
        busy = busy_seconds()
        if busy is not None and self._busy is not None:
            strangers = busy - self._busy - sum(self.usage.cpu_seconds.values())
            whole = (os.cpu_count() or 1) * (time.monotonic() - self._begun)
            self.usage.foreign_share = max(0.0, strangers / whole)

    def _watch(self) -> None:
        while not self._over.wait(self._interval):
            self._sample()

    def _sample(self) -> None:
        observed = sample_processes()
        for pid, name in family(self.roots, observed).items():
            self._roles[pid] = name
            self._last[pid] = observed[pid].cpu_seconds
            peak = peak_memory(pid)
            if peak is not None:
                self._peaks[pid] = max(self._peaks.get(pid, 0.0), peak)
