"""AWS::EC2::Volume and AWS::EC2::VolumeAttachment: a volume of cinder, and its attachment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestrator.json_types import JsonObject
from orchestrator.resources.aws.mapped_type import MappedType
from orchestrator.resources.aws.tags import TAG, as_map
from orchestrator.resources.base import Context, Property, Value
from orchestrator.resources.openstack.cinder.volume import Volume
from orchestrator.resources.openstack.cinder.volume_attachment import VolumeAttachment
from orchestrator.schema.constraints import AllowedPattern, Custom, Range
from orchestrator.schema.translation import Resolve

_VOLUME: Final = {
    "AvailabilityZone": "availability_zone",
    "Size": "size",
    "SnapshotId": "backup_id",
}
_ATTACHMENT: Final = {"InstanceId": "instance_uuid", "VolumeId": "volume_id", "Device": "mountpoint"}


class Ec2Volume(MappedType):
    """A volume. No property can be changed."""

    name = "AWS::EC2::Volume"
    service = "cinder"
    endpoint_type = "volumev3"
    can_snapshot = True
    stateful = True
    target_type = Volume
    properties = {
        "AvailabilityZone": Property(
            "string", "Availability zone of the volume.", required=True, immutable=True
        ),
        "Size": Property("integer", "Size in GiB.", immutable=True, constraints=(Range(1),)),
        "SnapshotId": Property(
            "string",
            "Backup with the content of the volume.",
            immutable=True,
            constraints=(Custom("cinder.backup"),),
        ),
        "Tags": Property(
            "list",
            "Metadata of the volume.",
            immutable=True,
            schema=Property("map", "A tag.", schema=TAG),
        ),
    }

    def mapped(self, props: Mapping[str, Value]) -> JsonObject:
        """Return the properties of a volume."""
        values: JsonObject = {name: props[own] for own, name in _VOLUME.items() if props.get(own)}
        tags = as_map(props.get("Tags"))
        return values | ({"metadata": tags} if tags else {})

    def snapshot(self, ctx: Context, physical_id: str) -> Mapping[str, Value]:
        """Request a backup of the volume."""
        return self.target.snapshot(self.context(ctx), physical_id)

    def delete_snapshot(self, ctx: Context, snapshot_data: Mapping[str, Value]) -> None:
        """Delete the backup."""
        self.target.delete_snapshot(self.context(ctx), snapshot_data)

    def restored(self, properties: Mapping[str, Value], snapshot: Mapping[str, Value]) -> Mapping[str, Value]:
        """Return the properties with the backup as the content."""
        backup = self.target.restored({}, snapshot).get("backup_id")
        return {**properties, "SnapshotId": backup} if backup else properties


class Ec2VolumeAttachment(MappedType):
    """The attachment of a volume to an instance. No property can be changed."""

    name = "AWS::EC2::VolumeAttachment"
    service = "cinder"
    endpoint_type = "volumev3"
    target_type = VolumeAttachment
    properties = {
        "InstanceId": Property(
            "string",
            "Id of the instance.",
            required=True,
            immutable=True,
            constraints=(Custom("nova.server"),),
        ),
        "VolumeId": Property(
            "string",
            "Id of the volume.",
            required=True,
            immutable=True,
            constraints=(Custom("cinder.volume"),),
        ),
        "Device": Property(
            "string",
            "Device name in the guest; a wish that many hypervisors ignore.",
            required=True,
            immutable=True,
            constraints=(AllowedPattern("/dev/vd[b-z]"),),
        ),
    }
    needs_ready = True  # an active instance and an available volume
    translation = (Resolve(("InstanceId",), "nova.server"), Resolve(("VolumeId",), "cinder.volume"))

    def mapped(self, props: Mapping[str, Value]) -> JsonObject:
        """Return the properties of an attachment."""
        return {name: props[own] for own, name in _ATTACHMENT.items() if props.get(own)}
