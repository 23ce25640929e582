"""OS::Cinder::Volume (docs/internals/resource-types.md §C 10). The metadata contain the request token."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final

from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Attribute, Context, Created, Fault, Observation, Property, Value
from orchestrator.resources.openstack.cinder import volume_copies as copies
from orchestrator.resources.openstack.cinder import volume_state as state
from orchestrator.resources.openstack.cinder import volume_steps as steps
from orchestrator.resources.openstack.cinder.base import CinderType, block_storage
from orchestrator.resources.openstack.cinder.user_messages import explain
from orchestrator.schema.constraints import Custom, Range
from orchestrator.schema.translation import Replace, Resolve, Rule

SOURCES: Final = ("image", "snapshot_id", "source_volid")
WITHOUT_SIZE: Final = (
    "If neither 'backup_id' nor 'size' is provided, one and only one of 'source_volid', 'snapshot_id' must "
    "be specified, but currently specified options: {}."
)
WITH_SIZE: Final = (
    "If 'size' is provided, only one of 'image', 'source_volid', 'snapshot_id' can be specified, but "
    "currently specified options: {}."
)
_REQUEST: Final = {
    "image": "imageRef",
    "snapshot_id": "snapshot_id",
    "source_volid": "source_volid",
    "volume_type": "volume_type",
    "availability_zone": "availability_zone",
    "description": "description",
    "size": "size",
}


class Volume(CinderType):
    """A volume, empty or from an image, a snapshot, another volume or a backup."""

    name = "OS::Cinder::Volume"
    lists = "volumes"
    support_version = "2014.1"
    can_snapshot = True
    stateful = True
    properties: ClassVar[Mapping[str, Property]] = {
        "availability_zone": Property("string", "The availability zone."),
        "size": Property(
            "integer", "Size in GiB; it can only grow.", update_allowed=True, constraints=(Range(min=1),)
        ),
        "snapshot_id": Property(
            "string", "Id of the snapshot to start from.", constraints=(Custom("cinder.snapshot"),)
        ),
        "backup_id": Property(
            "string",
            "Id of the backup to restore.",
            update_allowed=True,
            constraints=(Custom("cinder.backup"),),
        ),
        "name": Property("string", "The name of the volume.", update_allowed=True),
        "description": Property("string", "A description.", update_allowed=True),
        "volume_type": Property(
            "string",
            "Name or id of the volume type.",
            update_allowed=True,
            constraints=(Custom("cinder.vtype"),),
        ),
        "metadata": Property("map", "Metadata of the volume.", update_allowed=True, default={}),
        "image": Property(
            "string", "Name or id of the image to start from.", constraints=(Custom("glance.image"),)
        ),
        "imageRef": Property("string", "The former name of `image`.", hidden=True),
        "source_volid": Property(
            "string", "Id of the volume to start from.", constraints=(Custom("cinder.volume"),)
        ),
        "scheduler_hints": Property("map", "Hints for the selection of a backend."),
        "read_only": Property("boolean", "Whether the volume is read-only.", update_allowed=True),
        "multiattach": Property("boolean", "Not used: the volume type decides.", default=False, hidden=True),
    }
    translation: ClassVar[tuple[Rule, ...]] = (
        Replace(("image",), source=("imageRef",)),
        Resolve(("image",), "glance.image"),
        Resolve(("volume_type",), "cinder.vtype"),
        Resolve(("snapshot_id",), "cinder.snapshot"),
        Resolve(("source_volid",), "cinder.volume"),
    )
    early_attributes: ClassVar[frozenset[str]] = frozenset({"display_name", "size"})
    needs_ready: ClassVar[bool | frozenset[str]] = frozenset(
        {"image", "imageRef", "snapshot_id", "source_volid", "backup_id", "scheduler_hints"}
    )
    attributes: ClassVar[Mapping[str, Attribute]] = {
        "availability_zone": Attribute("The availability zone.", type="string"),
        "size": Attribute("The size in GiB.", type="string"),
        "snapshot_id": Attribute("The snapshot that the volume started from.", type="string"),
        "display_name": Attribute("The name.", type="string"),
        "display_description": Attribute("The description.", type="string"),
        "volume_type": Attribute("The volume type.", type="string"),
        "metadata": Attribute("The metadata as JSON text.", type="string"),
        "metadata_values": Attribute("The metadata.", type="map"),
        "source_volid": Attribute("The volume that the volume started from.", type="string"),
        "status": Attribute("The status.", type="string", live=True),
        "created_at": Attribute("The time of creation.", type="string"),
        "bootable": Attribute("Whether servers can boot from the volume.", type="string"),
        "encrypted": Attribute("Whether the volume is encrypted.", type="string"),
        "attachments": Attribute("The attachments as JSON text.", type="string", live=True),
        "attachments_list": Attribute("The attachments.", type="list", live=True),
        "multiattach": Attribute("Whether several servers can use the volume.", type="boolean"),
    }

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """Report several sources."""
        given = sorted(name for name in SOURCES if properties.get(name))
        if len(given) > 1:
            text = WITH_SIZE if properties.get("size") else WITHOUT_SIZE
            return (Fault(text.format(given), alone=True),)
        return ()

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, Value]
    ) -> Sequence[Fault]:
        """Require a size, a backup, or a source that has a size."""
        written = resources[name].body.get("properties") or {}
        if any(key in written for key in ("size", "backup_id", "snapshot_id", "source_volid")):
            return ()
        return (Fault(WITHOUT_SIZE.format(sorted(key for key in SOURCES if key in written)), alone=True),)

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Request the volume; a backup is restored and the read-only flag is set when it is available."""
        request: JsonObject = {key: props[name] for name, key in _REQUEST.items() if props.get(name)}
        request["name"] = props.get("name") or ctx.physical_name
        request["metadata"] = state.metadata(props.get("metadata"), ctx.token)
        if props.get("backup_id") and not request.get("size"):
            request["size"] = (block_storage(ctx).backup(props["backup_id"]) or {}).get("size")
        volume = block_storage(ctx).create_volume(request, props.get("scheduler_hints"))
        seen = None
        if state.status_of(volume) in state.TRANSIENT:
            seen = replace(state.waiting(volume), attributes=state.attributes(volume))
        return Created(volume["id"], _steps_after_create(props), observation=seen)

    def find(self, ctx: Context, token: str) -> str | Sequence[str] | None:
        """Return the volumes with the token among their metadata."""
        query = {"metadata": json.dumps({state.TOKEN: token})}
        return [volume["id"] for volume in block_storage(ctx).volumes(query)]

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the volume."""
        cinder = block_storage(ctx)
        shared = ctx.action in ("CREATE", "DELETE", "CHECK")
        volume = cinder.volume(physical_id) if shared else cinder.current_volume(physical_id)
        if volume is None:
            return Observation(exists=False)
        if ctx.action == "DELETE":
            return copies.observe_deletion(ctx, volume)
        if ctx.action == "SNAPSHOT":
            return copies.observe_snapshot(ctx)
        observation = state.broken(volume, creating=ctx.action == "CREATE")
        if observation is None:
            observation = self._observe(ctx, volume)
        observation = explain(ctx, physical_id, observation)
        return replace(observation, attributes=state.attributes(volume), properties=_actual(ctx, volume))

    def chosen(self, ctx: Context) -> Mapping[str, Value]:
        """Return the generated name."""
        return {"name": ctx.physical_name}

    def list_objects(self, ctx: Context) -> Iterable[tuple[str, Value]]:
        """Yield the volumes of the project."""
        return block_storage(ctx).all_observed("/volumes/detail", "volumes")

    def _observe(self, ctx: Context, volume: state.Volume) -> Observation:
        if state.status_of(volume) in state.TRANSIENT:
            return state.waiting(volume)
        if ctx.action not in ("CREATE", "UPDATE"):
            return Observation(exists=True)
        data = ctx.data
        if ctx.action == "CREATE" and not data:  # found after a lost answer
            data = _steps_after_create(ctx.properties)
            if steps.next_step(data, volume):
                return Observation(exists=True, ready=False, step="recover")
        error = steps.failure(data, volume)
        if error:
            return Observation(exists=True, error=error)
        step = steps.next_step(data, volume)
        if step == steps.WAIT:
            return state.waiting(volume)
        return Observation(exists=True, ready=not step, step=step, retry_after=state.POLL_SECONDS)

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Request the immediate changes; the others are steps."""
        data = steps.start_update(ctx, physical_id, props, changed)
        return Created(physical_id, data or {"settled": True})

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        """Carry out a step."""
        if step == "recover":
            return Created(physical_id, _steps_after_create(props))
        if step == copies.DELETE:
            copies.delete_volume(ctx, physical_id)
            return None
        return Created(physical_id, steps.advance(ctx, physical_id, step))

    def equal(self, name: str, before: Value, after: Value) -> bool:
        """Return whether two values of a property are equal."""
        if name == "metadata":
            return state.metadata(before, "") == state.metadata(after, "")
        return bool((before or None) == (after or None))

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Delete the volume; with the deletion policy Snapshot request a backup first."""
        copies.begin_deletion(ctx, physical_id)

    def snapshot(self, ctx: Context, physical_id: str) -> Mapping[str, Value]:
        """Request a backup of the volume."""
        return {copies.BACKUP_ID: copies.request_backup(ctx, physical_id)}

    def delete_snapshot(self, ctx: Context, snapshot_data: Mapping[str, Value]) -> None:
        """Delete the backup."""
        copies.delete_backup(ctx, snapshot_data.get(copies.BACKUP_ID))

    def restored(self, properties: Mapping[str, Value], snapshot: Mapping[str, Value]) -> Mapping[str, Value]:
        """Return the properties with the backup in place of the source."""
        backup = snapshot.get(copies.BACKUP_ID)
        if not backup:
            return properties
        kept = {name: value for name, value in properties.items() if name not in (*SOURCES, "imageRef")}
        return {**kept, "backup_id": backup}

    def read_attributes(self, ctx: Context, physical_id: str, names: frozenset[str]) -> Mapping[str, Value]:
        """Return the live attributes: the volume changes when servers attach it."""
        volume = self.raw(ctx, physical_id)
        current: JsonObject = (
            {"show": None} if volume is None else {"show": volume, **state.attributes(volume)}
        )
        return {name: current.get(name) for name in names}

    def restores_in_place(
        self, before: Mapping[str, Value], after: Mapping[str, Value], changed: frozenset[str]
    ) -> bool:
        """Return whether the volume has not grown since: it cannot shrink, and is created from its backup.
        Without a backup it is not replaced, which would lose its content.
        """
        shrinks = "size" in changed and (after.get("size") or 0) < (before.get("size") or 0)
        return not (shrinks and after.get("size") and "backup_id" in changed)

    def raw(self, ctx: Context, physical_id: str) -> JsonObject | None:
        """Return cinder's view of the volume, without the request token."""
        volume = block_storage(ctx).current_volume(physical_id)
        if volume is None:
            return None
        shown = {key: value for key, value in (volume.get("metadata") or {}).items() if key != state.TOKEN}
        return {**volume, "metadata": shown}


def _steps_after_create(props: Mapping[str, Value]) -> JsonObject:
    """Return the data of a new volume: the steps that follow."""
    data: JsonObject = {}
    if props.get("backup_id"):
        data["restore"] = props["backup_id"]
    if props.get("read_only"):
        data["read_only"] = True
    return data or {"settled": True}


def _actual(ctx: Context, volume: state.Volume) -> JsonObject:
    """Return the actual values of updatable properties."""
    name, given = volume.get("name"), ctx.properties.get("name")
    actual: JsonObject = {
        "name": given if name == (given or ctx.physical_name) else name,
        "description": volume.get("description"),
        "metadata": state.own_metadata(volume),
    }
    if ctx.properties.get("size"):
        actual["size"] = volume.get("size")
    if "read_only" in ctx.properties:
        actual["read_only"] = state.is_read_only(volume)
    return actual
