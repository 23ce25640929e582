"""Loads the named points into planner processes too. Python imports this at the start of a process.

The point `planner` is passed before the program begins.
"""

import os
import sys

from tests.constants import apply

apply()

if "ORCHESTRATOR_TEST_CRASH" in os.environ and "orchestrator.operations.planner_process" in sys.orig_argv:
    import crash

    crash.passed("planner", "before")
