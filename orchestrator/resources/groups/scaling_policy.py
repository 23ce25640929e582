"""OS::Heat::ScalingPolicy and AWS::AutoScaling::ScalingPolicy: a signal resizes a group
(docs/internals/resource-types.md §A6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from orchestrator.errors import ProviderError
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import (
    Attribute,
    Context,
    Created,
    Fault,
    Grant,
    Observation,
    Property,
    Resize,
    ResourceType,
    Signalled,
    Value,
)
from orchestrator.resources.ec2_signatures import access_key, new_secret, signal_url
from orchestrator.resources.groups.capacity import CFN_ADJUSTMENTS
from orchestrator.schema.constraints import AllowedValues, Range

PERCENT: Final = "percent_change_in_capacity"
REMOVE: Final = "remove_members"  # in a signal: members to remove, in place of the policy's adjustment


class ScalingPolicy(ResourceType):
    """The effect of a signal on the size of a group."""

    name = "OS::Heat::ScalingPolicy"
    calls_out = False
    support_version = "2014.1"
    properties = {
        "auto_scaling_group_id": Property("string", "The group, by reference.", required=True),
        "scaling_adjustment": Property(
            "number", "Amount of the change, or the new size.", required=True, update_allowed=True
        ),
        "adjustment_type": Property(
            "string",
            "Type of the adjustment: a change, a size, or a change in percent.",
            required=True,
            update_allowed=True,
            constraints=(AllowedValues(("change_in_capacity", "exact_capacity", PERCENT)),),
        ),
        "cooldown": Property("number", "Cooldown of the group, in seconds.", update_allowed=True),
        "min_adjustment_step": Property(
            "integer",
            "Minimum number of members to add or remove; only for a change in percent.",
            update_allowed=True,
            constraints=(Range(min=0),),
        ),
    }
    attributes = {
        "alarm_url": Attribute("The signed URL for signals.", "string", secret=True),
        "signal_url": Attribute("The URL for signals with a token.", "string"),
    }
    # Property names: group, amount, adjustment type, cooldown, step.
    property_names: tuple[str, ...] = (
        "auto_scaling_group_id",
        "scaling_adjustment",
        "adjustment_type",
        "cooldown",
        "min_adjustment_step",
    )
    percent: str = PERCENT

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """A least step is for percentages."""
        _, _, adjustment_type, _, step = self.property_names
        if properties.get(step) is None or properties.get(adjustment_type) in (None, self.percent):
            return ()
        return (
            Fault(
                f"{step} property should only be specified for {adjustment_type} with value {self.percent}."
            ),
        )

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Create a signing key for signals."""
        key, secret = access_key(ctx.token), new_secret()
        url = signal_url(ctx.location, key, secret)  # the URL never expires
        return Created(ctx.physical_name, {"url": url}, secret=True, access=Grant(key, secret))

    def find(self, ctx: Context, token: str) -> str | None:
        """Return None: the resource exists only as our own row."""
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """It is there until it is deleted."""
        if ctx.action == "DELETE":
            return Observation(exists=False)
        urls = (ctx.data.get("url"), ctx.location.signal_address)
        return Observation(exists=True, attributes=dict(zip(self.attributes, urls, strict=False)))

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Nothing to request: the next signal uses the new properties."""
        return Created(physical_id, data=ctx.data)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Nothing to delete."""

    def signal(self, ctx: Context, physical_id: str, details: Value) -> Signalled:
        """Request the resize of the group, for any alarm state.

        Raises:
            ProviderError: `remove_members` is not a list of names.
        """
        group, amount, adjustment_type, cooldown, step = (
            ctx.properties.get(name) for name in self.property_names
        )
        request: JsonObject = {
            "amount": amount,
            "adjustment_type": CFN_ADJUSTMENTS.get(str(adjustment_type), adjustment_type),
            "min_step": step,
            "cooldown": cooldown,
            "type_label": adjustment_type,
        }
        remove = details.get(REMOVE) if isinstance(details, Mapping) else None
        if remove is not None:
            if (
                not isinstance(remove, list)
                or not remove
                or not all(isinstance(item, str) for item in remove)
            ):
                raise ProviderError(f"{REMOVE} must be a list of names or ids", kind="ValueError")
            request["remove"] = remove
        return Signalled(resize=Resize(str(group), request))


class AwsScalingPolicy(ScalingPolicy):
    """A scaling policy with CloudFormation's property names."""

    name = "AWS::AutoScaling::ScalingPolicy"
    properties = {
        "AutoScalingGroupName": Property("string", "The group, by reference.", required=True),
        "ScalingAdjustment": Property(
            "integer", "Amount of the change, or the new size.", required=True, update_allowed=True
        ),
        "AdjustmentType": Property(
            "string",
            "Type of the adjustment: a change, a size, or a change in percent.",
            required=True,
            update_allowed=True,
            constraints=(AllowedValues(tuple(CFN_ADJUSTMENTS)),),
        ),
        "Cooldown": Property("integer", "Cooldown of the group, in seconds.", update_allowed=True),
        "MinAdjustmentStep": Property(
            "integer",
            "Minimum number of members to add or remove; only for a change in percent.",
            update_allowed=True,
            constraints=(Range(min=0),),
        ),
    }
    attributes = {"AlarmUrl": Attribute("The signed URL for signals.", "string", secret=True)}
    property_names = (
        "AutoScalingGroupName",
        "ScalingAdjustment",
        "AdjustmentType",
        "Cooldown",
        "MinAdjustmentStep",
    )
    percent = "PercentChangeInCapacity"

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """It is there until it is deleted; its reference id is the URL, for the actions of alarms."""
        return replace(super().observe(ctx, physical_id), reference_id=ctx.data.get("url"))
