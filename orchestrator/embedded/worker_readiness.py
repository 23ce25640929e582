"""Loaded into the workers that `orchestrator up` starts (`--include`): says when one takes messages.

Celery's own way to ask (`inspect ping`) leaves a mailbox behind in the broker each time.
"""

from __future__ import annotations

import os
from pathlib import Path

from celery.signals import worker_ready

VARIABLE = "ORCHESTRATOR_READY_PATH"


def say_so(**_: object) -> None:
    """Leave our process id where the supervisor looks for it."""
    path = os.environ.get(VARIABLE)
    if path:
        Path(path).write_text(str(os.getpid()))


worker_ready.connect(say_so, weak=False)
