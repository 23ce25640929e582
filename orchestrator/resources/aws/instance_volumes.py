"""The volumes of an instance: attachments without a resource."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from orchestrator.resources.base import Context, Observation
from orchestrator.resources.openstack.cinder.volume_attachment import VolumeAttachment


def observe_volumes(ctx: Context, server_id: str) -> Observation:
    """Return whether all volumes are attached; `step` is set if one is still to be requested."""
    for one in _attachments(ctx, server_id):
        found = _type().find(one, one.token)
        if found is None:
            return Observation(exists=True, ready=False, step="attach_volumes")
        observation = _type().observe(one, str(found))
        if observation.error or not observation.ready or not observation.exists:
            return replace(observation, exists=True, step="")
    return Observation(exists=True)


def attach_volumes(ctx: Context, server_id: str) -> None:
    """Request the attachments that are missing."""
    for one in _attachments(ctx, server_id):
        if _type().find(one, one.token) is None:
            _type().create(one, one.properties)


def detach_volumes(ctx: Context, server_id: str) -> None:
    """Request the detachment of all volumes."""
    for one in _attachments(ctx, server_id):
        if _type().find(one, one.token) is not None:
            _type().delete(one, one.properties["volume_id"])


def are_detached(ctx: Context, server_id: str) -> bool:
    """Return whether no volume is attached any more."""
    gone = [replace(one, action="DELETE") for one in _attachments(ctx, server_id)]
    return not any(_type().observe(one, one.properties["volume_id"]).exists for one in gone)


@lru_cache(maxsize=1)
def _type() -> VolumeAttachment:
    return VolumeAttachment()


def _attachments(ctx: Context, server_id: str) -> Iterator[Context]:
    """Yield a context for each volume in the template."""
    for volume in ctx.properties.get("Volumes") or ():
        values = {
            "instance_uuid": server_id,
            "volume_id": volume["VolumeId"],
            "mountpoint": volume["Device"],
        }
        yield replace(ctx, properties=values, data={})
