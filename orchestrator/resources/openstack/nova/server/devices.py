"""Block devices of a new server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from orchestrator.json_types import JsonObject

Device = Mapping[str, Any]

BOOT_DEVICE: Final = "vda"  # the first disk in the former notation
SOURCES: Final = {"volume_id": "volume", "snapshot_id": "snapshot", "image": "image"}
LOCAL_DISKS: Final = ("swap_size", "ephemeral_size", "ephemeral_format")
_COPIED: Final = (
    "device_name",
    "device_type",
    "disk_bus",
    "boot_index",
    "volume_size",
    "volume_type",
    "delete_on_termination",
)


def legacy_mapping(devices: Sequence[Device]) -> list[JsonObject]:
    """Return `block_device_mapping` as nova expects it."""
    keys = ("device_name", "volume_id", "snapshot_id", "volume_size", "delete_on_termination")
    return [
        {key: device[key] for key in keys if device.get(key) is not None and device[key] != ""}
        for device in devices
    ]


def mapping(devices: Sequence[Device], image: str | None) -> list[JsonObject]:
    """Return `block_device_mapping_v2` as nova expects it.

    Nova requires the image of the server as the first device. The first bootable device without an index is
    the boot device if there is no other.
    """
    mapped = [_device(device) for device in devices]
    if image:
        disk = {"source_type": "image", "destination_type": "local", "boot_index": 0}
        mapped.insert(0, {"uuid": image, **disk, "delete_on_termination": True})
    has_boot_device = any(device.get("boot_index") == 0 for device in mapped)
    for device in mapped:
        if "boot_index" in device:
            continue
        device["boot_index"] = -1 if has_boot_device else 0
        has_boot_device = True
    return mapped


def is_bootable(devices: Sequence[Device], legacy: Sequence[Device]) -> bool:
    """Return whether a server can boot without an image."""
    if any(device.get("device_name") == BOOT_DEVICE for device in legacy):
        return True
    return any(
        any(device.get(source) for source in SOURCES) and device.get("boot_index", 0) in (0, None)
        for device in devices
    )


def _device(device: Device) -> JsonObject:
    mapped: JsonObject = {}
    for name, source in SOURCES.items():
        if device.get(name):
            mapped = {"uuid": device[name], "source_type": source, "destination_type": "volume"}
            mapped["delete_on_termination"] = False
    if not mapped:
        mapped = _local_disk(device)
    for name in _COPIED:
        if device.get(name) is not None and device[name] != "":
            mapped[name] = device[name]
    return mapped


def _local_disk(device: Device) -> JsonObject:
    """Return a swap or ephemeral disk, or an empty volume."""
    empty: JsonObject = {"source_type": "blank", "boot_index": -1}
    if device.get("swap_size"):
        swap = {"guest_format": "swap", "volume_size": device["swap_size"]}
        return {**empty, "destination_type": "local", "delete_on_termination": True, **swap}
    if device.get("ephemeral_size") or device.get("ephemeral_format"):
        disk: JsonObject = {**empty, "destination_type": "local", "delete_on_termination": True}
        if device.get("ephemeral_size"):
            disk["volume_size"] = device["ephemeral_size"]
        if device.get("ephemeral_format"):
            disk["guest_format"] = device["ephemeral_format"]
        return disk
    return {**empty, "destination_type": "volume", "delete_on_termination": False}
