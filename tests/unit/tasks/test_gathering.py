"""Tasks that are carried out together: their number, and the isolation of an error."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import pytest

PROGRAM = """
import os
os.environ |= {"ORCHESTRATOR_BROKER_URL": "redis://127.0.0.1:1/0"}
from tasks.execution import MOST_TOGETHER, SECONDS, Pace, isolated
"""


def run(body: str) -> str:
    """Run a program with the worker's modules, which need settings of their own."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + body],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ([], "1"),
        ([(1, 0.0005)] * 20, "16"),
        ([(16, 16 * 0.0005)] * 2, "16"),
        ([(1, 0.05)] * 5, "1"),
        ([(16, 16 * 0.0005)] * 5 + [(1, 1.0)], "1"),
        ([(1, 0.0028)] * 60, "4"),
    ],
    ids=["unknown", "short", "short together", "long", "a long one", "longer"],
)
def test_more_tasks_are_read_at_once_the_shorter_they_are(
    tasks: Sequence[tuple[int, float]], expected: str
) -> None:
    body = f"""
pace = Pace()
pace.gathers = True
for number, seconds in {tasks!r}:
    pace.note(number, seconds)
print(pace.together)
"""
    assert run(body).strip() == expected


def test_a_worker_that_gathers_nothing_reads_single_messages() -> None:
    assert run("pace = Pace(); pace.note(50, 0.001); print(pace.together)").strip() == "1"


def test_an_unexpected_error_affects_its_own_task_only() -> None:
    body = """
ran, errors = [], {}
def check(tasks, again):
    ran.append((list(tasks), again))
    if "bad" in tasks:
        raise KeyError("bug")
    return list(tasks)
done = isolated(["a", "bad", "b"], check, lambda task, error: errors.update({task: repr(error)}))
print(done, ran, errors, sep="\\n")
"""
    assert run(body).splitlines() == [
        "[['a'], ['b']]",
        "[(['a', 'bad', 'b'], False), (['a'], True), (['bad'], True), (['b'], True)]",
        "{'bad': \"KeyError('bug')\"}",
    ]
