"""OS::Heat::AutoScalingGroup: a group of equal resources, resized by scaling policies
(docs/internals/resource-types.md §A6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Attribute, Context, Fault, Property, Value
from orchestrator.resources.groups.adjustments import Bounds
from orchestrator.resources.groups.group_type import require_known
from orchestrator.resources.groups.rolling_update import Policy
from orchestrator.resources.groups.scaling_group import ScalingGroup
from orchestrator.resources.nested_type import ChildView, Member
from orchestrator.schema.constraints import Range
from orchestrator.template.group_template import KEYS, Definition

BATCHES = {
    "min_in_service": Property(
        "integer",
        "Minimum number of members in service during a batch.",
        default=0,
        constraints=(Range(min=0),),
    ),
    "max_batch_size": Property(
        "integer", "Maximum number of members per batch.", default=1, constraints=(Range(min=1),)
    ),
    "pause_time": Property(
        "number", "Seconds to wait between batches.", default=0, constraints=(Range(min=0),)
    ),
}


class AutoScalingGroup(ScalingGroup):
    """A group of equal resources that scaling policies resize."""

    name = "OS::Heat::AutoScalingGroup"
    support_version = "2014.1"
    definition_properties = ("resource",)
    properties = {
        "resource": Property(
            "map",
            "The definition of the members, in the form of a resource in a template.",
            required=True,
            update_allowed=True,
        ),
        "max_size": Property(
            "integer",
            "Maximum number of members.",
            required=True,
            update_allowed=True,
            constraints=(Range(min=0),),
        ),
        "min_size": Property(
            "integer",
            "Minimum number of members.",
            required=True,
            update_allowed=True,
            constraints=(Range(min=0),),
        ),
        "cooldown": Property("integer", "Cooldown after scaling, in seconds.", update_allowed=True),
        "desired_capacity": Property("integer", "Initial number of members.", update_allowed=True),
        "rolling_updates": Property(
            "map",
            "Batches for applying a new definition.",
            default={"min_in_service": 0, "max_batch_size": 1, "pause_time": 0},
            update_allowed=True,
            schema=BATCHES,
        ),
    }
    attributes = {
        "outputs": Attribute("The attribute given by the path, by member name.", "map"),
        "outputs_list": Attribute(
            "The attribute given by the path, as a list with an item per member.", "list"
        ),
        "current_size": Attribute("Current number of members.", "integer"),
        "refs": Attribute("The reference ids of the members.", "list"),
        "refs_map": Attribute("The reference ids of the members by their names.", "map"),
    }

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """The sizes must fit together, and there must be a type."""
        return [*sizes(properties, "min_size", "max_size", "desired_capacity"), *_shape(properties)]

    def bounds(self, props: Mapping[str, Value]) -> Bounds:
        """Return the sizes that properties allow."""
        return Bounds(props.get("min_size", 1), props.get("max_size"), props.get("desired_capacity"))

    def definition(self, ctx: Context, props: Mapping[str, Value], child: ChildView) -> Definition:
        """Return the definition of the members.

        Raises:
            ProviderError: the definition is not known.
        """
        return require_known(self.planned_definition(props))

    def planned_definition(self, props: Mapping[str, Value]) -> Definition:
        """Return the same."""
        resource = props.get("resource")
        resource = resource if isinstance(resource, Mapping) else {}
        body: JsonObject = {key: resource[key] for key in KEYS if resource.get(key) is not None}
        type_name = resource.get("type")
        return Definition(type_name if isinstance(type_name, str) else "", body)

    def rolling(self, ctx: Context, props: Mapping[str, Value]) -> Policy | None:
        """Return the batches of the property, which has a default."""
        policy = props.get("rolling_updates") or self.properties["rolling_updates"].default_value
        return Policy(policy["max_batch_size"], policy["min_in_service"], float(policy["pause_time"]))

    def attribute(self, ctx: Context, members: Sequence[Member], name: str) -> Value:
        """Return an attribute of the group."""
        if name == "current_size":  # after a direct update of the child stack
            return len(members)
        return super().attribute(ctx, members, name)

    def member_named(self, members: Sequence[Member], key: str) -> Member | None:
        """Return the member at a place, the oldest first."""
        return members[int(key)] if key.isdecimal() and int(key) < len(members) else None


def sizes(properties: Mapping[str, Value], least: str, most: str, desired: str) -> list[Fault]:
    """Return faults in a group's sizes, with Heat's messages."""
    low, high, size = properties.get(least), properties.get(most), properties.get(desired)
    faults = []
    if low is not None and high is not None and high < low:
        faults.append(Fault("MinSize can not be greater than MaxSize"))
    if low is not None and low < 0:
        faults.append(Fault("The size of AutoScalingGroup can not be less than zero"))
    if size is not None and ((low is not None and size < low) or (high is not None and size > high)):
        faults.append(Fault("DesiredCapacity must be between MinSize and MaxSize"))
    return faults


def _shape(properties: Mapping[str, Value]) -> list[Fault]:
    """Return faults in a member's definition, with the messages for resources."""
    resource = properties.get("resource")
    if resource is None:
        return []
    faults = []
    type_name = resource.get("type")
    if type_name is None:
        faults.append(Fault("Each resource must contain a type key.", "resource"))
    elif not isinstance(type_name, str):
        faults.append(Fault("Resource member type type must be string", "resource"))
    allowed = {"type", "depends_on", "description", "condition", *KEYS}
    faults += [
        Fault(f'"{key}" is not a valid keyword inside a resource definition', "resource")
        for key in resource
        if key not in allowed
    ]
    faults += [
        Fault(f"Resource member {key} type must be object", "resource")
        for key in ("properties", "metadata", "update_policy")
        if resource.get(key) is not None and not isinstance(resource[key], Mapping)
    ]
    return faults
