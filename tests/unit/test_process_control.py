"""The priority of a process, and its end with its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from orchestrator.process_control import AUTOGROUP

GROUPED = os.access(AUTOGROUP, os.W_OK)


@pytest.mark.parametrize("new_session", [True, False])
def test_only_a_new_session_gets_the_niceness_of_a_process(new_session: bool) -> None:
    program = (
        "import os; from orchestrator.process_control import AUTOGROUP, yield_processor;"
        f"yield_processor(3, new_session={new_session}); print(os.nice(0), os.getsid(0) == os.getpid());"
        + ("print(open(AUTOGROUP).read().split()[-1])" if GROUPED and new_session else "")
    )
    shown = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    niceness, leads, *group = shown.split()
    assert int(niceness) == min(19, os.nice(0) + 3)
    assert leads == str(new_session)
    if new_session:
        assert group == ["3"] * GROUPED


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not report the death of a parent")
def test_a_process_dies_with_its_parent_in_another_session() -> None:
    child = (
        "import os, time; from orchestrator.process_control import die_with, yield_processor;"
        "die_with(os.getppid()); yield_processor(1, new_session=True); print('ready', flush=True);"
        "time.sleep(60)"
    )
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGKILL)
        # The output ends with the last process that holds it.
        assert process.stdout.read() == b""
