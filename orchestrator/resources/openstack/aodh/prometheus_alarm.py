"""OS::Aodh::PrometheusAlarm."""

from __future__ import annotations

from orchestrator.resources.base import Property
from orchestrator.resources.openstack.aodh.alarm_properties import COMMON, COMPARISON, THRESHOLD
from orchestrator.resources.openstack.aodh.alarm_type import AlarmType


class PrometheusAlarm(AlarmType):
    """Compares the result of a query to Prometheus with a threshold."""

    name = "OS::Aodh::PrometheusAlarm"
    support_version = "22.0.0"
    alarm_type = "prometheus"
    rule_properties = ("comparison_operator", "query", "threshold")
    properties = {
        "comparison_operator": COMPARISON,
        "query": Property("string", "Query in PromQL.", required=True, update_allowed=True),
        "threshold": THRESHOLD,
        **COMMON,
    }
