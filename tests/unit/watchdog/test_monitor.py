"""The decisions of the watchdog: which seconds count, which work is suspect, and where a thread is."""

from __future__ import annotations

import pytest

from orchestrator.watchdog.monitor import Sample, Slot, counted, position, suspects

TRACE = """Thread 0x00007f21 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 324 in wait
  File "/usr/lib/python3.11/threading.py", line 607 in wait

Current thread 0x0000000000007f22 (most recent call first):
  File "/usr/lib/python3.11/re/__init__.py", line 166 in fullmatch
  File "/home/op/types/hang.py", line 12 in create
  File "/home/op/orchestrator/x.py", line 1 in visit
"""


@pytest.mark.parametrize(
    ("states", "used", "expected"),
    [
        ("SSS", 0.0, 1.0),  # a thread sleeps with the lock
        ("SR", 1.0, 1.0),  # a thread computes with the lock
        ("SR", 0.2, 1.0),
        ("SR", 0.1, 0.5),  # the machine is loaded
        ("SR", 0.0, 0.0),
        ("TTT", 0.0, 0.0),  # stopped
        ("T", 1.0, 0.0),  # stopped after a part of the second
        ("tS", 0.0, 0.0),  # a debugger
        ("SD", 0.0, 0.0),  # waits for a disk
        ("", 0.0, 1.0),  # no /proc
    ],
)
def test_a_second_counts_as_far_as_the_process_could_run(states: str, used: float, expected: float) -> None:
    assert counted(Sample(frozenset(states)), used) == expected


def slot(thread: int, *, alone: bool = False) -> Slot:
    return Slot(thread, thread, alone, f"node {thread}")


def test_a_thread_that_used_the_processor_is_the_cause() -> None:
    slots = [slot(1), slot(2), slot(3, alone=True)]
    assert suspects(slots, {1: 0.1, 2: 9.0, 3: 0.0, 4: 0.2}, 9.3) == ([slot(2)], True)


def test_a_busy_thread_without_work_makes_no_work_suspect() -> None:
    assert suspects([slot(1), slot(2)], {1: 0.0, 2: 0.1, 9: 10.0}, 10.1) == ([], True)


def test_of_sleeping_threads_all_are_suspect() -> None:
    assert suspects([slot(1), slot(2)], {1: 0.0, 2: 0.0}, 0.0) == ([slot(1), slot(2)], False)


def test_a_single_work_or_the_work_that_is_done_alone_is_the_cause() -> None:
    assert suspects([slot(1)], {1: 0.0}, 0.0) == ([slot(1)], True)
    assert suspects([slot(1), slot(2, alone=True)], {}, 0.0) == ([slot(2, alone=True)], True)


def test_without_work_none_is_suspect() -> None:
    assert suspects([], {}, 0.0) == ([], False)


def test_the_position_of_a_thread() -> None:
    expected = "fullmatch (re/__init__.py, line 166), called by create (types/hang.py, line 12)"
    assert position(TRACE, 0x7F22) == expected
    assert position(TRACE, 0x7F23) == ""
