"""AWS::CloudWatch::Alarm: a threshold alarm of Aodh, OS::Aodh::Alarm."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.aws.mapped_type import MappedType
from orchestrator.resources.base import Context, Fault, Property, Value
from orchestrator.resources.openstack.aodh.alarm import Alarm
from orchestrator.resources.openstack.aodh.alarm_type import named_actions
from orchestrator.schema.constraints import AllowedValues
from orchestrator.schema.properties import convert
from orchestrator.template.definition import ResourceDefinition

COMPARISONS: Final = {
    "GreaterThanOrEqualToThreshold": "ge",
    "GreaterThanThreshold": "gt",
    "LessThanThreshold": "lt",
    "LessThanOrEqualToThreshold": "le",
}
STATISTICS: Final = {
    "SampleCount": "count",
    "Average": "avg",
    "Sum": "sum",
    "Minimum": "min",
    "Maximum": "max",
}
_SIZES: Final = ("Bytes", "Kilobytes", "Megabytes", "Gigabytes", "Terabytes")
_SIZES_IN_BITS: Final = ("Bits", "Kilobits", "Megabits", "Gigabits", "Terabits")
UNITS: Final = (
    *("Seconds", "Microseconds", "Milliseconds"),
    *_SIZES,
    *_SIZES_IN_BITS,
    *("Percent", "Count"),
    *(f"{size}/Second" for size in (*_SIZES, *_SIZES_IN_BITS)),
    *("Count/Second", "None"),
)
# By property: the property of the alarm.
NAMES: Final = {
    "AlarmDescription": "description",
    "MetricName": "meter_name",
    "Period": "period",
    "EvaluationPeriods": "evaluation_periods",
    "Threshold": "threshold",
}
ACTIONS: Final = {
    "AlarmActions": "alarm_actions",
    "OKActions": "ok_actions",
    "InsufficientDataActions": "insufficient_data_actions",
}
MEMBER: Final = re.compile(r"\.member\.(\d+)\.(Name|Value)=(.*)", re.DOTALL)


def _actions(state: str) -> Property:
    return Property("list", f"URLs that are called when the state becomes {state}.", update_allowed=True)


def _text(doc: str, *values: str, default: str | None = None) -> Property:
    constraints = (AllowedValues(values),) if values else ()
    return Property(
        "string",
        doc,
        required=default is None,
        default=default,
        update_allowed=True,
        constraints=constraints,
    )


class CloudWatchAlarm(MappedType):
    """Compares a statistic of a metric with a threshold."""

    name = "AWS::CloudWatch::Alarm"
    service = "aodh"
    endpoint_type = "alarming"
    target_type = Alarm
    properties = {
        "AlarmDescription": _text("Description of the alarm.", default="An alarm"),
        "EvaluationPeriods": _text("Number of periods to evaluate."),
        "MetricName": Property("string", "Name of the meter.", required=True),
        "Namespace": _text("Not used.", default="system/linux"),
        "Period": _text("Length of a period in seconds."),
        "ComparisonOperator": _text("Comparison of the value with the threshold.", *COMPARISONS),
        "Statistic": _text("Statistic of the meter.", *STATISTICS),
        "Threshold": _text("Threshold for the value."),
        "Units": _text("Not used.", *UNITS, default="None"),
        "AlarmActions": _actions("alarm"),
        "OKActions": _actions("ok"),
        "InsufficientDataActions": _actions("insufficient data"),
        "Dimensions": Property(
            "list", "Metadata that the resource must have: maps of Name and Value.", update_allowed=True
        ),
    }
    changes = {
        **{name: (target,) for name, target in {**NAMES, **ACTIONS}.items()},
        "ComparisonOperator": ("comparison_operator",),
        "Statistic": ("statistic",),
        "Dimensions": ("matching_metadata",),
    }

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """Require numbers: templates write them as texts."""
        faults = []
        for own in ("Period", "EvaluationPeriods", "Threshold"):
            if own in properties:
                schema = {own: self.target.properties[NAMES[own]]}
                _, found = convert(schema, {own: properties[own]})
                faults += [Fault(fault.message, own) for fault in found]
        return faults

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
    ) -> Sequence[Fault]:
        """Require URLs as actions, not names of resources."""
        return named_actions(ACTIONS, properties, resources)

    def mapped(self, props: Mapping[str, Value]) -> JsonObject:
        """Return the properties of the alarm."""
        values: JsonObject = {target: props[own] for own, target in NAMES.items() if own in props}
        for own, target in ACTIONS.items():
            if props.get(own):
                values[target] = props[own]
        if props.get("ComparisonOperator"):
            values["comparison_operator"] = COMPARISONS[props["ComparisonOperator"]]
        if props.get("Statistic"):
            values["statistic"] = STATISTICS[props["Statistic"]]
        if props.get("Dimensions"):
            values["matching_metadata"] = dimensions(props["Dimensions"])
        return {**values, "repeat_actions": True}

    def observed_properties(self, ctx: Context, actual: JsonMapping) -> JsonObject:
        """Return the actual values of the given properties."""
        props, wanted = ctx.properties, self.context(ctx).properties
        values: JsonObject = {}
        for own, target in {**NAMES, **ACTIONS}.items():
            if own in props and target in actual:
                same = actual[target] == wanted.get(target)
                values[own] = props[own] if same else _as_written(actual[target])
        for own, target, names in (
            ("ComparisonOperator", "comparison_operator", COMPARISONS),
            ("Statistic", "statistic", STATISTICS),
        ):
            if target in actual:
                values[own] = next((name for name, value in names.items() if value == actual[target]), None)
        if "matching_metadata" in actual:
            metadata = actual["matching_metadata"] or {}
            values["Dimensions"] = [{"Name": key, "Value": value} for key, value in metadata.items()]
        return values

    def suspend(self, ctx: Context, physical_id: str) -> None:
        """Disable the alarm."""
        self.target.suspend(self.context(ctx), physical_id)

    def resume(self, ctx: Context, physical_id: str) -> None:
        """Enable the alarm."""
        self.target.resume(self.context(ctx), physical_id)


def dimensions(given: Sequence[Value]) -> JsonObject:
    """Return dimensions as a map. They are maps of Name and Value, or texts of CloudFormation's query
    interface: `.member.0.Name=a`, `.member.0.Value=b`.
    """
    values: JsonObject = {}
    members: dict[str, dict[str, str]] = {}
    for item in given:
        if isinstance(item, Mapping):
            values[str(item.get("Name", ""))] = item.get("Value", "")
        elif found := MEMBER.fullmatch(str(item)):
            members.setdefault(found[1], {})[found[2]] = found[3]
    return values | {one["Name"]: one.get("Value", "") for one in members.values() if "Name" in one}


def _as_written(value: Value) -> Value:
    """Return a number as the text that a template has."""
    return str(value) if isinstance(value, int | float) else value
