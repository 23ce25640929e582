"""Services shared by all checks of a process: built once, in `operations/bootstrap.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.config import Settings
from orchestrator.operations.children.loader import ChildStackLoader
from orchestrator.operations.keystone.access import KeystoneAccess
from orchestrator.operations.planning.process import PlannerProcesses, PlanNodeHandler
from orchestrator.operations.runtime.caches import FileCache
from orchestrator.operations.runtime.circuit_breaker import CircuitBreakers
from orchestrator.operations.runtime.dispatch_window import Windows
from orchestrator.operations.runtime.lease_keeper import Leases
from orchestrator.operations.runtime.look_ups import LookUps
from orchestrator.operations.runtime.parameter_cache import ParameterCache
from orchestrator.operations.runtime.quarantine import Quarantine
from orchestrator.operations.runtime.unchanged_objects import UnchangedObjects
from orchestrator.resources.base import ResourceType
from orchestrator.security.encryption import Cipher
from orchestrator.store.connections.database import Database


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """Services shared by all checks of this process."""

    database: Database
    cipher: Cipher
    types: Mapping[str, ResourceType]
    settings: Settings
    parameters: ParameterCache
    windows: Windows
    leases: Leases
    plan: PlanNodeHandler
    planner_processes: PlannerProcesses
    files: FileCache
    stacks: ChildStackLoader
    breakers: CircuitBreakers
    keystone: KeystoneAccess
    quarantine: Quarantine
    unchanged: UnchangedObjects = field(default_factory=UnchangedObjects)
    look_ups: LookUps = field(default_factory=LookUps)
