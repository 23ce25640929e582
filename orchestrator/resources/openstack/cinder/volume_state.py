"""Decisions from an observed volume. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Observation
from orchestrator.resources.openstack.settings import as_json_texts

Volume = Mapping[str, Any]

POLL_SECONDS: Final = 2.0
TOKEN: Final = "stack_orchestrator_token"  # noqa: S105 - the key of the request token among the metadata
# Keys that cinder itself shows among the metadata.
SERVICE_KEYS: Final = frozenset({TOKEN, "readonly", "attached_mode"})
TRANSIENT: Final = frozenset(
    {
        "attaching",
        "awaiting-transfer",
        "backing-up",
        "creating",
        "detaching",
        "downloading",
        "extending",
        "maintenance",
        "managing",
        "reserved",
        "restoring-backup",
        "retyping",
        "uploading",
    }
)
ATTACHING: Final = frozenset({"attaching", "reserved"})
READY: Final = frozenset({"available", "in-use"})


def status_of(volume: Volume) -> str:
    """Return the status."""
    return str(volume.get("status") or "").lower()


def own_metadata(volume: Volume) -> JsonObject:
    """Return the metadata without the keys of the orchestrator and of cinder."""
    stored = volume.get("metadata") or {}
    return {key: value for key, value in stored.items() if key not in SERVICE_KEYS}


def metadata(given: Mapping[str, Any] | None, token: str) -> dict[str, str]:
    """Return metadata as cinder accepts them, with the request token."""
    return {**as_json_texts(given), TOKEN: token}


def is_read_only(volume: Volume) -> bool:
    """Return whether the volume is read-only."""
    return str((volume.get("metadata") or {}).get("readonly", "")).lower() == "true"


def servers_of(volume: Volume) -> list[str]:
    """Return the servers to which the volume is attached."""
    return [attachment["server_id"] for attachment in volume.get("attachments") or ()]


def broken(volume: Volume, *, creating: bool) -> Observation | None:
    """Return the observation of a volume in error or in an unknown status, None for any other volume."""
    status = status_of(volume)
    if status.startswith("error"):
        error = f'Went to status {status} due to "Unknown"'
        return Observation(exists=True, error=error, replaceable=creating)
    if status not in TRANSIENT and status not in READY:
        error = f'Volume is not built - Unknown status {status} due to "Unknown"'
        return Observation(exists=True, error=error, error_kind="ResourceUnknownStatus")
    return None


def waiting(volume: Volume) -> Observation:
    """Return the observation of an operation in progress."""
    reason = f"volume is {status_of(volume)}"
    return Observation(exists=True, ready=False, retry_after=POLL_SECONDS, reason=reason)


def attributes(volume: Volume) -> JsonObject:
    """Return the attributes that an observation records."""
    own = own_metadata(volume)
    attachments = volume.get("attachments") or []
    return {
        "availability_zone": volume.get("availability_zone"),
        "size": volume.get("size"),
        "snapshot_id": volume.get("snapshot_id"),
        "display_name": volume.get("name"),
        "display_description": volume.get("description"),
        "volume_type": volume.get("volume_type"),
        "metadata": json.dumps(own),
        "metadata_values": own,
        "source_volid": volume.get("source_volid"),
        "status": volume.get("status"),
        "created_at": volume.get("created_at"),
        "bootable": volume.get("bootable"),
        "encrypted": volume.get("encrypted"),
        "attachments": json.dumps(attachments),
        "attachments_list": attachments,
        "multiattach": volume.get("multiattach"),
    }
