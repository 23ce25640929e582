"""Delete provider objects created after their worker lost its lease (docs/internals/protocol.md rule 4).

The worker recorded the object and stopped. If the next worker found the object by its token, the object
belongs to the resource. If it created another object, the recorded object is an orphan and is deleted. So is
each object but one of several that `find` returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.messages import Message
from orchestrator.logs import logger
from orchestrator.operations.keystone.delegated_credentials import cloud_of_stack
from orchestrator.operations.maintenance.orphan_access import OrphanAccess
from orchestrator.operations.maintenance.orphan_searches import search_orphans
from orchestrator.operations.runtime.maintenance_job import AUDIT_SECONDS, Maintenance, MaintenanceJob
from orchestrator.operations.software.type_store import DeploymentStore
from orchestrator.resources.base import Context, Observation, ResourceType
from orchestrator.resources.stack_context import StackLocation
from orchestrator.store import circuit_breakers
from orchestrator.store.connections.database import UNREACHABLE
from orchestrator.store.maintenance import orphans as store

log = logger()


def delete_orphans(db: Connection[TupleRow], access: OrphanAccess, limit: int = 20) -> int:
    """Delete a few orphans without an owner; return the number of orphans handled."""
    dealt = 0
    for row in store.unhandled(db, limit):
        if row.adopted or _removed(db, access, row):
            store.mark_handled(db, row.id)
            dealt += 1
    return dealt


def _removed(db: Connection[TupleRow], access: OrphanAccess, row: store.OrphanRow) -> bool:
    """Request an orphan's deletion, once, and follow it; return whether it is deleted. After an error it is
    repeated later, and so is a request after which the orphan did not exist, if its service gave no answer a
    short time ago.
    """
    try:
        ctx, type_ = (
            access.context(row.physical_id, row.token, row.project_id, row.root_id),
            access.types[row.type],
        )
        gone = not _deleted(db, type_, row, ctx).exists
        if gone and _is_in_doubt(db, type_, row):
            store.forget_request(db, row.id)
            return False
    except UNREACHABLE:  # the database, not the provider
        raise
    except Exception as error:  # of whichever kind: the sweep has more to do than this orphan
        log.warning("orphan_delete_failed", physical_id=row.physical_id, type=row.type, error=str(error))
        return False
    if gone:
        log.warning("orphan_deleted", physical_id=row.physical_id, type=row.type)
    return gone


def _is_in_doubt(db: Connection[TupleRow], resource_type: ResourceType, row: store.OrphanRow) -> bool:
    """Whether the service may report the absence of an object that exists (adr/0023)."""
    service = resource_type.service or resource_type.name
    return circuit_breakers.is_in_doubt(db, row.project_id, service)


def _deleted(
    db: Connection[TupleRow], resource_type: ResourceType, row: store.OrphanRow, ctx: Context
) -> Observation:
    """Delete an orphan as far as possible now; return the last observation."""
    physical_id = row.physical_id
    if row.requested_seconds is not None:
        observation = resource_type.observe(ctx, physical_id)
        if observation.step:
            resource_type.advance(ctx, physical_id, {}, observation.step)
            return resource_type.observe(ctx, physical_id)
        pause = resource_type.delete_retry_seconds or ResourceType.delete_retry_seconds
        if not observation.error:
            pause = resource_type.delete_stalled_seconds
        due = row.requested_seconds >= pause > 0
        if not observation.exists or not due:
            return observation
    resource_type.delete(ctx, physical_id)
    store.mark_requested(db, row.id)
    return resource_type.observe(ctx, physical_id)


def remove_orphans(tools: Maintenance) -> Sequence[Message]:
    """Search for objects of interrupted creates, and delete objects without an owner."""
    access = OrphanAccess(
        tools.types,
        tools.settings,
        software=lambda project_id: DeploymentStore(
            tools.connection, tools.database, tools.cipher, tools.settings, StackLocation(project_id)
        ),
        cloud=lambda root_id: cloud_of_stack(tools.connection, tools.cipher, tools.settings, root_id),
    )
    search_orphans(tools.db, access)
    delete_orphans(tools.db, access)
    return ()


ORPHANS: Final = MaintenanceJob("orphans", remove_orphans, every=AUDIT_SECONDS)
