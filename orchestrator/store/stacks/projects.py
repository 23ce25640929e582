"""Projects of stacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.store.connections.database import Database

OF_STACKS = "SELECT uuid::text, project_id FROM stack WHERE uuid = ANY(%(uuids)s::uuid[])"


def of_stacks(database: Database, uuids: Sequence[str]) -> Mapping[str, str]:
    """Return the projects of stacks by uuid, also of deleted stacks."""
    with database.engine.connect() as connection:
        return dict(connection.exec_driver_sql(OF_STACKS, {"uuids": list(uuids)}).all())
