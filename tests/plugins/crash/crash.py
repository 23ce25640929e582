"""Loaded into workers (`celery --include crash`) and planners (`sitecustomize.py`) by tests: kills or holds
the process at a named point of the engine.

The folder named by ORCHESTRATOR_TEST_CRASH holds the armed points: files `POINT.WHEN.N`. Every passage of a
point removes a file. The process that removes the last file is hit with the file's content, `kill`, `stop`
(SIGKILL, SIGSTOP) or `hold` (wait until the test removes the file `POINT.WHEN.hit`; signals are handled), and
leaves its process id as `POINT.WHEN.hit`. So a point hits exactly once, in any process.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import thing_type

from orchestrator.operations.maintenance.sweep import Sweep
from orchestrator.operations.planning import row_writer, small_plans
from orchestrator.store.nodes import repository
from orchestrator.store.planning import bulk_writer
from orchestrator.store.traversals import completion
from tasks.publisher import Dispatcher
from tests.constants import apply

apply()
FOLDER = Path(os.environ["ORCHESTRATOR_TEST_CRASH"])
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}

# The owner of a function, the function, and the name of the point in tests.
POINTS: tuple[tuple[Any, Callable[..., Any], str], ...] = (
    (repository, repository.claim, "claim"),
    (repository, repository.read_claimed, "read_claimed"),
    (repository, repository.read_queued, "read_queued"),
    (repository, repository.begin, "begin"),
    (thing_type.Thing, thing_type.Thing.create, "create"),
    (thing_type.Thing, thing_type.Thing.update, "update"),
    (thing_type.Thing, thing_type.Thing.delete, "delete"),
    (repository, repository.write_outcome, "settle"),
    (repository, repository.settle_nodes, "settle_nodes"),
    (Dispatcher, Dispatcher.publish, "publish"),
    (bulk_writer, bulk_writer.slice_of, "slice"),
    (bulk_writer, bulk_writer.copy_nodes, "copy"),
    (completion, completion.complete, "complete"),
    (Sweep, Sweep.run, "sweep"),
)


def passed(point: str, when: str) -> None:
    """Remove a file of this point; the removal of the last file sends the signal to this process."""
    armed = sorted(FOLDER.glob(f"{point}.{when}.[0-9]*"))
    for file in armed:
        with contextlib.suppress(FileNotFoundError):
            how = file.read_text()
            file.unlink()
            if file == armed[-1]:
                hit = FOLDER / f"{point}.{when}.hit"
                hit.write_text(str(os.getpid()))
                if how == "hold":
                    while hit.exists():
                        time.sleep(0.01)
                else:
                    signal.pthread_kill(threading.get_ident(), SIGNALS[how])  # before this thread goes on
            return


def wrap(owner: Any, original: Callable[..., Any], point: str) -> None:
    """Replace a function by a wrapper that passes its point before and after the call."""

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        worthwhile = point not in {"publish", "sweep"} or (point == "publish" and bool(args[1]))
        if worthwhile:
            passed(point, "before")
        result = original(*args, **kwargs)
        if worthwhile or result:  # a sweep that found nothing does not count
            passed(point, "after")
        return result

    setattr(owner, original.__name__, wrapped)


for crash_point in POINTS:
    wrap(*crash_point)
row_writer.SLICE = int(os.environ.get("ORCHESTRATOR_TEST_SLICE", row_writer.SLICE))
if "ORCHESTRATOR_TEST_SLICE" in os.environ:
    small_plans.MAX_RESOURCES = 0  # otherwise a single statement plans a small stack
