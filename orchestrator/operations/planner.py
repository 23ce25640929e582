"""The planner's own process: `python -m orchestrator.operations.planner NODE TRAVERSAL LEASE` plans one large stack and ends.

It takes over the plan node's lease from the worker that started it. If it dies, the lease runs out and another takes up
the plan where its last slice ended. It sends no messages: the sweep rings the first nodes, and the checks the rest.
"""

from __future__ import annotations

import resource
import subprocess
import sys

import psycopg

from orchestrator.config import settings
from orchestrator.operations.leases import Leases
from orchestrator.operations.parameters import ParameterCache
from orchestrator.operations.plan import Planner
from orchestrator.resources.registry import load_registry
from orchestrator.security.encryption import cipher
from orchestrator.store import nodes
from orchestrator.store.database import open_database
from orchestrator.telemetry import configure_logs, logger

log = logger()

_children: list[subprocess.Popen[bytes]] = []


def start_planner(node_id: int, traversal: int, lease: int) -> None:
    """Start a planner for a claimed plan node and return at once."""
    _children[:] = [child for child in _children if child.poll() is None]
    command = [sys.executable, "-m", __name__, str(node_id), str(traversal), str(lease)]
    _children.append(subprocess.Popen(command, stdin=subprocess.DEVNULL))


def limit_memory(limit: int) -> None:
    """Bound this process's address space, in bytes."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(
        resource.RLIMIT_AS, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard)
    )


def main(node_id: int, lease: int) -> None:
    """Plan one node."""
    configure_logs()
    chosen = settings()
    limit_memory(chosen.planner_memory_limit)
    database = open_database(chosen, "orchestrator-planner")
    sealing = cipher(chosen)

    def no_further(node: int, traversal: int, held: int) -> None:
        raise AssertionError("the planner plans by itself")

    planner = Planner(
        database, sealing, load_registry(), chosen, ParameterCache(database, sealing), no_further
    )
    db = database.connect(hot=True)
    visits = nodes.look(db, [node_id], lease)
    if not visits:
        return
    log.info("plan_apart", stack=visits[0].stack.uuid, traversal=visits[0].traversal)
    try:
        with Leases(database, chosen.lease_seconds).keep([(node_id, None, lease)]):
            planner.run(db, visits[0], lease)
    except psycopg.OperationalError as error:
        log.warning("database_unreachable", error=str(error))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[3]))
