"""The properties and attributes of AWS::EC2::Instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestrator.resources.aws.tags import TAG
from orchestrator.resources.base import Attribute, Property
from orchestrator.schema.constraints import AllowedValues, Custom

_UNUSED: Final = "Not implemented."

_VOLUME: Final[Mapping[str, Property]] = {
    "Device": Property(
        "string", "Device name in the guest; a wish that many hypervisors ignore.", required=True
    ),
    "VolumeId": Property(
        "string", "Id of the volume.", required=True, constraints=(Custom("cinder.volume"),)
    ),
}
_EBS: Final[Mapping[str, Property]] = {
    "DeleteOnTermination": Property(
        "boolean", "Whether the volume is deleted with the instance.", default=True
    ),
    "Iops": Property("number", _UNUSED, implemented=False),
    "SnapshotId": Property(
        "string", "Snapshot with the content of the volume.", constraints=(Custom("cinder.snapshot"),)
    ),
    "VolumeSize": Property("string", "Size of the volume in GiB. Default: that of the snapshot."),
    "VolumeType": Property("string", _UNUSED, implemented=False),
}
_DEVICE: Final[Mapping[str, Property]] = {
    "DeviceName": Property("string", "Device name in the guest, such as vdb.", required=True),
    "Ebs": Property("map", "The volume.", schema=_EBS),
    "NoDevice": Property("map", _UNUSED, implemented=False),
    "VirtualName": Property("string", _UNUSED, implemented=False),
}

PROPERTIES: Final[Mapping[str, Property]] = {
    "LoadBalancers": Property(
        "list",
        "Load balancers of the group of the instance: maps of Id, Listeners and HealthCheck.",
        update_allowed=True,
        hidden=True,
        schema=Property("map", "A load balancer."),
    ),
    "ImageId": Property(
        "string", "Name or id of the image.", required=True, constraints=(Custom("glance.image"),)
    ),
    "InstanceType": Property(
        "string",
        "Name or id of the flavor.",
        required=True,
        update_allowed=True,
        constraints=(Custom("nova.flavor"),),
    ),
    "KeyName": Property("string", "Name of a key pair.", constraints=(Custom("nova.keypair"),)),
    "AvailabilityZone": Property("string", "Availability zone of the instance."),
    "DisableApiTermination": Property("string", _UNUSED, implemented=False),
    "KernelId": Property("string", _UNUSED, implemented=False),
    "Monitoring": Property("boolean", _UNUSED, implemented=False),
    "PlacementGroupName": Property("string", _UNUSED, implemented=False),
    "PrivateIpAddress": Property("string", _UNUSED, implemented=False),
    "RamDiskId": Property("string", _UNUSED, implemented=False),
    "SecurityGroups": Property("list", "Names of security groups."),
    "SecurityGroupIds": Property("list", "Ids of security groups."),
    "NetworkInterfaces": Property(
        "list",
        "Network interfaces: ids, or maps of NetworkInterfaceId and DeviceIndex.",
        update_allowed=True,
    ),
    "SourceDestCheck": Property("boolean", _UNUSED, implemented=False),
    "SubnetId": Property(
        "string", "Subnet of the instance; ignored with NetworkInterfaces.", update_allowed=True
    ),
    "Tags": Property(
        "list",
        "Metadata of the instance.",
        update_allowed=True,
        schema=Property("map", "A tag.", schema=TAG),
    ),
    "NovaSchedulerHints": Property(
        "list",
        "Hints for the scheduler. A key may occur several times.",
        schema=Property("map", "A hint.", schema=TAG),
    ),
    "Tenancy": Property(
        "string", _UNUSED, implemented=False, constraints=(AllowedValues(("dedicated", "default")),)
    ),
    "UserData": Property("string", "User data of the instance."),
    "Volumes": Property(
        "list",
        "Volumes to attach.",
        default=[],
        schema=Property("map", "A volume.", schema=_VOLUME),
    ),
    "BlockDeviceMappings": Property(
        "list", "Volumes to create from snapshots.", schema=Property("map", "A device.", schema=_DEVICE)
    ),
}

ATTRIBUTES: Final[Mapping[str, Attribute]] = {
    "AvailabilityZone": Attribute("Availability zone of the instance.", type="string"),
    "PrivateDnsName": Attribute("First address of the instance.", type="string"),
    "PublicDnsName": Attribute("First address of the instance.", type="string"),
    "PrivateIp": Attribute("First address of the instance.", type="string"),
    "PublicIp": Attribute("First address of the instance.", type="string"),
}
ADDRESSES: Final = frozenset(ATTRIBUTES) - {"AvailabilityZone"}
