"""Limits per project: those of the settings, unless the operator has set others for the project."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.config import Settings
from orchestrator.store.access import quotas

Db = Connection[TupleRow]

UNLIMITED: Final = -1

# The names of quotas, and the settings with their defaults.
QUOTAS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "stacks": "max_stacks_per_tenant",
        "snapshots_per_stack": "max_snapshots_per_stack",
        "software_configs": "max_software_configs_per_tenant",
        "software_deployments": "max_software_deployments_per_tenant",
        "webhooks": "max_webhooks_per_tenant",
    }
)


def default(settings: Settings, name: str) -> int:
    """Return the limit of the settings."""
    value: int = getattr(settings, QUOTAS[name])
    return value


def limit(db: Db, settings: Settings, project_id: str, name: str) -> int:
    """Return a limit of a project."""
    own = quotas.maximum(db, project_id, name)
    return default(settings, name) if own is None else own
