"""Detachments and attachments that have failed between nova and cinder.

If cinder gives nova no answer, a volume stays `detaching`, or cinder keeps an attachment that nova does not
know. Nova repairs neither. Cinder permits a member of the project to set a detaching volume in use again, and
to delete an attachment that nova does not know, which cinder itself verifies.

If nova's message queue loses the request of an attachment, the volume stays `reserved`. Nova lists the
attachment, and refuses its detachment because the volume is not in use; the server never had it. Only an
administrator, or the delete of the server, ends the reservation.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from orchestrator.resources.base import Context
from orchestrator.resources.openstack.cinder import volume_state as state
from orchestrator.resources.openstack.cinder.base import block_storage
from orchestrator.resources.openstack.connection import openstack
from orchestrator.resources.openstack.creation_times import parsed_time

STUCK_SECONDS: Final = 15.0  # until an operation without effect has failed
# Until a detachment has failed of which nova reports no error: hypervisors wait up to 160 s for a guest.
DETACHING_SECONDS: Final = 180.0
# Until a reservation without progress is lost: a queue keeps the request while a compute service is stopped.
LOST_SECONDS: Final = 900.0


def is_listed(ctx: Context, server_id: str, volume_id: str) -> bool:
    """Return whether nova lists the volume among the server's."""
    listed = openstack(ctx).compute.volume_attachments(server_id)
    return any(item.get("volumeId") == volume_id for item in listed)


def is_given_up(ctx: Context, server_id: str, volume: state.Volume) -> bool:
    """Return whether the volume is `detaching` and nova does not continue: it reports an error, or nothing at
    all for so long that it has lost the request.
    """
    seconds = _seconds_unchanged(volume)
    if state.status_of(volume) != "detaching" or seconds is None:
        return False
    if not STUCK_SECONDS < seconds <= DETACHING_SECONDS:
        return seconds > DETACHING_SECONDS
    last = openstack(ctx).compute.last_action(server_id, "detach_volume") or {}
    return last.get("message") == "Error"


def is_lost(volume: state.Volume) -> bool:
    """Return whether the volume is `reserved` for an attachment that nova has lost."""
    seconds = _seconds_unchanged(volume)
    return state.status_of(volume) == "reserved" and seconds is not None and seconds > LOST_SECONDS


def _seconds_unchanged(volume: state.Volume) -> float | None:
    since = parsed_time(volume.get("updated_at"))
    return None if since is None else (datetime.now(UTC) - since).total_seconds()


def remove_unknown_attachments(ctx: Context, volume_id: str) -> bool:
    """Delete the attachments of a volume that nova does not know; return whether there are any."""
    cinder, found = block_storage(ctx), False
    for attachment in cinder.attachments(volume_id):
        server_id = attachment.get("instance")
        if server_id and not is_listed(ctx, server_id, volume_id):
            cinder.delete_attachment(attachment["id"])
            found = True
    return found
