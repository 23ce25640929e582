"""Rules of alarms: their required parts and defaults."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

from simulated_openstack.http import ApiError
from simulated_openstack.json_types import JsonMapping, JsonObject

OPERATORS: Final = ("lt", "le", "eq", "ne", "ge", "gt")
NUMBERS: Final = frozenset({"threshold"})


@dataclass(frozen=True)
class Rule:
    """The parts of a rule."""

    required: tuple[str, ...] = ()
    defaults: JsonMapping = field(default_factory=dict)


_COMPARED: Final = {"comparison_operator": "eq"}
_MEASURED: Final = {**_COMPARED, "evaluation_periods": 1, "granularity": 60}
RULES: Final[dict[str, Rule]] = {
    "gnocchi_resources_threshold": Rule(
        ("threshold", "aggregation_method", "metric", "resource_id", "resource_type"), _MEASURED
    ),
    "gnocchi_aggregation_by_metrics_threshold": Rule(
        ("threshold", "aggregation_method", "metrics"), _MEASURED
    ),
    "gnocchi_aggregation_by_resources_threshold": Rule(
        ("threshold", "aggregation_method", "metric", "query", "resource_type"), _MEASURED
    ),
    "event": Rule((), {"event_type": "*", "query": []}),
    "composite": Rule(),
    "loadbalancer_member_health": Rule(("pool_id", "stack_id", "autoscaling_group_id")),
    "prometheus": Rule(("threshold", "query"), _COMPARED),
    # Removed from Aodh in Queens; templates still have it.
    "threshold": Rule(
        ("meter_name", "threshold"),
        {**_COMPARED, "evaluation_periods": 1, "period": 60, "statistic": "avg", "query": []},
    ),
}


def completed(kind: str, given: Any, project_id: str) -> JsonObject:
    """Return a rule with its defaults.

    Raises:
        ApiError: the rule is not valid.
    """
    if not isinstance(given, dict):
        raise ApiError(400, f"{kind}_rule must be set for {kind} type alarm")
    if kind == "composite":
        return _combined(given)
    rule = RULES[kind]
    for name in rule.required:
        if given.get(name) is None:
            raise ApiError(
                400, f"Invalid input for field/attribute {name}. Value: 'None'. Mandatory field missing."
            )
    values = {**rule.defaults, **{name: value for name, value in given.items() if value is not None}}
    _check(values)
    if kind == "gnocchi_aggregation_by_resources_threshold":
        values["query"] = _restricted(values["query"], project_id)
    return values


def _check(values: JsonObject) -> None:
    for name in NUMBERS & values.keys():
        values[name] = float(values[name])
    operator = values.get("comparison_operator", "eq")
    if operator not in OPERATORS:
        raise ApiError(
            400,
            f"Invalid input for field/attribute comparison_operator. Value: '{operator}'. Value should be one"
            f" of: {', '.join(OPERATORS)}",
        )


def _restricted(query: str, project_id: str) -> str:
    """Return a query for resources of a project."""
    try:
        parsed = json.loads(query)
    except ValueError:
        raise ApiError(400, f"Invalid input for field/attribute rule/query. Value: '{query}'. ") from None
    return json.dumps({"and": [{"=": {"created_by_project_id": project_id}}, parsed]})


def _combined(given: JsonObject) -> JsonObject:
    """Return combined rules with their defaults."""
    if len(given) == 1:
        operator, rules = next(iter(given.items()))
        if operator not in ("and", "or"):
            raise ApiError(400, 'Threshold rules should be combined with "and" or "or"')
        if not isinstance(rules, list):
            raise ApiError(400, f"Invalid input composite rule: {given}")
        return {operator: [_combined(rule) for rule in rules]}
    kind = given.get("type")
    if not kind:
        raise ApiError(400, "type must be set in every rule")
    if kind not in RULES or kind in ("event", "composite", "loadbalancer_member_health"):
        raise ApiError(400, f"Unsupported sub-rule type :{kind} in composite rule")
    values = {name: value for name, value in given.items() if name != "type"}
    return {**completed(kind, values, ""), "type": kind}
