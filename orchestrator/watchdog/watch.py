"""The watched process: its heartbeat, and the work of its threads, for the monitor."""

from __future__ import annotations

import contextlib
import faulthandler
import mmap
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from orchestrator.logs import logger
from orchestrator.watchdog.monitor import HEARTBEATS, SIZE, SLOT, TRACE_SIGNAL

LIMIT_SECONDS: Final = 10.0  # without a heartbeat, until a process is ended
LONG_LIMIT_SECONDS: Final = 60.0  # of processes that parse or plan a large template: single calls take long
HEARTBEAT_SECONDS: Final = 1.0
RECORDER: Final = "orchestrator.operations.maintenance.hang_recorder"
MONITOR: Final = Path(__file__).with_name("monitor.py")
log = logger()


@dataclass(slots=True)
class _Watch:
    """The file shared with the monitor, of the process `pid`."""

    pid: int
    shared: mmap.mmap
    life: int  # write end of the pipe that ends with this process
    monitor: subprocess.Popen[bytes]
    free: list[int] = field(  # offsets of the slots that no thread uses
        default_factory=lambda: list(range(HEARTBEATS.size, SIZE, SLOT.size))
    )


_watches: dict[str, _Watch] = {}  # at most this process's, under ""
_work = threading.local()  # `slot`: the offset of the thread's slot


def watch(process: str, *, seconds: float = LIMIT_SECONDS, recorder: str = RECORDER) -> None:
    """Have this process ended when its heartbeat thread gets no time for `seconds`.

    A forked process calls it again. `process` names the kind of process in the log and in metrics. The module
    `recorder` records the work in progress; "": it is only logged.
    """
    earlier = _watches.get("")
    if earlier is not None:
        if earlier.pid == os.getpid():
            return
        os.close(earlier.life)  # of the process that forked this one
        del _watches[""]
        _work.__dict__.clear()
    if os.getpid() == 1:  # the system protects it from signals of its own processes
        log.warning(
            "watchdog_without_init", reason="run the container with an init process: docker run --init"
        )
    shared, traces = _file("watchdog"), _file("traces")
    os.truncate(shared, SIZE)
    read_end, life = os.pipe()
    command = [sys.executable, "-m", recorder] if recorder else []
    arguments = [str(os.getpid()), str(seconds), process, str(shared), str(traces), *command]
    try:
        monitor = subprocess.Popen(
            [sys.executable, "-I", "-S", str(MONITOR), *arguments],
            stdin=read_end,
            stdout=subprocess.DEVNULL,
            pass_fds=(shared, traces),
        )
    except OSError as error:
        log.error("watchdog_not_started", reason=str(error))
        os.close(life)
        return
    finally:
        os.close(read_end)
    if TRACE_SIGNAL is not None:
        faulthandler.register(TRACE_SIGNAL, file=traces, all_threads=True)
    made = _Watch(os.getpid(), mmap.mmap(shared, SIZE), life, monitor)
    os.close(shared)
    _watches[""] = made
    threading.Thread(target=_beat, args=(made,), name="heartbeat", daemon=True).start()


@contextlib.contextmanager
def working_on(kind: str, id_: int, *, alone: bool = False) -> Iterator[None]:
    """Name the work of this thread for a block, in case it hangs. A block inside another names a part of it.
    `alone`: there is no other work in the process.
    """
    made = _watches.get("")
    outer: int | None = getattr(_work, "slot", None)
    if made is None or made.pid != os.getpid() or not (made.free or outer is not None):
        yield
        return
    start = made.free.pop() if outer is None else outer
    before = made.shared[start : start + SLOT.size]
    thread = threading.get_native_id()
    SLOT.pack_into(made.shared, start, thread, threading.get_ident(), alone, f"{kind} {id_}".encode())
    _work.slot = start
    try:
        yield
    finally:
        made.shared[start : start + SLOT.size] = before
        _work.slot = outer
        if outer is None:
            made.free.append(start)


def _beat(made: _Watch) -> None:
    pause, beats = threading.Event(), 0
    while not pause.wait(HEARTBEAT_SECONDS):
        beats += 1
        made.shared[: HEARTBEATS.size] = HEARTBEATS.pack(beats)


def _file(name: str) -> int:
    """Return an unnamed file that the monitor inherits."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
