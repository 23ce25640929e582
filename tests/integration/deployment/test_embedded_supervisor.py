"""Children start in stages, are replaced when they die, and stop in reverse order, for any number of stop
requests.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.embedded.process import Child, Process
from orchestrator.embedded.supervisor import Stopped, supervising
from orchestrator.errors import Misconfigured
from orchestrator.process_control import AUTOGROUP
from tests.patience import Patience, took_at_most

# Writes its start and its end to a file shared by all children; deaf children ignore SIGTERM.
PROGRAM = """
import os, signal, sys
name, notes, deaf = sys.argv[1], sys.argv[2], sys.argv[3] == "deaf"
def note(word):
    with open(notes, "a") as file:
        file.write(f"{word} {name} {os.getpid()}\\n")
def leave(*_):
    note("stopped")
    sys.exit()
signal.signal(signal.SIGTERM, signal.SIG_IGN if deaf else leave)
note("started")
while True:
    signal.pause()
"""


class Notes:
    """The lines written by the children."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_text("")

    def lines(self) -> list[list[str]]:
        return [line.split() for line in self.path.read_text().splitlines()]

    def order(self) -> list[str]:
        return [f"{keyword} {name}" for keyword, name, _ in self.lines()]

    def pids(self, name: str) -> list[int]:
        return [int(pid) for keyword, who, pid in self.lines() if (keyword, who) == ("started", name)]


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path / "notes")


def child(name: str, notes: Notes, manner: str = "polite", stop_seconds: float = 10.0) -> Child:
    return Child(
        name=name,
        argv=(sys.executable, "-c", PROGRAM, name, str(notes.path), manner),
        ready=lambda pid: pid in notes.pids(name),
        stop_seconds=stop_seconds,
    )


def meanwhile(act: Callable[[], None]) -> threading.Thread:
    """Run something in parallel with the watching main thread, then request the stop, also on failure."""

    def work() -> None:
        try:
            act()
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def within(seconds: float, condition: Callable[[], object]) -> bool:
    """Return whether it happened in time; a slow machine has more."""
    patience = Patience(seconds)
    while patience.left():
        if condition():
            return True
        time.sleep(0.01)
    return bool(condition())


def until(condition: Callable[[], object], seconds: float = 10.0) -> float:
    """Return how long it took, in seconds."""
    begun = time.monotonic()
    while not condition() and time.monotonic() < begun + seconds:
        time.sleep(0.01)
    return time.monotonic() - begun


def test_stages_start_in_order_and_stop_in_reverse(notes: Notes, tmp_path: Path) -> None:
    with supervising(tmp_path) as supervisor:
        supervisor.start([child("database", notes)])
        supervisor.start([child("worker", notes)])
        thread = meanwhile(lambda: None)
        supervisor.watch()
        thread.join()
    assert notes.order() == ["started database", "started worker", "stopped worker", "stopped database"]


def test_a_killed_child_is_replaced_within_two_seconds(notes: Notes, tmp_path: Path) -> None:
    replaced: list[bool] = []

    def kill() -> None:
        os.kill(notes.pids("worker")[0], signal.SIGKILL)
        replaced.append(within(2.0, lambda: len(notes.pids("worker")) == 2))

    with supervising(tmp_path) as supervisor:
        supervisor.start([child("worker", notes)])
        thread = meanwhile(kill)
        supervisor.watch()
        thread.join()
    assert replaced == [True]
    assert notes.order()[-1] == "stopped worker"


def test_a_child_that_keeps_dying_is_started_ever_more_slowly(notes: Notes, tmp_path: Path) -> None:
    def watch_it_die() -> None:
        os.kill(notes.pids("worker")[-1], signal.SIGKILL)
        at_once.append(within(2.0, lambda: len(notes.pids("worker")) == 2))
        for count in (2, 3):
            os.kill(notes.pids("worker")[-1], signal.SIGKILL)
            gaps.append(until(lambda count=count: len(notes.pids("worker")) == count + 1))

    at_once: list[bool] = []
    gaps: list[float] = []
    with supervising(tmp_path) as supervisor:
        supervisor.start([child("worker", notes)])
        thread = meanwhile(watch_it_die)
        supervisor.watch()
        thread.join()
    assert at_once == [True]
    assert gaps[0] >= 0.5
    assert gaps[1] >= 1.0


def test_the_death_of_a_child_does_not_affect_its_siblings(notes: Notes, tmp_path: Path) -> None:
    def kill() -> None:
        os.kill(notes.pids("one")[0], signal.SIGKILL)
        until(lambda: len(notes.pids("one")) == 2)

    with supervising(tmp_path) as supervisor:
        supervisor.start([child("one", notes), child("two", notes)])
        thread = meanwhile(kill)
        supervisor.watch()
        thread.join()
    assert len(notes.pids("two")) == 1


def test_a_child_that_does_not_stop_in_time_is_killed(notes: Notes, tmp_path: Path) -> None:
    with supervising(tmp_path) as supervisor:
        supervisor.start([child("deaf", notes, "deaf", stop_seconds=0.3), child("polite", notes)])
        begun = time.monotonic()
    assert time.monotonic() - begun >= 0.3
    assert took_at_most(begun, 8)
    assert notes.order()[-1] == "stopped polite"
    assert not Path(f"/proc/{notes.pids('deaf')[0]}").exists()


def test_asking_twice_stops_everything_at_once(notes: Notes, tmp_path: Path) -> None:
    def ask_once_more() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        until(lambda: "stopped polite" in notes.order())

    with supervising(tmp_path) as supervisor:
        supervisor.start([child("deaf", notes, "deaf", stop_seconds=60), child("polite", notes)])
        thread = meanwhile(ask_once_more)
        supervisor.watch()
        begun = time.monotonic()
    thread.join()
    assert took_at_most(begun, 10)
    assert not Path(f"/proc/{notes.pids('deaf')[0]}").exists()


def test_a_stop_request_during_startup_stops_the_started_children(notes: Notes, tmp_path: Path) -> None:
    never = Child(
        name="never", argv=(sys.executable, "-c", "import signal; signal.pause()"), ready=lambda _: False
    )
    threads: list[threading.Thread] = []

    def start() -> None:
        with supervising(tmp_path) as supervisor:
            supervisor.start([child("database", notes)])
            threads.append(meanwhile(lambda: None))
            supervisor.start([never])

    with pytest.raises(Stopped):
        start()
    threads[0].join()
    assert notes.order() == ["started database", "stopped database"]


def test_a_child_that_cannot_start_stops_the_rest_and_reports_the_reason(
    notes: Notes, tmp_path: Path
) -> None:
    broken = Child(
        name="api", argv=(sys.executable, "-c", "raise SystemExit('no port')"), ready=lambda _: False
    )

    def start() -> None:
        with supervising(tmp_path) as supervisor:
            supervisor.start([child("database", notes)])
            supervisor.start([broken])

    with pytest.raises(Misconfigured, match=r"(?s)api ended with status 1.*no port"):
        start()
    assert notes.order() == ["started database", "stopped database"]


def test_a_program_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(Misconfigured, match=r"cannot start ghost .*/no/such/program"),
        supervising(tmp_path) as supervisor,
    ):
        supervisor.start([Child(name="ghost", argv=("/no/such/program",))])


def test_a_child_inherits_its_priority(tmp_path: Path) -> None:
    tells = "import os; print(os.nice(0))"
    grouped = os.access(AUTOGROUP, os.W_OK)  # the kernel shares among sessions first
    if grouped:
        tells += "; print(open('/proc/self/autogroup').read().split()[-1])"
    argv = (sys.executable, "-c", tells)
    plain = Process(Child(name="plain", argv=argv), tmp_path / "plain.log")
    patient = Process(Child(name="patient", argv=argv, niceness=3), tmp_path / "patient.log")
    assert plain.wait(10.0)
    assert patient.wait(10.0)
    own_items = os.nice(0)
    assert (tmp_path / "plain.log").read_text().split() == [str(own_items)] + ["0"] * grouped
    assert (tmp_path / "patient.log").read_text().split() == [str(min(19, own_items + 3))] + ["3"] * grouped
