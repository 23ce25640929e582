"""A process whose interpreter hangs is ended; one that is stopped, busy or slow is not."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.running import eventually
from tests.patience import Patience

LIMIT_SECONDS = 2.0
# Prints a line when it is watched, and one for each line that it reads afterwards.
PROGRAM = """
import ctypes, os, re, sys, threading
from orchestrator.watchdog.watch import watch, working_on
watch("tested", seconds=float(sys.argv[1]), recorder="")
if "fork" in sys.argv and os.fork():
    os.wait()
    print("the child ended", flush=True)
elif "fork" in sys.argv:
    watch("forked", seconds=float(sys.argv[1]), recorder="")
print("ready", flush=True)
def deadlock():
    mutex, libc = ctypes.create_string_buffer(64), ctypes.PyDLL(None)
    for _ in range(2):
        libc.pthread_mutex_lock(mutex)
HANGS = {
    "spin": lambda: re.fullmatch("(a+)+b", "a" * 60),
    "sleep": deadlock,
    "handler": lambda: __import__("signal").raise_signal(10),
    "pause": lambda: ctypes.PyDLL(None).sleep(600),  # until a signal
}
__import__("signal").signal(10, lambda *_: HANGS["sleep"]())
def compute():
    while True:
        sum(range(10_000))
for line in sys.stdin:
    word = line.strip()
    if word == "busy":
        for _ in range(20):
            threading.Thread(target=compute, daemon=True).start()
    elif word in HANGS:
        with working_on("node", 1), working_on("node", 17):
            HANGS[word]()
    print(word, flush=True)
"""


class Watched:
    """A watched process."""

    def __init__(self, log: Path, *arguments: str) -> None:
        self.log = log
        with log.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(LIMIT_SECONDS), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        assert self.read() == "ready"

    def write(self, word: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()

    def read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def monitors(self) -> list[int]:
        """Return the monitors of this process, and of its forks."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                line = (entry / "cmdline").read_bytes().split(b"\0")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if any(part.endswith(b"monitor.py") for part in line) and state not in "ZX":
                parent = line[line.index(next(p for p in line if p.endswith(b"monitor.py"))) + 1]
                if int(parent) == self.process.pid:
                    found.append(int(entry.name))
        return found

    def reports(self) -> list[dict[str, Any]]:
        lines = [line for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [json.loads(line) for line in lines]


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Callable[..., Watched]]:
    started: list[Watched] = []

    def start(*arguments: str) -> Watched:
        started.append(Watched(tmp_path / f"log{len(started)}", *arguments))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.communicate()


@pytest.mark.parametrize(
    ("how", "function"), [("spin", "fullmatch"), ("sleep", "deadlock"), ("handler", "deadlock")]
)
def test_a_hung_process_is_ended_with_its_stack_traces(
    watched: Callable[..., Watched], how: str, function: str
) -> None:
    process = watched()
    process.write(how)
    assert process.process.wait(60) == -signal.SIGKILL
    (report,) = process.reports()
    assert report["event"] == "process_hung"
    assert report["process"] == "tested"
    assert (report["work"], report["certain"]) == (["node 17"], True)
    assert report["position"].startswith(f"{function} (")
    assert "in _beat" in report["trace"]


def test_a_process_that_continues_is_not_ended_but_watched(watched: Callable[..., Watched]) -> None:
    process = watched()
    process.write("pause")
    assert process.read() == "pause"  # the signal for the stack traces has interrupted the call
    process.write("spin")
    assert process.process.wait(60) == -signal.SIGKILL
    assert [report["position"].partition(" ")[0] for report in process.reports()] == ["<lambda>", "fullmatch"]


def test_a_stopped_process_continues(watched: Callable[..., Watched]) -> None:
    process = watched()
    process.process.send_signal(signal.SIGSTOP)
    time.sleep(3 * LIMIT_SECONDS)  # the passage of time is the condition
    process.process.send_signal(signal.SIGCONT)
    process.write("continued")
    assert process.read() == "continued"
    assert process.reports() == []


def test_a_busy_process_is_not_ended(watched: Callable[..., Watched]) -> None:
    process = watched()
    process.write("busy")
    assert process.read() == "busy"
    patience = Patience(3 * LIMIT_SECONDS)
    while patience.left():
        process.write("again")
        assert process.read() == "again"
    assert process.reports() == []


def test_the_monitor_ends_with_its_process(watched: Callable[..., Watched]) -> None:
    process = watched()
    (monitor,) = eventually(process.monitors)
    process.process.kill()
    process.process.wait()
    eventually(lambda: not Path(f"/proc/{monitor}").exists() or monitor not in process.monitors())


def test_a_forked_process_has_a_monitor_of_its_own(watched: Callable[..., Watched]) -> None:
    process = watched("fork")
    process.write("spin")
    assert process.read() == "the child ended"
    (report,) = process.reports()
    assert report["process"] == "forked"
    assert report["pid"] != process.process.pid
