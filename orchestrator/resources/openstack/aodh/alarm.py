"""OS::Aodh::Alarm: a threshold for a meter of Ceilometer.

Aodh removed these alarms in Queens (2018): later releases refuse them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Property, Value
from orchestrator.resources.openstack.aodh.alarm_properties import (
    COMMON,
    COMPARISON,
    PERIODS,
    QUERY,
    THRESHOLD,
)
from orchestrator.resources.openstack.aodh.alarm_type import AlarmType
from orchestrator.resources.openstack.aodh.event_alarm import conditions
from orchestrator.schema.constraints import AllowedValues

_DISK: Final = [
    f"{way}.{unit}{rate}"
    for way in ("read", "write")
    for unit in ("requests", "bytes")
    for rate in ("", ".rate")
]
_NETWORK: Final = [
    f"{way}.{unit}{rate}"
    for way in ("incoming", "outgoing")
    for unit in ("bytes", "packets")
    for rate in ("", ".rate")
]
# Meters of instances: their metadata have their own name.
INSTANCE_METERS: Final = frozenset(
    {"instance", "memory", "memory.usage", "memory.resident", "cpu", "cpu_util", "vcpus"}
    | {"disk.root.size", "disk.ephemeral.size"}
    | {f"disk.{name}" for name in _DISK}
    | {f"disk.device.{name}" for name in _DISK}
    | {f"network.{name}" for name in _NETWORK}
)
RULE: Final = ("comparison_operator", "evaluation_periods", "meter_name", "period", "statistic", "threshold")
PREFIXES: Final = ("metering.", "user_metadata.")


class Alarm(AlarmType):
    """Compares a statistic of a meter with a threshold."""

    name = "OS::Aodh::Alarm"
    support_status = "DEPRECATED"
    support_version = "10.0.0"
    support_message = (
        "Theshold alarm relies on ceilometer-api and has been deprecated in aodh since Ocata. "
        "Use OS::Aodh::GnocchiAggregationByResourcesAlarm instead."
    )
    alarm_type = "threshold"
    rule_properties = RULE
    properties = {
        "comparison_operator": COMPARISON,
        "evaluation_periods": PERIODS,
        "meter_name": Property("string", "Name of the meter.", required=True),
        "period": Property("integer", "Length of a period in seconds.", update_allowed=True),
        "statistic": Property(
            "string",
            "Statistic of the meter.",
            update_allowed=True,
            constraints=(AllowedValues(("count", "avg", "sum", "min", "max")),),
        ),
        "threshold": THRESHOLD,
        "matching_metadata": Property(
            "map", "Metadata that the resource must have.", default={}, update_allowed=True
        ),
        "query": QUERY,
        **COMMON,
    }

    def rule(self, props: Mapping[str, Value]) -> JsonObject:
        """Return the rule; the metadata are conditions of its query."""
        query = [*conditions(props.get("query") or []), *_metadata_conditions(props)]
        return super().rule(props) | ({"query": query} if query else {})

    def observed_rule(self, props: Mapping[str, Value], rule: JsonMapping) -> JsonObject:
        """Return the actual values. Metadata and query are compared together."""
        values = super().observed_rule(props, rule)
        given, own = rule.get("query") or [], _metadata_conditions(props)
        found = [_comparable(one) for one in given]
        if found != [_comparable(one) for one in self.rule(props).get("query", [])]:
            fields = {one["field"] for one in own}
            values["query"] = [one for one in given if one.get("field") not in fields]
            present = {one.get("field"): one.get("value") for one in given}
            metadata = props.get("matching_metadata") or {}
            pairs = zip(metadata.items(), own, strict=True)
            values["matching_metadata"] = {
                key: value if present[one["field"]] == one["value"] else present[one["field"]]
                for (key, value), one in pairs
                if one["field"] in present
            }
        return values


def _comparable(condition: JsonMapping) -> tuple[Value, ...]:
    """Return a condition with its defaults."""
    return (condition.get("field"), condition.get("op") or "eq", condition.get("value"))


def _metadata_conditions(props: Mapping[str, Value]) -> list[JsonObject]:
    prefix = "user_metadata." if props.get("meter_name") in INSTANCE_METERS else "metering."
    return [
        {"field": f"metadata.{prefix}{_plain(key)}", "op": "eq", "value": str(value)}
        for key, value in (props.get("matching_metadata") or {}).items()
    ]


def _plain(key: str) -> str:
    """Return the key of metadata without the prefixes that templates write."""
    key = key.removeprefix("metadata.")
    return key.partition(".")[2] if key.startswith(PREFIXES) else key
