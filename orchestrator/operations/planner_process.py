"""The process that plans a large stack: `python -m orchestrator.operations.planner_process NODE LEASE`.

It shares the plan node's lease with the worker that started it, plans, and ends. Both renew the lease: the
worker also while this process still starts, and this process while the worker is busy. If it dies, the lease
expires and another planner resumes after the last slice written. It sends no messages: the sweep enqueues the
first nodes, and their checks enqueue the rest.
"""

from __future__ import annotations

import math
import resource
import signal
import sys
from types import FrameType
from typing import Final

from orchestrator import gc_policy
from orchestrator.config import settings
from orchestrator.logs import configure_logs, logger, set_log_context
from orchestrator.operations.bootstrap import build_planner
from orchestrator.operations.runtime import lease_keeper
from orchestrator.operations.runtime.lease_keeper import Leases
from orchestrator.process_control import yield_processor
from orchestrator.resources.registry import load_registry
from orchestrator.security.encryption import cipher
from orchestrator.store.connections.database import UNREACHABLE, open_database
from orchestrator.store.nodes import repository
from orchestrator.watchdog.watch import LONG_LIMIT_SECONDS, watch

# Address space of a process that plans or parses: a million resources need 4.2 GB.
MEMORY_BYTES: Final = 6 * 1024**3
NICENESS: Final = 5  # of a process that plans
CPU_SECONDS: Final = 1_800  # of a plan; another process continues it, and after some the stack fails

log = logger()


def limit_process(limit: int, cpu_seconds: int) -> None:
    """Bound this process's address space, in bytes, and the processor time that it uses from now on.

    Beyond that time the kernel ends it by SIGXCPU, whatever it computes, without a core file.
    """
    _limit(resource.RLIMIT_AS, limit)
    _limit(resource.RLIMIT_CORE, 0)
    used = resource.getrusage(resource.RUSAGE_SELF)
    _limit(resource.RLIMIT_CPU, math.ceil(used.ru_utime + used.ru_stime) + cpu_seconds)


def _limit(kind: int, limit: int) -> None:
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def main(node_id: int, lease: int) -> None:
    """Plan the traversal of a plan node that `lease` holds."""
    configure_logs()
    chosen = settings()
    watch("planner", seconds=LONG_LIMIT_SECONDS)
    yield_processor(NICENESS)
    limit_process(MEMORY_BYTES, CPU_SECONDS)
    gc_policy.disable_collection()
    database = open_database(chosen, "orchestrator-planner")
    planner = build_planner(database, cipher(chosen), load_registry(), chosen)
    db = database.connect(hot=True)
    visit = repository.read_claimed_plan(db, node_id, lease)
    if visit is None:
        return
    set_log_context(visit.log_context)
    log.info("plan_in_subprocess", action=visit.stack.action)
    signal.signal(signal.SIGTERM, _stop)
    try:
        with Leases(database, lease_keeper.LEASE_SECONDS).keep([(node_id, None, lease)]):
            planner.run(db, visit, lease, enqueue=False)
    except UNREACHABLE as error:
        log.warning("database_unreachable", error=str(error))
    except _Stopped:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        db.cancel()  # abandons the slice being written
        db.close()
        repository.release(database.connect(hot=True), node_id, lease)
        log.info("plan_delegated")


class _Stopped(BaseException):
    """This process was asked to end; the next planner resumes after the last slice written."""


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise _Stopped


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
