"""AWS::AutoScaling::LaunchConfiguration: the definition of a group's instances
(docs/internals/resource-types.md §A6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.resources.base import Context, Created, Fault, Observation, Property, ResourceType, Value
from orchestrator.schema.constraints import Custom

_HINT = {
    "Key": Property("string", "Its name.", required=True),
    "Value": Property("string", "Its value.", required=True),
}
_EBS = {
    "DeleteOnTermination": Property(
        "boolean", "Whether the volume is deleted with the instance.", default=True
    ),
    "Iops": Property("number", "Not implemented.", implemented=False),
    "SnapshotId": Property(
        "string", "The snapshot from which the volume is created.", constraints=(Custom("cinder.snapshot"),)
    ),
    "VolumeSize": Property("string", "Its size in GB."),
    "VolumeType": Property("string", "Not implemented.", implemented=False),
}
_MAPPING = {
    "DeviceName": Property("string", "The name of the device.", required=True),
    "Ebs": Property("map", "The volume to attach.", schema=_EBS),
    "NoDevice": Property("map", "Not implemented.", implemented=False),
    "VirtualName": Property("string", "Not implemented.", implemented=False),
}


class LaunchConfiguration(ResourceType):
    """The properties that the instances of a group have in common."""

    name = "AWS::AutoScaling::LaunchConfiguration"
    calls_out = False
    support_version = "2014.1"
    properties = {
        "ImageId": Property("string", "The image, by id or name.", constraints=(Custom("glance.image"),)),
        "InstanceType": Property("string", "The flavor.", constraints=(Custom("nova.flavor"),)),
        "KeyName": Property("string", "The key pair.", constraints=(Custom("nova.keypair"),)),
        "UserData": Property("string", "The user data of the instance."),
        "SecurityGroups": Property("list", "The names of security groups."),
        "KernelId": Property("string", "Not implemented.", implemented=False),
        "RamDiskId": Property("string", "Not implemented.", implemented=False),
        "BlockDeviceMappings": Property(
            "list", "The volumes to attach.", schema=Property("map", "One volume.", schema=_MAPPING)
        ),
        "NovaSchedulerHints": Property(
            "list", "Hints to the scheduler.", schema=Property("map", "A hint.", schema=_HINT)
        ),
        "InstanceId": Property(
            "string",
            "An existing instance that serves as the example.",
            constraints=(Custom("nova.server"),),
        ),
    }

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """Require that volumes are created from snapshots."""
        for mapping in properties.get("BlockDeviceMappings") or ():
            if not mapping.get("Ebs"):
                return (Fault("Ebs is missing, this is required when specifying BlockDeviceMappings."),)
            if not mapping["Ebs"].get("SnapshotId"):
                return (
                    Fault("SnapshotId is missing, this is required when specifying BlockDeviceMappings."),
                )
        return ()

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Nothing to create: groups read the properties."""
        return Created(ctx.physical_name)

    def find(self, ctx: Context, token: str) -> str | None:
        """Return None: the resource exists only as our own row."""
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """It is there until it is deleted."""
        return Observation(exists=ctx.action != "DELETE")

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Nothing to delete."""
