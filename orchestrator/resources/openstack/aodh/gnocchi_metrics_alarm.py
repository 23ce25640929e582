"""OS::Aodh::GnocchiAggregationByMetricsAlarm."""

from __future__ import annotations

from orchestrator.resources.base import Property
from orchestrator.resources.openstack.aodh.alarm_properties import COMMON, GNOCCHI
from orchestrator.resources.openstack.aodh.alarm_type import AlarmType


class GnocchiAggregationByMetricsAlarm(AlarmType):
    """Compares an aggregate of several metrics with a threshold."""

    name = "OS::Aodh::GnocchiAggregationByMetricsAlarm"
    support_version = "2015.1"
    alarm_type = "gnocchi_aggregation_by_metrics_threshold"
    rule_properties = ("metrics", *GNOCCHI)
    properties = {
        "metrics": Property("list", "Ids of the metrics.", required=True, update_allowed=True),
        **GNOCCHI,
        **COMMON,
    }
