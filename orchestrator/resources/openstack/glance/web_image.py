"""OS::Glance::WebImage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from orchestrator.clients.openstack.image import TOKEN_PROPERTY, Image
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Context, Created, Fault, Observation, ResourceType, Unique, Value
from orchestrator.resources.openstack.connection import openstack
from orchestrator.resources.openstack.glance.web_image_properties import PROPERTIES

AMAZON_FORMATS: Final = frozenset({"ami", "ari", "aki"})
AVAILABLE: Final = ("active", "deactivated")
UNFINISHED: Final = ("pending", "processing")  # statuses of a task
# Properties of the type that are properties of the image under the same name.
SIMPLE: Final = frozenset(PROPERTIES) - {"location", "extra_properties", "members", "active"}
POLL_SECONDS: Final = 3.0


class WebImage(ResourceType):
    """An image whose data Glance downloads from a URL."""

    name = "OS::Glance::WebImage"
    service = "glance"
    endpoint_type = "image"
    live_show = True
    support_version = "12.0.0"
    properties = PROPERTIES
    unique = Unique((("id",),), "refuse")

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """Check the formats, and who may see an image with members."""
        faults = []
        container, disk = properties.get("container_format"), properties.get("disk_format")
        if container in AMAZON_FORMATS and disk is not None and disk != container:
            faults.append(
                Fault(
                    "Invalid mix of disk and container formats. When setting a disk or container format to "
                    "one of 'aki', 'ari', or 'ami', the container and disk formats must match.",
                    "container_format",
                    alone=True,
                )
            )
        if properties.get("members") and properties.get("visibility", "shared") != "shared":
            message = "members property should only be specified for visibility with value shared."
            faults.append(Fault(message, "members", alone=True))
        return faults

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Create the image; its data and its members are later steps."""
        values = {name: value for name, value in props.items() if name in SIMPLE and value is not None}
        created = _glance(ctx).create_image({**(props.get("extra_properties") or {}), **values}, ctx.token)
        return Created(created["id"], _data(props))

    def find(self, ctx: Context, token: str) -> str | Sequence[str] | None:
        """Return the images with the token."""
        return _glance(ctx).image_ids_with_token(token) or None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the image, and name the step that is missing."""
        glance = _glance(ctx)
        image = glance.image(physical_id)
        if image is None or image["status"] in ("deleted", "pending_delete"):
            return Observation(exists=False)
        seen = Observation(exists=True, properties=_observed(ctx, image))
        if image["status"] == "killed":
            return replace(seen, error='Went to status killed due to "Unknown"', replaceable=True)
        if ctx.action == "DELETE":
            return seen
        if image["status"] not in AVAILABLE:
            return _importing(ctx, glance, image, seen)
        return _available(ctx, glance, image, seen)

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        """Import the data, share the image, or change whether its data are available."""
        glance = _glance(ctx)
        match step:
            case "import":
                glance.import_from(physical_id, props["location"])
            case "members":
                _share(ctx, glance, physical_id)
                return Created(physical_id, _data(props))
            case "deactivate":
                glance.deactivate(physical_id)
            case "reactivate":
                glance.reactivate(physical_id)
        return None

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Change the image in a single request. Removed properties are removed from the image."""
        glance = _glance(ctx)
        values: JsonObject = {name: props[name] for name in changed & SIMPLE if props.get(name) is not None}
        removed = {name for name in changed & SIMPLE if props.get(name) is None}
        if "tags" in removed:
            values["tags"] = []
            removed.discard("tags")
        if "extra_properties" in changed:
            extra = props.get("extra_properties") or {}
            removed |= set(ctx.data.get("extra_properties") or ()) - extra.keys()
            values.update(extra)
        if values or removed:
            image = glance.image(physical_id) or {}
            glance.change_image(physical_id, values, removed, known=image)
        managed = [*(props.get("members") or ()), *(ctx.data.get("members") or ())]
        return Created(physical_id, {**_data(props), "members": list(dict.fromkeys(managed))})

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Delete the image; Glance refuses to delete a protected image."""
        _glance(ctx).delete_image(physical_id)

    def read_attributes(self, ctx: Context, physical_id: str, names: frozenset[str]) -> Mapping[str, Value]:
        """Return the image as `show`."""
        image = _glance(ctx).image(physical_id) or {}
        return {"show": {name: value for name, value in image.items() if name != TOKEN_PROPERTY}}


def _glance(ctx: Context) -> Image:
    return openstack(ctx).image


def _data(props: Mapping[str, Value]) -> JsonObject:
    """Return the managed data, for later updates."""
    members = list(props.get("members") or ())
    return {"members": members, "extra_properties": sorted(props.get("extra_properties") or {})}


def _observed(ctx: Context, image: JsonMapping) -> JsonObject:
    """Return the values of the properties that the template sets."""
    values = {name: image.get(name) for name in SIMPLE if name in ctx.properties}
    tags = ctx.properties.get("tags")
    if tags is not None and set(tags) == set(values["tags"] or ()):
        values["tags"] = tags  # their order is not significant
    if "extra_properties" in ctx.properties:
        names = ctx.properties["extra_properties"] or {}
        values["extra_properties"] = {name: image[name] for name in names if name in image}
    if image["status"] in AVAILABLE and "active" in ctx.properties:
        values["active"] = image["status"] == "active"
    return values


def _importing(ctx: Context, glance: Image, image: JsonMapping, seen: Observation) -> Observation:
    """Return the observation of an image without data."""
    seen = replace(seen, ready=False, retry_after=POLL_SECONDS, reason=f"image {image['status']}")
    if image["status"] != "queued":
        return seen
    tasks = glance.import_tasks(image["id"])
    failed = [task for task in tasks if task.get("status") == "failure"]
    if failed and len(failed) == len(tasks):
        message = failed[0].get("message") or "Unknown"
        return replace(seen, ready=True, error=f'Went to status queued due to "{message}"')
    if tasks or ctx.action not in ("CREATE", "UPDATE"):
        return seen
    return replace(seen, retry_after=0.0, step="import")


def _available(ctx: Context, glance: Image, image: JsonMapping, seen: Observation) -> Observation:
    """Return the observation of an image with data.

    A task that has not ended may still write the image, with tags that it read before an update.
    """
    props = ctx.properties
    if ctx.action == "CREATE" and any(
        task.get("status") in UNFINISHED for task in glance.import_tasks(image["id"])
    ):
        return replace(seen, ready=False, retry_after=POLL_SECONDS, reason="the import ends")
    desired, recorded = set(props.get("members") or ()), set(ctx.data.get("members") or ())
    if desired or recorded:
        present = set(glance.members(image["id"])) & (desired | recorded)
        if "members" in props:
            given = [member for member in props["members"] or () if member in present]
            members = [*given, *sorted(present - desired)]
            seen = replace(seen, properties={**(seen.properties or {}), "members": members})
        if ctx.action in ("CREATE", "UPDATE") and present != desired:
            return replace(seen, ready=False, retry_after=0.0, step="members")
    if ctx.action in ("CREATE", "UPDATE") and props.get("active", True) != (image["status"] == "active"):
        step = "deactivate" if image["status"] == "active" else "reactivate"
        return replace(seen, ready=False, retry_after=0.0, step=step)
    return seen


def _share(ctx: Context, glance: Image, image_id: str) -> None:
    """Share the image with its members, and end the sharing with former members."""
    present, desired = set(glance.members(image_id)), list(ctx.properties.get("members") or ())
    for member in dict.fromkeys(desired):
        if member not in present:
            glance.add_member(image_id, member)
    for member in ctx.data.get("members") or ():
        if member in present and member not in desired:
            glance.remove_member(image_id, member)
