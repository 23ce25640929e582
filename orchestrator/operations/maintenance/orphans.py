"""Delete provider objects created after their worker lost its lease (docs/internals/protocol.md rule 4).

The worker recorded the object and stopped. If the next worker found the object by its token, the object
belongs to the resource. If it created another object, the recorded object is an orphan and is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.config import Settings
from orchestrator.logs import logger
from orchestrator.operations.resource_context.operation import with_provider_access
from orchestrator.resources.base import Context, ResourceType
from orchestrator.resources.software_api import UNCONNECTED, SoftwareStore
from orchestrator.store.connections.database import UNREACHABLE
from orchestrator.store.maintenance import orphans as store

log = logger()


def delete_orphans(
    db: Connection[TupleRow],
    types: Mapping[str, ResourceType],
    software: Callable[[str], SoftwareStore] = lambda _: UNCONNECTED,
    limit: int = 20,
    settings: Settings | None = None,
    cloud: Callable[[int], Cloud | None] = lambda _: None,
) -> int:
    """Delete a few orphans without an owner; return the number of orphans handled.

    `software` is the store of a project's software objects, `settings` have the addresses of other services,
    and `cloud` returns the provider access of a tree by its root stack.
    """
    dealt = 0
    for row in store.unhandled(db, limit):
        ctx = Context(
            name=row.physical_id,
            physical_name=row.physical_id,
            token=row.token,
            action="DELETE",
            software=software(row.project_id),
        )
        root_cloud = None if row.root_id is None else cloud(row.root_id)
        ctx = with_provider_access(ctx, settings, row.project_id, root_cloud)
        if row.adopted or _removed(types, row.type, ctx, row.physical_id):
            store.mark_handled(db, row.id)
            dealt += 1
    return dealt


def _removed(types: Mapping[str, ResourceType], type_name: str, ctx: Context, physical_id: str) -> bool:
    """Request an orphan's deletion; return whether it is deleted. A failed request is repeated later."""
    try:
        resource_type = types[type_name]
        resource_type.delete(ctx, physical_id)
        gone = not resource_type.observe(ctx, physical_id).exists
    except UNREACHABLE:  # the database, not the provider
        raise
    except Exception as error:  # of whichever kind: the sweep has more to do than this orphan
        log.warning("orphan_delete_failed", physical_id=physical_id, type=type_name, error=str(error))
        return False
    if gone:
        log.warning("orphan_deleted", physical_id=physical_id, type=type_name)
    return gone
