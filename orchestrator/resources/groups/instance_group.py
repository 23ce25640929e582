"""OS::Heat::InstanceGroup and AWS::AutoScaling::AutoScalingGroup: instances created from a launch
configuration (docs/internals/resource-types.md §A6).

The type of a member is OS::Heat::ScaledResource, which the environment may map to any type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from orchestrator.errors import ProviderError
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Attribute, Context, Fault, Property, Value
from orchestrator.resources.groups.adjustments import Bounds
from orchestrator.resources.groups.auto_scaling_group import sizes
from orchestrator.resources.groups.rolling_update import Policy
from orchestrator.resources.groups.scaling_group import ScalingGroup
from orchestrator.resources.nested_type import ChildView, Member
from orchestrator.schema.constraints import AllowedValues, Custom
from orchestrator.template.group_template import Definition
from orchestrator.template.resource_registry import SCALED

MAX_PAUSE_SECONDS: Final = 3600
INSTANCE: Final = "AWS::EC2::Instance"
NO_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - reported for a member without an address
EITHER: Final = "Either 'InstanceId' or 'LaunchConfigurationName' must be provided."
_DURATION: Final = re.compile(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?")

_TAGS: Final = Property(
    "list",
    "Tags of the instances.",
    schema=Property(
        "map",
        "A tag.",
        schema={
            "Key": Property("string", "Its name.", required=True),
            "Value": Property("string", "Its value.", required=True),
        },
    ),
)
_BATCHES: Final = {
    "MinInstancesInService": Property(
        "integer", "Minimum number of instances in service during a batch.", default=0
    ),
    "MaxBatchSize": Property("integer", "Maximum number of instances per batch.", default=1),
    "PauseTime": Property("string", "Pause between batches, at most an hour.", default="PT0S"),
}
_COMMON: Final = {
    "AvailabilityZones": Property("list", "Not used.", required=True),
    "LoadBalancerNames": Property("list", "Load balancers to be notified of every change."),
    "Tags": _TAGS,
}
_INSTANCES: Final = {
    "InstanceList": Attribute("The addresses of the instances, separated by commas.", "string")
}


class InstanceGroup(ScalingGroup):
    """A number of instances with the same launch configuration."""

    name = "OS::Heat::InstanceGroup"
    cools_down = False
    policy_name = "RollingUpdate"
    tag = "metering.groupname"
    implied_type = SCALED
    properties = {
        **_COMMON,
        "LaunchConfigurationName": Property(
            "string", "The launch configuration, by reference.", required=True, update_allowed=True
        ),
        "Size": Property("integer", "Number of instances.", required=True, update_allowed=True),
    }
    attributes = _INSTANCES
    update_policy = {
        "RollingUpdate": Property("map", "Batches for applying a new definition.", schema=_BATCHES)
    }

    def bounds(self, props: Mapping[str, Value]) -> Bounds:
        """Return the fixed size."""
        size = props.get("Size", 1)
        return Bounds(size, size, size)

    def cooldown(self, props: Mapping[str, Value]) -> float | None:
        """Return the cooldown in seconds."""
        return props.get("Cooldown")

    def definition(self, ctx: Context, props: Mapping[str, Value], child: ChildView) -> Definition:
        """Return the definition of the instances: the launch configuration with additional tags.

        Raises:
            ProviderError: the configuration does not exist.
        """
        name = props.get("LaunchConfigurationName") or ""
        definition = child.sibling(name)
        if definition is None:
            raise ProviderError(
                f"LaunchConfigurationName ({name}) reference can not be found.", kind="ValueError"
            )
        body: JsonObject = {"properties": {**definition.properties, **self._member_properties(ctx, props)}}
        balancers = [load_balancer(child, name) for name in props.get("LoadBalancerNames") or ()]
        if balancers and has_instances(child):
            body["properties"]["LoadBalancers"] = balancers
        if definition.metadata:
            body["metadata"] = definition.metadata
        body["properties"].pop("InstanceId", None)
        return Definition(SCALED, body)

    def planned_definition(self, props: Mapping[str, Value]) -> Definition | None:
        """Return None: the launch configuration does not exist yet."""
        return None

    def rolling(self, ctx: Context, props: Mapping[str, Value]) -> Policy | None:
        """Return the batches of the update policy.

        Raises:
            ProviderError: its pauses are no duration, or too long.
        """
        policy = ctx.update_policy.get(self.policy_name)
        if policy is None:
            return None
        return Policy(
            policy["MaxBatchSize"], policy["MinInstancesInService"], pause_seconds(policy["PauseTime"])
        )

    def attribute(self, ctx: Context, members: Sequence[Member], name: str) -> Value:
        """Return the addresses."""
        if name == "InstanceList":
            return (
                ",".join(str(member.attributes.get("PublicIp") or NO_ADDRESS) for member in members) or None
            )
        return super().attribute(ctx, members, name)

    def member_named(self, members: Sequence[Member], key: str) -> Member | None:
        """Return the member at a place, the oldest first."""
        return members[int(key)] if key.isdecimal() and int(key) < len(members) else None

    def _member_properties(self, ctx: Context, props: Mapping[str, Value]) -> dict[str, Value]:
        tags = list(props.get("Tags") or ())
        if not any(tag["Key"].startswith("metering.") for tag in tags):
            tags.append({"Key": "metering.groupname", "Value": ctx.physical_name})
        if self.cools_down:
            tags.append({"Key": "metering.AutoScalingGroupName", "Value": ctx.physical_name})
        return {"Tags": tags}


class AwsAutoScalingGroup(InstanceGroup):
    """A group of instances that scaling policies resize."""

    name = "AWS::AutoScaling::AutoScalingGroup"
    support_version = "2014.1"
    cools_down = True
    policy_name = "AutoScalingRollingUpdate"
    properties = {
        **_COMMON,
        "LaunchConfigurationName": Property(
            "string", "The launch configuration, by reference.", update_allowed=True
        ),
        "InstanceId": Property(
            "string",
            "An existing instance that serves as the example.",
            constraints=(Custom("nova.server"),),
        ),
        "MaxSize": Property("integer", "Maximum number of instances.", required=True, update_allowed=True),
        "MinSize": Property("integer", "Minimum number of instances.", required=True, update_allowed=True),
        "Cooldown": Property("integer", "Cooldown after scaling, in seconds.", update_allowed=True),
        "DesiredCapacity": Property("integer", "Initial number of instances.", update_allowed=True),
        "HealthCheckGracePeriod": Property("integer", "Not implemented.", implemented=False),
        "HealthCheckType": Property(
            "string",
            "Not implemented.",
            implemented=False,
            constraints=(AllowedValues(("EC2", "ELB")),),
        ),
        "VPCZoneIdentifier": Property(
            "list", "The subnet of the instances, at most one.", schema=Property("string", "Its id.")
        ),
    }
    update_policy = {
        "AutoScalingRollingUpdate": Property("map", "Batches for applying a new definition.", schema=_BATCHES)
    }

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """Validate the sizes, and require a single source of the instances."""
        faults = sizes(properties, "MinSize", "MaxSize", "DesiredCapacity")
        zones = properties.get("VPCZoneIdentifier")
        if zones and len(zones) != 1:
            faults.append(Fault("Anything other than one VPCZoneIdentifier is not supported."))
        if properties.get("InstanceId") and properties.get("LaunchConfigurationName"):
            faults.append(Fault(EITHER))
        return faults

    def bounds(self, props: Mapping[str, Value]) -> Bounds:
        """Return the sizes that properties allow."""
        return Bounds(props.get("MinSize", 1), props.get("MaxSize"), props.get("DesiredCapacity"))

    def definition(self, ctx: Context, props: Mapping[str, Value], child: ChildView) -> Definition:
        """Return the definition of the instances.

        Raises:
            ProviderError: the configuration does not exist, or an instance is given as the source.
        """
        if bool(props.get("InstanceId")) == bool(props.get("LaunchConfigurationName")):
            # a reference may evaluate to an empty value
            raise ProviderError(EITHER, kind="StackValidationFailed")
        if props.get("InstanceId"):
            raise ProviderError(
                "InstanceId requires a compute service, and none is available.", kind="NotSupported"
            )
        return super().definition(ctx, props, child)

    def _member_properties(self, ctx: Context, props: Mapping[str, Value]) -> dict[str, Value]:
        zones = props.get("VPCZoneIdentifier")
        return {**super()._member_properties(ctx, props), **({"SubnetId": zones[0]} if zones else {})}


def load_balancer(child: ChildView, name: str) -> JsonObject:
    """Return a load balancer as the instances need it.

    Raises:
        ProviderError: there is no such resource.
    """
    found = child.sibling(name)
    if found is None or found.physical_id is None:
        raise ProviderError(f"LoadBalancerNames ({name}) reference can not be found.", kind="ValueError")
    given = {key: found.properties[key] for key in ("Listeners", "HealthCheck") if found.properties.get(key)}
    return {"Id": found.physical_id, **given}


def has_instances(child: ChildView) -> bool:
    """Return whether the members are instances, which register themselves with load balancers."""
    target = child.environment({}).registry().target("", SCALED)
    return target is not None and target.kind == "type" and target.name in (SCALED, INSTANCE)


def pause_seconds(text: str) -> float:
    """Return the seconds of a duration such as PT5M.

    Raises:
        ProviderError: not a duration, or longer than an hour.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ProviderError(
            "Only ISO 8601 duration format of the form PT#H#M#S is supported.", kind="ValueError"
        )
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    if (total := hours * 3600 + minutes * 60 + seconds) > MAX_PAUSE_SECONDS:
        raise ProviderError("Maximum PauseTime is 1 hour.", kind="ValueError")
    return float(total)
