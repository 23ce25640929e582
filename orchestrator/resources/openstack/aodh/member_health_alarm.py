"""OS::Aodh::LBMemberHealthAlarm."""

from __future__ import annotations

from orchestrator.resources.base import Property
from orchestrator.resources.openstack.aodh.alarm_properties import COMMON
from orchestrator.resources.openstack.aodh.alarm_type import AlarmType
from orchestrator.schema.translation import Resolve


class LBMemberHealthAlarm(AlarmType):
    """An alarm for members of a pool of a load balancer whose operating status is ERROR."""

    name = "OS::Aodh::LBMemberHealthAlarm"
    support_version = "13.0.0"
    alarm_type = "loadbalancer_member_health"
    rule_properties = ("pool", "stack", "autoscaling_group_id")
    fields = {"pool": "pool_id", "stack": "stack_id"}
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
