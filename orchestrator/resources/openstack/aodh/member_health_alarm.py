"""OS::Aodh::LBMemberHealthAlarm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Property, Value
from orchestrator.resources.openstack.aodh.alarm_properties import COMMON
from orchestrator.resources.openstack.aodh.alarm_type import AlarmType
from orchestrator.schema.translation import Resolve

# By property, the part of the rule.
RULE: Final = {"pool": "pool_id", "stack": "stack_id", "autoscaling_group_id": "autoscaling_group_id"}


class LBMemberHealthAlarm(AlarmType):
    """An alarm for members of a pool of a load balancer whose operating status is ERROR."""

    name = "OS::Aodh::LBMemberHealthAlarm"
    support_version = "13.0.0"
    alarm_type = "loadbalancer_member_health"
    properties = {
        "pool": Property("string", "Name or id of the pool.", required=True, update_allowed=True),
        "stack": Property(
            "string",
            "Name or id of the root stack with the pool and its members. It is updated when a member fails.",
            required=True,
        ),
        "autoscaling_group_id": Property(
            "string",
            "Id of the group with the members; failed members are marked unhealthy.",
            required=True,
            update_allowed=True,
        ),
        **COMMON,
    }
    translation = (Resolve(("pool",), "octavia.pool"),)

    def rule(self, props: Mapping[str, Value]) -> JsonObject:
        """Return the rule."""
        return {part: props[name] for name, part in RULE.items() if props.get(name) is not None}

    def observed_rule(self, props: Mapping[str, Value], rule: JsonMapping) -> JsonObject:
        """Return the actual values."""
        return {name: rule.get(part) for name, part in RULE.items() if name in props}
