"""Projects of stacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.store.connections.database import Database
from orchestrator.store.connections.prepared import fetch_prepared

OF_STACKS = "SELECT uuid::text, project_id FROM stack WHERE uuid = ANY(%(uuids)s::uuid[])"


def of_stacks(database: Database, uuids: Sequence[str]) -> Mapping[str, str]:
    """Return the projects of stacks by uuid, also of deleted stacks."""
    with database.borrow() as db:
        return dict(fetch_prepared(db, OF_STACKS, {"uuids": list(uuids)}))
