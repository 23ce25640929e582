"""OS::Aodh::CompositeAlarm."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Property, Value
from orchestrator.resources.openstack.aodh.alarm_properties import COMMON
from orchestrator.resources.openstack.aodh.alarm_type import AlarmType, covers
from orchestrator.schema.constraints import AllowedValues, Length

_RULE = {
    "operator": Property(
        "string",
        "Combination of the rules.",
        required=True,
        update_allowed=True,
        constraints=(AllowedValues(("or", "and")),),
    ),
    "rules": Property(
        "list",
        "Rules with a `type`, and maps of `and` or `or` with a list of rules.",
        required=True,
        update_allowed=True,
        constraints=(Length(min=2),),
    ),
}


class CompositeAlarm(AlarmType):
    """A combination of several rules."""

    name = "OS::Aodh::CompositeAlarm"
    support_version = "8.0.0"
    alarm_type = "composite"
    properties = {
        "composite_rule": Property(
            "map", "The combined rules.", required=True, update_allowed=True, schema=_RULE
        ),
        **COMMON,
    }

    def rule(self, props: Mapping[str, Value]) -> JsonObject:
        """Return the rules under their operator."""
        given = props.get("composite_rule") or {}
        return {given["operator"]: given["rules"]} if given else {}

    def observed_rule(self, props: Mapping[str, Value], rule: JsonMapping) -> JsonObject:
        """Return the actual rules; Aodh adds defaults to them."""
        if not props.get("composite_rule"):
            return {}
        if covers(rule, self.rule(props)):
            return {"composite_rule": props["composite_rule"]}
        operator, rules = next(iter(rule.items()), ("", []))
        return {"composite_rule": {"operator": operator, "rules": rules}}
