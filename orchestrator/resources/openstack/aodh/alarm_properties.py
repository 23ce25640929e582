"""Properties that several types of alarms have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestrator.resources.base import Property
from orchestrator.schema.constraints import AllowedValues, Custom, Range

OPERATOR: Final = AllowedValues(("le", "ge", "eq", "lt", "gt", "ne"))
VALUE_TYPES: Final = AllowedValues(("integer", "float", "string", "boolean", "datetime"))
# By property with URLs, the property with queues of Zaqar whose URLs are added to it.
ACTIONS: Final[Mapping[str, str]] = {
    "alarm_actions": "alarm_queues",
    "ok_actions": "ok_queues",
    "insufficient_data_actions": "insufficient_data_queues",
}


def _urls(state: str) -> Property:
    return Property(
        "list",
        f"URLs that Aodh calls when the state becomes {state}, such as the alarm_url of a scaling policy.",
        update_allowed=True,
    )


def _queues(state: str) -> Property:
    return Property(
        "list",
        f"Queues of Zaqar that receive a message when the state becomes {state}.",
        default=[],
        update_allowed=True,
        schema=Property("string", "Name of the queue.", constraints=(Custom("zaqar.queue"),)),
    )


_TIME_CONSTRAINT: Final = {
    "name": Property("string", "Name of the time constraint.", required=True),
    "start": Property(
        "string",
        "Start times, as a cron expression.",
        required=True,
        constraints=(Custom("cron_expression"),),
    ),
    "description": Property("string", "Description of the time constraint."),
    "duration": Property("integer", "Duration in seconds.", required=True, constraints=(Range(0),)),
    "timezone": Property(
        "string", "Time zone of the start times: Europe/Ljubljana.", constraints=(Custom("timezone"),)
    ),
}

COMMON: Final[Mapping[str, Property]] = {
    "description": Property("string", "Description of the alarm.", update_allowed=True),
    "enabled": Property("boolean", "Whether Aodh evaluates the alarm.", default=True, update_allowed=True),
    "alarm_actions": _urls("alarm"),
    "ok_actions": _urls("ok"),
    "insufficient_data_actions": _urls("insufficient data"),
    "alarm_queues": _queues("alarm"),
    "ok_queues": _queues("ok"),
    "insufficient_data_queues": _queues("insufficient data"),
    "repeat_actions": Property(
        "boolean",
        "Whether the actions are repeated at each evaluation, or occur only when the state changes.",
        default=True,
        update_allowed=True,
    ),
    "severity": Property(
        "string",
        "Severity of the alarm.",
        default="low",
        update_allowed=True,
        constraints=(AllowedValues(("low", "moderate", "critical")),),
    ),
    "time_constraints": Property(
        "list",
        "Times at which the alarm is evaluated; at other times it is not. Default: always.",
        default=[],
        schema=Property("map", "A time constraint.", schema=_TIME_CONSTRAINT),
    ),
}

COMPARISON: Final = Property(
    "string", "Comparison of the value with the threshold.", update_allowed=True, constraints=(OPERATOR,)
)
THRESHOLD: Final = Property("number", "Threshold for the value.", required=True, update_allowed=True)
PERIODS: Final = Property("integer", "Number of periods to evaluate.", update_allowed=True)

# A metric of Gnocchi, compared with a threshold.
GNOCCHI: Final[Mapping[str, Property]] = {
    "comparison_operator": COMPARISON,
    "evaluation_periods": PERIODS,
    "aggregation_method": Property(
        "string", "Aggregation of the measures: mean, max, rate:mean.", update_allowed=True
    ),
    "granularity": Property("integer", "Length of a period in seconds.", update_allowed=True),
    "threshold": THRESHOLD,
}
METRIC: Final = Property("string", "Name of the metric.", required=True, update_allowed=True)
RESOURCE_TYPE: Final = Property(
    "string", "Type of the resource in Gnocchi.", required=True, update_allowed=True
)

QUERY: Final = Property(
    "list",
    "Conditions that must all be met.",
    update_allowed=True,
    schema=Property(
        "map",
        "A condition.",
        schema={
            "field": Property("string", "Name of the compared attribute."),
            "type": Property(
                "string", "Type of the attribute.", default="string", constraints=(VALUE_TYPES,)
            ),
            "op": Property("string", "Comparison.", constraints=(OPERATOR,)),
            "value": Property("string", "Value to compare with."),
        },
    ),
)
