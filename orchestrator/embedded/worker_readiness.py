"""Loaded into workers with `--include`: writes a file when the worker is ready for messages. The periodic
thread of the worker (`tasks/periodic.py`) touches it at each sweep.

Celery's alternative, `inspect ping`, leaves a mailbox in the broker each time.
"""

from __future__ import annotations

import os
from pathlib import Path

from celery.signals import worker_ready

VARIABLE = "ORCHESTRATOR_READY_PATH"


def write_ready_file(**_: object) -> None:
    """Write the process id to the file in ORCHESTRATOR_READY_PATH."""
    path = os.environ.get(VARIABLE)
    if path:
        Path(path).write_text(str(os.getpid()))


worker_ready.connect(write_ready_file, weak=False)
