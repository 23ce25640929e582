"""Images of a server: its snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Observation, ResourceType, Value
from orchestrator.resources.openstack.connection import openstack
from orchestrator.resources.openstack.nova.base import compute

IMAGE_ID: Final = "snapshot_image_id"  # key of the stored data, as in Heat
TOKEN_PROPERTY: Final = "stack_orchestrator_token"  # noqa: S105 - the name of an image property
POLL_SECONDS: Final = 5.0
DELETE: Final = "delete"  # step of a deletion after the image
FAILED: Final = frozenset({"killed", "deleted", "pending_delete", "deactivated"})


def request_image(ctx: Context, server_id: str) -> str:
    """Request an image under the request token; return its id, also from an earlier attempt."""
    image = _image_of_token(ctx)
    if image is not None and image.get("status") not in FAILED:
        return str(image["id"])
    name = f"{ctx.physical_name}-snapshot"
    return compute(ctx).create_image(server_id, name, {TOKEN_PROPERTY: ctx.token})


def restores_in_place(
    self: ResourceType,  # noqa: ARG001 - a method of the type
    before: Mapping[str, Value],  # noqa: ARG001
    after: Mapping[str, Value],  # noqa: ARG001
    changed: frozenset[str],
) -> bool:
    """Return whether the flavor is the same: a disk that has grown cannot shrink, and the server is created
    from its image. Without an image it is not replaced, which would lose its disk.
    """
    return not {"flavor", "image"} <= changed


def observe_snapshot(ctx: Context) -> Observation:
    """Return whether the image is complete."""
    image = _image_of_token(ctx)
    status = None if image is None else image.get("status")
    if status == "active":
        return Observation(exists=True)
    if image is None or status in FAILED:
        return Observation(exists=True, error=f"Image of the server is {status or 'missing'}")
    return Observation(exists=True, ready=False, retry_after=POLL_SECONDS, reason=f"image is {status}")


def observe_final_image(ctx: Context) -> Observation:
    """Return the progress of the image that precedes a deletion; then the step that deletes the server."""
    seen = observe_snapshot(ctx)
    if seen.error or not seen.ready:
        return replace(seen, ready=False)
    return Observation(exists=True, step=DELETE, retry_after=POLL_SECONDS)


def delete_image(ctx: Context, image_id: str | None) -> None:
    """Delete the image; without an id, the image of the request token."""
    if image_id is None:
        image = _image_of_token(ctx)
        image_id = None if image is None else str(image["id"])
    if image_id is not None:
        openstack(ctx).image.delete_image(image_id)


def _image_of_token(ctx: Context) -> JsonObject | None:
    """Return the image of the request token; one that failed only without another."""
    found = openstack(ctx).image.listed("/images", "images", {TOKEN_PROPERTY: ctx.token})
    return min(found, key=lambda image: image.get("status") in FAILED, default=None)
