"""OS::Aodh::GnocchiResourcesAlarm."""

from __future__ import annotations

from orchestrator.resources.base import Property
from orchestrator.resources.openstack.aodh.alarm_properties import COMMON, GNOCCHI, METRIC, RESOURCE_TYPE
from orchestrator.resources.openstack.aodh.alarm_type import AlarmType


class GnocchiResourcesAlarm(AlarmType):
    """Compares a metric of a resource with a threshold."""

    name = "OS::Aodh::GnocchiResourcesAlarm"
    support_version = "2015.1"
    alarm_type = "gnocchi_resources_threshold"
    rule_properties = ("metric", "resource_id", "resource_type", *GNOCCHI)
    properties = {
        "metric": METRIC,
        "resource_id": Property("string", "Id of the resource.", required=True, update_allowed=True),
        "resource_type": RESOURCE_TYPE,
        **GNOCCHI,
        **COMMON,
    }
