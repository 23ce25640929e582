"""Images of a server: its snapshots."""

from __future__ import annotations

from typing import Final

from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Observation
from orchestrator.resources.openstack.connection import openstack
from orchestrator.resources.openstack.nova.base import compute

IMAGE_ID: Final = "snapshot_image_id"  # key of the stored data, as in Heat
TOKEN_PROPERTY: Final = "stack_orchestrator_token"  # noqa: S105 - the name of an image property
POLL_SECONDS: Final = 5.0
FAILED: Final = frozenset({"killed", "deleted", "pending_delete", "deactivated"})


def request_image(ctx: Context, server_id: str) -> str:
    """Request an image under the request token; return its id, also that of an earlier attempt."""
    image = _image_of_token(ctx)
    if image is not None:
        return str(image["id"])
    name = f"{ctx.physical_name}-snapshot"
    return compute(ctx).create_image(server_id, name, {TOKEN_PROPERTY: ctx.token})


def observe_snapshot(ctx: Context) -> Observation:
    """Return whether the image is complete."""
    image = _image_of_token(ctx)
    status = None if image is None else image.get("status")
    if status == "active":
        return Observation(exists=True)
    if image is None or status in FAILED:
        return Observation(exists=True, error=f"Image of the server is {status or 'missing'}")
    return Observation(exists=True, ready=False, retry_after=POLL_SECONDS, reason=f"image is {status}")


def delete_image(ctx: Context, image_id: str | None) -> None:
    """Delete the image; without an id, the image of the request token."""
    if image_id is None:
        image = _image_of_token(ctx)
        image_id = None if image is None else str(image["id"])
    if image_id is not None:
        openstack(ctx).image.delete_image(image_id)


def _image_of_token(ctx: Context) -> JsonObject | None:
    found = openstack(ctx).image.listed("/images", "images", {TOKEN_PROPERTY: ctx.token})
    return next(iter(found), None)
