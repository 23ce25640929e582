"""AWS::EC2::Instance: a server of nova, with volumes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.aws import instance_volumes
from orchestrator.resources.aws.elb import registration
from orchestrator.resources.aws.instance_properties import ADDRESSES, ATTRIBUTES, PROPERTIES
from orchestrator.resources.aws.mapped_type import MappedType
from orchestrator.resources.aws.tags import as_map, as_tags
from orchestrator.resources.base import Context, Created, Fault, Observation, Value
from orchestrator.resources.openstack.nova.base import compute
from orchestrator.resources.openstack.nova.server.server_type import MAX_NAME, Server
from orchestrator.schema.translation import Resolve

NO_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - Heat's value of an instance without an address
ZONE: Final = "OS-EXT-AZ:availability_zone"
MISSING: Final = "{} is missing, this is required when specifying BlockDeviceMappings."
_NAMES: Final = {
    "ImageId": "image",
    "InstanceType": "flavor",
    "KeyName": "key_name",
    "AvailabilityZone": "availability_zone",
    "UserData": "user_data",
}


class Instance(MappedType):
    """A virtual machine. `Volumes` are attached when it is active."""

    name = "AWS::EC2::Instance"
    service = "nova"
    endpoint_type = "compute"
    physical_name_limit = MAX_NAME
    stateful = True
    stateful_in_groups = False
    target_type = Server
    properties = PROPERTIES
    attributes = ATTRIBUTES
    early_attributes = ADDRESSES
    needs_ready = frozenset({"ImageId", "Volumes", "BlockDeviceMappings", "NovaSchedulerHints"})
    translation = (
        Resolve(("ImageId",), "glance.image"),
        Resolve(("InstanceType",), "nova.flavor"),
        Resolve(("SecurityGroups",), "neutron.security_group"),
        Resolve(("SecurityGroupIds",), "neutron.security_group"),
        Resolve(("SubnetId",), "neutron.subnet"),
    )
    changes = {
        "InstanceType": ("flavor",),
        "NetworkInterfaces": ("networks",),
        "SubnetId": ("networks",),
        "Tags": ("metadata",),
        "LoadBalancers": (),
    }

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """Check the interfaces and the block devices."""
        faults = []
        if _security_groups(properties) and properties.get("NetworkInterfaces"):
            names = "SecurityGroups/SecurityGroupIds, NetworkInterfaces"
            message = f"Cannot define the following properties at the same time: {names}."
            faults.append(Fault(message, alone=True))
        for device in properties.get("BlockDeviceMappings") or ():
            if not device.get("Ebs"):
                faults.append(Fault(MISSING.format("Ebs"), "BlockDeviceMappings", alone=True))
            elif not device["Ebs"].get("SnapshotId"):
                faults.append(Fault(MISSING.format("SnapshotId"), "BlockDeviceMappings", alone=True))
        return faults

    def mapped(self, props: Mapping[str, Value]) -> JsonObject:
        """Return the properties of a server."""
        values: JsonObject = {name: props[own] for own, name in _NAMES.items() if props.get(own) is not None}
        given = {
            "security_groups": _security_groups(props),
            "networks": _networks(props),
            "metadata": as_map(props.get("Tags")),
            "scheduler_hints": _hints(props.get("NovaSchedulerHints") or ()),
            "block_device_mapping": [_device(one) for one in props.get("BlockDeviceMappings") or ()],
        }
        return values | {name: value for name, value in given.items() if value}

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the server; when it is active, its volumes."""
        observation = super().observe(ctx, physical_id)
        if ctx.action == "RELEASE" and observation.released:
            return replace(observation, released=instance_volumes.are_detached(ctx, physical_id))
        if ctx.action == "DELETE" and not observation.exists:
            left = ctx.properties.get("LoadBalancers") and registration.next_removal(ctx, physical_id)
            step = registration.DEREGISTER if left else ""
            return replace(observation, exists=bool(left), step=step, retry_after=1.0)
        is_active = observation.exists and observation.ready and not (observation.error or observation.step)
        if ctx.action not in ("CREATE", "UPDATE") or not is_active:
            return observation
        if ctx.action == "CREATE":
            volumes = instance_volumes.observe_volumes(ctx, physical_id)
            if volumes.error or not volumes.ready:
                return replace(volumes, attributes=observation.attributes, properties=observation.properties)
        if ctx.properties.get("LoadBalancers") and registration.next_registration(ctx, physical_id):
            return replace(observation, step=registration.REGISTER, retry_after=1.0)
        return observation

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        """Attach the volumes, join or leave load balancers, or carry out a step of the server."""
        if step in (registration.REGISTER, registration.DEREGISTER):
            registration.carry_out(ctx, physical_id, step)
            return None
        if step != "attach_volumes":
            return super().advance(ctx, physical_id, props, step)
        instance_volumes.attach_volumes(ctx, physical_id)
        return None

    def observed_properties(self, ctx: Context, actual: JsonMapping) -> JsonObject:
        """Return the flavor and the tags."""
        values: JsonObject = {}
        if actual.get("flavor"):
            values["InstanceType"] = actual["flavor"]
        if "Tags" in ctx.properties and "metadata" in actual:
            given, metadata = ctx.properties["Tags"] or [], dict(actual["metadata"])
            values["Tags"] = given if as_map(given) == metadata else as_tags(metadata)
        return values

    def attribute_values(self, ctx: Context, physical_id: str, observation: Observation) -> JsonObject:
        """Return the first address of the last network by name, and the zone."""
        networks = observation.attributes.get("networks") or {}
        address = next((networks[name][0] for name in sorted(networks, reverse=True) if networks[name]), None)
        if address is None and len(_networks(ctx.properties)) == 1:
            address = observation.attributes.get("first_address")
        if address is None and not observation.ready:
            return {}
        zone = ctx.properties.get("AvailabilityZone")
        if zone is None and observation.ready:
            zone = (compute(ctx).server(physical_id) or {}).get(ZONE)
        return {**dict.fromkeys(ADDRESSES, address or NO_ADDRESS), "AvailabilityZone": zone}

    def suspend(self, ctx: Context, physical_id: str) -> None:
        """Suspend the server."""
        self.target.suspend(self.context(ctx), physical_id)

    def resume(self, ctx: Context, physical_id: str) -> None:
        """Resume the server."""
        self.target.resume(self.context(ctx), physical_id)

    def recover(self, ctx: Context, physical_id: str) -> None:
        """Reboot a server in error."""
        self.target.recover(self.context(ctx), physical_id)

    def is_healthy_after_failure(self, ctx: Context, physical_id: str) -> bool:
        """Return whether a failed server can be kept."""
        return self.target.is_healthy_after_failure(self.context(ctx), physical_id)

    def release(self, ctx: Context, physical_id: str) -> None:
        """Detach interfaces and volumes, for a replacement."""
        self.target.release(self.context(ctx), physical_id)
        instance_volumes.detach_volumes(ctx, physical_id)

    def reclaim(self, ctx: Context, physical_id: str, props: Mapping[str, Value]) -> None:
        """Attach interfaces and volumes again."""
        mapped = self.context(ctx)
        self.target.reclaim(mapped, physical_id, mapped.properties)
        instance_volumes.attach_volumes(ctx, physical_id)


def _security_groups(props: Mapping[str, Value]) -> list[Value]:
    return [*(props.get("SecurityGroups") or ()), *(props.get("SecurityGroupIds") or ())]


def _networks(props: Mapping[str, Value]) -> list[JsonObject]:
    """Return the entries of `networks`: interfaces by their index, or else the subnet."""
    given = props.get("NetworkInterfaces") or ()
    if not given:
        return [{"subnet": props["SubnetId"]}] if props.get("SubnetId") else []
    entries = [
        one if isinstance(one, Mapping) else {"NetworkInterfaceId": one, "DeviceIndex": index}
        for index, one in enumerate(given)
    ]
    entries.sort(key=lambda one: int(one.get("DeviceIndex") or 0))
    return [{"port": one["NetworkInterfaceId"]} for one in entries]


def _hints(given: Sequence[Mapping[str, Value]]) -> dict[str, Any]:
    """Return the hints; several values of a key are a list."""
    values: dict[str, list[Value]] = {}
    for hint in given:
        values.setdefault(hint["Key"], []).append(hint["Value"])
    return {key: several[0] if len(several) == 1 else several for key, several in values.items()}


def _device(device: Mapping[str, Value]) -> JsonObject:
    ebs = device.get("Ebs") or {}
    values = {
        "device_name": device["DeviceName"],
        "snapshot_id": ebs.get("SnapshotId"),
        "volume_size": ebs.get("VolumeSize") or None,
        "delete_on_termination": ebs.get("DeleteOnTermination"),
    }
    return {name: value for name, value in values.items() if value is not None}
