"""OS::Aodh::GnocchiAggregationByResourcesAlarm."""

from __future__ import annotations

import json
from typing import Any

from orchestrator.resources.base import Property
from orchestrator.resources.openstack.aodh.alarm_properties import COMMON, GNOCCHI, METRIC, RESOURCE_TYPE
from orchestrator.resources.openstack.aodh.alarm_type import AlarmType
from orchestrator.resources.openstack.collection_type import Field


def _restricts(desired: Any, actual: Any) -> bool:
    """Return whether a query is the desired query, alone or after the restriction to a project that Aodh
    adds.
    """
    found, wanted = _parsed(actual), _parsed(desired)
    parts = found.get("and") if isinstance(found, dict) and len(found) == 1 else None
    return bool(found == wanted or (isinstance(parts, list) and len(parts) == 2 and parts[1] == wanted))


def _parsed(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return text


class GnocchiAggregationByResourcesAlarm(AlarmType):
    """Compares an aggregate of a metric of all resources that a query selects with a threshold."""

    name = "OS::Aodh::GnocchiAggregationByResourcesAlarm"
    support_version = "2015.1"
    alarm_type = "gnocchi_aggregation_by_resources_threshold"
    rule_properties = ("metric", "query", "resource_type", *GNOCCHI)
    fields = {"query": Field(satisfies=_restricts)}
    properties = {
        "metric": METRIC,
        "query": Property(
            "string", "The query that selects the resources, as JSON.", required=True, update_allowed=True
        ),
        "resource_type": RESOURCE_TYPE,
        **GNOCCHI,
        **COMMON,
    }
