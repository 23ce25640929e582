"""The deletion of a volume, and its snapshots, which are backups."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from orchestrator.errors import ProviderChanging, ProviderError, ProviderInUse
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Observation
from orchestrator.resources.openstack.cinder import failed_detachments as failed
from orchestrator.resources.openstack.cinder import volume_state as state
from orchestrator.resources.openstack.cinder.base import block_storage
from orchestrator.resources.openstack.cinder.user_messages import explain

BACKUP_ID: Final = "backup_id"  # key of the stored data, as in Heat
POLL_SECONDS: Final = 5.0
IN_USE: Final = "Volume in use"
DETACH_SECONDS: Final = 60.0  # after the deletion of a server, until its volumes are detached
ATTACHED: Final = state.ATTACHING | {"detaching", "in-use"}
REFUSED: Final = frozenset({"BadRequest", "Conflict"})
ERROR: Final = "error"
DELETING: Final = frozenset({"deleting", "error_deleting"})
DELETE: Final = "delete"  # step of a deletion after the backup


def request_backup(ctx: Context, volume_id: str) -> str:
    """Request a backup with the request token as description; return its id, also of an earlier attempt."""
    backup = _backup_of_token(ctx)
    if backup is None:
        request = {
            "volume_id": volume_id,
            "name": f"{ctx.physical_name}-backup",
            "description": _mark(ctx),
            "force": True,
        }
        backup = block_storage(ctx).create_backup(request)
    return str(backup["id"])


def observe_snapshot(ctx: Context) -> Observation:
    """Return whether the backup is complete."""
    backup = _backup_of_token(ctx)
    status = None if backup is None else state.status_of(backup)
    if status == "available":
        return Observation(exists=True)
    if backup is None or status == ERROR:
        reason = (backup or {}).get("fail_reason") or "Unknown"
        failed_copy = Observation(exists=True, error=f'Backup went to status {status} due to "{reason}"')
        return failed_copy if backup is None else explain(ctx, str(backup["id"]), failed_copy)
    return Observation(exists=True, ready=False, retry_after=POLL_SECONDS, reason=f"backup is {status}")


def delete_backup(ctx: Context, backup_id: str | None) -> None:
    """Delete the backup; without an id, the backup of the request token."""
    if backup_id is None:
        backup = _backup_of_token(ctx)
        backup_id = None if backup is None else str(backup["id"])
    if backup_id is not None:
        block_storage(ctx).delete_backup(backup_id)


def begin_deletion(ctx: Context, volume_id: str) -> None:
    """Request the deletion, or the backup that must precede it. A backup that failed is replaced."""
    volume = block_storage(ctx).current_volume(volume_id) if ctx.copy_first else None
    if volume is None or state.status_of(volume) in DELETING:
        delete_volume(ctx, volume_id)
        return
    backup = _backup_of_token(ctx)
    if backup is not None and state.status_of(backup) == ERROR:
        block_storage(ctx).delete_backup(str(backup["id"]))
    request_backup(ctx, volume_id)


def delete_volume(ctx: Context, volume_id: str) -> None:
    """Request the deletion. While the volume is being detached, the request is repeated. An attachment that
    nova does not know is removed.

    Raises:
        ProviderError: the volume is in use.
        ProviderInUse: it is being detached, or another change is in progress.
    """
    try:
        block_storage(ctx).delete_volume(volume_id)
    except ProviderError as error:
        volume = block_storage(ctx).current_volume(volume_id) if error.kind in REFUSED else None
        if volume is None:
            raise
        status = state.status_of(volume)
        if status == "deleting":
            return
        late = status in ATTACHED and ctx.elapsed_seconds > failed.STUCK_SECONDS
        if late and failed.remove_unknown_attachments(ctx, volume_id):
            raise ProviderInUse("volume was still attached", retry_after=state.POLL_SECONDS) from error
        if status == "in-use" and ctx.elapsed_seconds > DETACH_SECONDS:
            raise ProviderError(IN_USE, "Error") from error
        if status not in (*state.TRANSIENT, "in-use"):
            raise
        busy = ProviderChanging if status in state.TRANSIENT else ProviderInUse
        raise busy(f"volume is {status}", retry_after=state.POLL_SECONDS) from error


def observe_deletion(ctx: Context, volume: state.Volume) -> Observation:
    """Return the progress of a deletion, and of the backup that precedes it."""
    status = state.status_of(volume)
    if status == "error_deleting":
        stuck = Observation(exists=True, ready=False, error="Volume could not be deleted: error_deleting")
        return explain(ctx, str(volume["id"]), stuck)
    if not ctx.copy_first or status in DELETING:
        return state.waiting(volume)
    seen = observe_snapshot(ctx)
    if seen.error or not seen.ready:
        return replace(seen, ready=False)
    return Observation(exists=True, step=DELETE, retry_after=POLL_SECONDS)


def _mark(ctx: Context) -> str:
    return f"(stack-orchestrator:{ctx.token})"


def _backup_of_token(ctx: Context) -> JsonObject | None:
    """Return the backup of the request token; one that failed only without another."""
    name, mark = f"{ctx.physical_name}-backup", _mark(ctx)
    found = [one for one in block_storage(ctx).backups({"name": name}) if one.get("description") == mark]
    return min(found, key=lambda backup: state.status_of(backup) == ERROR, default=None)
