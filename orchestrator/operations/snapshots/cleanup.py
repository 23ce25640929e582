"""Delete snapshots that are pending deletion, copy by copy; called by the sweep.

Each copy has a row, deleted once the provider was asked to delete the copy, so another process can continue
after a crash. No transaction is open during a provider call. A refusal is recorded in the snapshot's reason
and retried with a growing delay.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.config import Settings
from orchestrator.engine.messages import Message
from orchestrator.errors import Misconfigured, NotSupported, ProviderError
from orchestrator.logs import logger
from orchestrator.operations.keystone.delegated_credentials import cloud_of_stack
from orchestrator.operations.resource_context.operation import with_provider_access
from orchestrator.operations.runtime.maintenance_job import Maintenance, MaintenanceJob
from orchestrator.operations.snapshots.restored_template import CHILD
from orchestrator.resources.base import Context, ResourceType
from orchestrator.resources.nested_type import NestedType
from orchestrator.resources.verbs.contexts import operation_context
from orchestrator.security.encryption import Cipher
from orchestrator.store import snapshots
from orchestrator.store.connections.damaged_rows import DAMAGED, damage
from orchestrator.store.snapshots import Copy

log = logger()

BATCH_SIZE = 1_000  # rows of copies read at a time
SECONDS = 0.5  # time budget of a sweep, excluding the call in progress
LOOK_AGAIN_SECONDS = 2.0  # until an operation that may still record a copy has ended


def delete_pending_snapshots(
    db: Connection[TupleRow],
    types: Mapping[str, ResourceType],
    cipher: Cipher,
    settings: Settings | None = None,
) -> None:
    """Continue deleting snapshots within the time budget."""
    ends_at = time.monotonic() + SECONDS
    while time.monotonic() < ends_at:
        taken = snapshots.claim(db)
        if taken is None:
            return
        id_, uuid, unsettled = taken
        if unsettled:
            snapshots.continue_delete(db, id_, LOOK_AGAIN_SECONDS)
        else:
            try:
                project_id, root_id = snapshots.owner_of(db, id_)
                cloud = None
                if settings is not None:
                    cloud = cloud_of_stack(lambda: nullcontext(db), cipher, settings, root_id)
                prepare = partial(with_provider_access, settings=settings, project_id=project_id, cloud=cloud)
                _delete_copies(db, types, cipher, id_, uuid, ends_at, prepare)
            except (*DAMAGED, Misconfigured) as error:
                log.error("row_damaged", kind="snapshot", id=uuid, error=damage(error))
                snapshots.postpone_delete(db, id_, damage(error))


def _delete_copies(
    db: Connection[TupleRow],
    types: Mapping[str, ResourceType],
    cipher: Cipher,
    id_: int,
    uuid: str,
    ends_at: float,
    prepare: Callable[[Context], Context],
) -> None:
    """Delete copies of a snapshot, and with the last copy the snapshot."""
    while copies := snapshots.next_copies(db, id_, BATCH_SIZE):
        gone, refused, waits = [], "", False
        for copy in copies:
            if time.monotonic() > ends_at:
                break
            child = _child(copy, types, cipher)
            if child is not None and not snapshots.remove_by_uuid(db, child):
                waits = True  # that snapshot is deleted copy by copy, too
                continue
            fault = "" if child is not None else _refusal(copy, types, cipher, prepare)
            if fault:
                refused = refused or f"{copy.name}: {fault}"
            else:
                gone.append(copy.id)
        snapshots.delete_copies(db, gone)
        if refused:
            log.warning("snapshot_delete_failed", snapshot=uuid, error=refused)
            snapshots.postpone_delete(db, id_, refused)
            return
        if time.monotonic() > ends_at:
            snapshots.continue_delete(db, id_, 0.0)
            return
        if waits:
            snapshots.continue_delete(db, id_, LOOK_AGAIN_SECONDS)
            return
    if snapshots.delete_if_empty(db, id_):
        log.info("snapshot_deleted", snapshot=uuid)


def _child(copy: Copy, types: Mapping[str, ResourceType], cipher: Cipher) -> str | None:
    """Return the id of the child stack's snapshot if the copy belongs to a nested resource, else None."""
    resource_type = types.get(copy.kind)
    if copy.kept is None or not (resource_type is None or isinstance(resource_type, NestedType)):
        return None
    child = cipher.open(copy.kept).get(CHILD)
    return None if child is None else str(child)


def _refusal(
    copy: Copy, types: Mapping[str, ResourceType], cipher: Cipher, prepare: Callable[[Context], Context]
) -> str:
    """Request the delete of a copy; return the reason if it is not possible now, else None."""
    resource_type = types.get(copy.kind)
    if resource_type is None:
        return "" if copy.kept is None else str(NotSupported(f"The resource type {copy.kind}"))
    if not resource_type.can_copy:
        return ""
    opened = cipher.open(copy.sealed) if copy.sealed else {}
    ctx = operation_context(
        name=copy.name,
        physical_name=copy.physical_id or copy.name,
        token=copy.token,
        action="DELETE",
        data=opened.get("data", copy.data) or {},
    )
    try:
        resource_type.delete_snapshot(prepare(ctx), cipher.open(copy.kept) if copy.kept else {})
    except ProviderError as error:
        return f"{error.kind}: {error}"
    except Exception as error:
        log.exception("snapshot_delete_failed", resource=copy.name)
        return f"{type(error).__name__}: {error}"
    return ""


def continue_deletions(tools: Maintenance) -> Sequence[Message]:
    """Continue deleting snapshots within the time budget."""
    delete_pending_snapshots(tools.db, tools.types, tools.cipher, tools.settings)
    return ()


PENDING: Final = MaintenanceJob("snapshots", continue_deletions, snapshots.HAS_DUE)
