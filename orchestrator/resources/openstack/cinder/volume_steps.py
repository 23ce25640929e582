"""The steps of a create and an update of a volume.

`update` stores the changes in the data of the resource: `restore` (a backup), `size`, `read_only`, `retype`
(the name of a type), and with `attached` the attachments to restore at the end. The changes except `retype`
require a volume that is not attached; a size is first changed in use, if cinder supports that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from orchestrator.clients.openstack.block_storage import VOLUME_TYPES
from orchestrator.errors import ProviderConflict, ProviderError
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Value
from orchestrator.resources.openstack.cinder import volume_state as state
from orchestrator.resources.openstack.cinder.base import block_storage
from orchestrator.resources.openstack.connection import openstack

WAIT: Final = "wait"
SHRINK: Final = "Shrinking volume is not supported."


def start_update(
    ctx: Context, volume_id: str, props: Mapping[str, Value], changed: frozenset[str]
) -> JsonObject:
    """Request the immediate changes; return the data with the remaining changes.

    Raises:
        ProviderError: the new size is smaller.
    """
    cinder = block_storage(ctx)
    volume = cinder.current_volume(volume_id) or {}
    data: JsonObject = {}
    if "size" in changed and props.get("size") is not None:
        if props["size"] < volume.get("size", 0):
            raise ProviderError(SHRINK, "NotSupported")
        data["size"] = props["size"]
    if "backup_id" in changed and props.get("backup_id"):
        data["restore"] = props["backup_id"]
    if "read_only" in changed:
        data["read_only"] = bool(props.get("read_only"))
    if "volume_type" in changed and props.get("volume_type"):
        data["retype"] = _type_name(ctx, props["volume_type"])
    values: JsonObject = {}
    if "name" in changed:
        values["name"] = props.get("name") or ctx.physical_name
    if "description" in changed:
        values["description"] = props.get("description") or ""
    if values:
        cinder.update_volume(volume_id, values)
    if "metadata" in changed:
        cinder.set_volume_metadata(volume_id, state.metadata(props.get("metadata"), ctx.token))
    if ctx.data.get("attached"):  # an interrupted update has detached it
        data["attached"] = ctx.data["attached"]
    elif data.keys() & {"size", "restore", "read_only"}:
        data["attached"] = _attachments(volume)
    return data


def next_step(data: Mapping[str, Any], volume: state.Volume) -> str:
    """Return the next step, WAIT during a detachment, "" if none is left; nothing else is in progress."""
    in_use, exclusive = state.status_of(volume) == "in-use", _exclusive_step(data, volume)
    if exclusive:
        if not in_use or (exclusive == "extend" and not data.get("extended_in_use")):
            return exclusive
        return WAIT if data.get("detaching") else "detach"
    if data.get("retype") and volume.get("volume_type") != data["retype"]:
        return "retype"
    missing = {item["server"] for item in data.get("attached") or ()} - set(state.servers_of(volume))
    return "attach" if missing else ""


def _exclusive_step(data: Mapping[str, Any], volume: state.Volume) -> str:
    """Return the next step that requires a volume without attachments."""
    if data.get("restore"):
        return "restore"
    if data.get("size") and volume.get("size") != data["size"]:
        return "extend"
    if "read_only" in data and state.is_read_only(volume) != data["read_only"]:
        return "set_read_only"
    return ""


def failure(data: Mapping[str, Any], volume: state.Volume) -> str:
    """Return the error of a requested change without effect, "" if there is none."""
    if data.get("size") and data.get("extended") == data["size"] and volume.get("size") != data["size"]:
        return f"Extending the volume to {data['size']} GiB failed"
    retyped = data.get("retype")
    if retyped and data.get("retyped") == retyped and volume.get("volume_type") != retyped:
        return f"Changing the type of the volume to {retyped} failed"
    return ""


def advance(ctx: Context, volume_id: str, step: str) -> JsonObject:
    """Carry out a step; return the new data."""
    cinder, data = block_storage(ctx), dict(ctx.data)
    volume = cinder.current_volume(volume_id) or {}
    if state.status_of(volume) in state.TRANSIENT:  # an earlier attempt of this step
        return data
    match step:
        case "restore":
            cinder.restore_backup(data["restore"], {"volume_id": volume_id})
            del data["restore"]
            data["settled"] = True  # a volume found after a lost answer has empty data
        case "extend":
            return _extend(ctx, volume_id, volume, data)
        case "set_read_only":
            cinder.set_volume_read_only(volume_id, read_only=data["read_only"])
        case "retype":
            cinder.retype_volume(volume_id, data["retype"])
            data["retyped"] = data["retype"]
        case "detach":
            for item in data.get("attached") or ():
                openstack(ctx).compute.detach_volume(item["server"], volume_id)
            data["detaching"] = True
        case "attach":
            _attach(ctx, volume_id, volume, data)
    return data


def _extend(ctx: Context, volume_id: str, volume: state.Volume, data: JsonObject) -> JsonObject:
    in_use = state.status_of(volume) == "in-use"
    if volume.get("size") == data["size"]:
        return data
    try:
        block_storage(ctx).extend_volume(volume_id, data["size"])
    except ProviderError as error:
        if not in_use or error.kind not in ("BadRequest", "NotAcceptable", "Conflict"):
            raise
    return {**data, "extended_in_use": True} if in_use else {**data, "extended": data["size"]}


def _attach(ctx: Context, volume_id: str, volume: state.Volume, data: Mapping[str, Any]) -> None:
    attached = set(state.servers_of(volume))
    for item in data["attached"]:
        if item["server"] not in attached:
            request = {"volumeId": volume_id, **({"device": item["device"]} if item["device"] else {})}
            try:
                openstack(ctx).compute.attach_volume(item["server"], request)
            except ProviderConflict:  # an earlier attempt
                continue


def _attachments(volume: state.Volume) -> list[JsonObject]:
    return [
        {"server": attachment["server_id"], "device": attachment.get("device")}
        for attachment in volume.get("attachments") or ()
    ]


def _type_name(ctx: Context, given: str) -> str:
    """Return the name of a type, by which volumes refer to it."""
    volume_type = block_storage(ctx).find(VOLUME_TYPES, given)
    return given if volume_type is None else str(volume_type["name"])
