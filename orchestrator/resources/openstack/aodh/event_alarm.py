"""OS::Aodh::EventAlarm."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Property, Value
from orchestrator.resources.openstack.aodh.alarm_properties import COMMON, QUERY
from orchestrator.resources.openstack.aodh.alarm_type import AlarmType
from orchestrator.resources.openstack.collection_type import Field


def conditions(query: list[Mapping[str, Value]]) -> list[JsonObject]:
    """Return the given members of conditions."""
    return [{key: value for key, value in one.items() if value is not None} for one in query]


class EventAlarm(AlarmType):
    """An alarm for events of other services, such as `compute.instance.reboot.end`."""

    name = "OS::Aodh::EventAlarm"
    support_version = "8.0.0"
    alarm_type = "event"
    rule_properties = ("event_type", "query")
    fields = {"query": Field(to_api=lambda query: conditions(query) or None)}
    properties = {
        "event_type": Property("string", "Type of the events.", default="*", update_allowed=True),
        "query": QUERY,
        **COMMON,
    }
