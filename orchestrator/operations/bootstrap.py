"""The wiring of a process: the objects that checks and plans share, built from settings and a database.

Workers, planner processes, offloaded requests and the tests' world all build them here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from orchestrator import backoff
from orchestrator.config import Settings
from orchestrator.operations.children.loader import ChildStackLoader
from orchestrator.operations.keystone.access import KeystoneAccess
from orchestrator.operations.planning.planner import Planner
from orchestrator.operations.planning.process import PlannerProcesses, PlanNodeHandler
from orchestrator.operations.reconcile.worker_context import WorkerContext
from orchestrator.operations.runtime import dispatch_window, lease_keeper
from orchestrator.operations.runtime.caches import FileCache
from orchestrator.operations.runtime.circuit_breaker import CircuitBreakers
from orchestrator.operations.runtime.dispatch_window import Windows
from orchestrator.operations.runtime.lease_keeper import Leases
from orchestrator.operations.runtime.parameter_cache import ParameterCache
from orchestrator.operations.runtime.quarantine import Quarantine
from orchestrator.resources.base import ResourceType
from orchestrator.security.encryption import Cipher
from orchestrator.store.connections.database import Database


def build_planner(
    database: Database, cipher: Cipher, types: Mapping[str, ResourceType], settings: Settings
) -> Planner:
    """Return a planner with its own caches."""
    stacks = ChildStackLoader(database, cipher, types, settings, FileCache(database))
    return Planner(database, cipher, types, settings, ParameterCache(database, cipher), stacks)


def build_worker_context(
    database: Database,
    cipher: Cipher,
    types: Mapping[str, ResourceType],
    settings: Settings,
    start_process: Callable[[int, int], None] | None = None,
) -> WorkerContext:
    """Return the state that all checks of a worker process share; its planner uses the same caches.

    `start_process` plans a large stack elsewhere, given its plan node and lease; by default in a process.
    """
    planner = build_planner(database, cipher, types, settings)
    leases = Leases(database, lease_keeper.LEASE_SECONDS)
    processes = PlannerProcesses(leases)
    return WorkerContext(
        database,
        cipher,
        types,
        settings,
        planner.parameters,
        Windows(dispatch_window.SIZE),
        leases,
        PlanNodeHandler(planner, start_process or processes.start),
        processes,
        planner.stacks.files,
        planner.stacks,
        CircuitBreakers(database, backoff.RETRY_MAX_SECONDS),
        KeystoneAccess(database, cipher, settings),
        Quarantine(database),
    )
