"""Remove the snapshots that are to go, copy by copy: what the sweep does about them.

Which copies there are is in rows, and a row goes when the provider was asked to remove its copy; whoever dies
on the way is followed by another. No transaction is open while a provider is asked. A refusal is told in the
snapshot's reason and asked again, ever more rarely.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.config import Settings
from orchestrator.errors import NotSupported, ProviderError
from orchestrator.logs import logger
from orchestrator.operations.keystone.delegated_credentials import cloud_of_stack
from orchestrator.operations.resource_context.operation import with_provider_access
from orchestrator.operations.snapshots.restored_template import CHILD
from orchestrator.resources.base import Context, ResourceType
from orchestrator.resources.nested_type import NestedType
from orchestrator.security.encryption import Cipher
from orchestrator.store import snapshots
from orchestrator.store.snapshots import Copy

log = logger()

AT_ONCE = 1_000  # rows of copies read at a time
SECONDS = 0.5  # for one sweep to give to it, besides the call it is in
LOOK_AGAIN_SECONDS = 2.0  # whether an operation that may still write a copy down has ended


def delete_pending_snapshots(
    db: Connection[TupleRow],
    types: Mapping[str, ResourceType],
    cipher: Cipher,
    settings: Settings | None = None,
) -> None:
    """Go on removing snapshots for a while."""
    ends_at = time.monotonic() + SECONDS
    while time.monotonic() < ends_at:
        taken = snapshots.take(db)
        if taken is None:
            return
        id_, uuid, unsettled = taken
        if unsettled:
            snapshots.continue_delete(db, id_, LOOK_AGAIN_SECONDS)
        else:
            project_id, root_id = snapshots.owner_of(db, id_)
            cloud = None
            if settings is not None:
                cloud = cloud_of_stack(lambda: nullcontext(db), cipher, settings, root_id)
            dress = partial(with_provider_access, settings=settings, project_id=project_id, cloud=cloud)
            _delete_copies(db, types, cipher, id_, uuid, ends_at, dress)


def _delete_copies(
    db: Connection[TupleRow],
    types: Mapping[str, ResourceType],
    cipher: Cipher,
    id_: int,
    uuid: str,
    ends_at: float,
    dress: Callable[[Context], Context],
) -> None:
    """Remove copies of one snapshot, and the snapshot with the last."""
    while copies := snapshots.next_copies(db, id_, AT_ONCE):
        gone, refused, waits = [], "", False
        for copy in copies:
            if time.monotonic() > ends_at:
                break
            child = _child(copy, types, cipher)
            if child is not None and not snapshots.remove_by_uuid(db, child):
                waits = True  # goes copy by copy itself
                continue
            fault = "" if child is not None else _refusal(copy, types, cipher, dress)
            if fault:
                refused = refused or f"{copy.name}: {fault}"
            else:
                gone.append(copy.id)
        snapshots.forget(db, gone)
        if refused:
            log.warning("snapshot_not_removed", snapshot=uuid, error=refused)
            snapshots.postpone_delete(db, id_, refused)
            return
        if time.monotonic() > ends_at:
            snapshots.continue_delete(db, id_, 0.0)
            return
        if waits:
            snapshots.continue_delete(db, id_, LOOK_AGAIN_SECONDS)
            return
    if snapshots.delete_if_empty(db, id_):
        log.info("snapshot_removed", snapshot=uuid)


def _child(copy: Copy, types: Mapping[str, ResourceType], cipher: Cipher) -> str | None:
    """Return the id of the snapshot of the stack that a resource stands for, None for any other copy."""
    kind = types.get(copy.kind)
    if copy.kept is None or not (kind is None or isinstance(kind, NestedType)):
        return None
    found = cipher.open(copy.kept).get(CHILD)
    return None if found is None else str(found)


def _refusal(
    copy: Copy, types: Mapping[str, ResourceType], cipher: Cipher, dress: Callable[[Context], Context]
) -> str:
    """Ask for a copy's removal; return why that cannot be done now, nothing when it was."""
    kind = types.get(copy.kind)
    if kind is None:
        return "" if copy.kept is None else str(NotSupported(f"The resource type {copy.kind}"))
    if not kind.can_copy:
        return ""
    opened = cipher.open(copy.sealed) if copy.sealed else {}
    ctx = Context(
        name=copy.name,
        physical_name=copy.physical_id or copy.name,
        token=copy.token,
        action="DELETE",
        data=opened.get("data", copy.data) or {},
    )
    try:
        kind.delete_snapshot(dress(ctx), cipher.open(copy.kept) if copy.kept else {})
    except ProviderError as error:
        return f"{error.kind}: {error}"
    except Exception as error:
        log.exception("snapshot_not_removed", resource=copy.name)
        return f"{type(error).__name__}: {error}"
    return ""
