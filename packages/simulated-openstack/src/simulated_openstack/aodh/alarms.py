"""Alarms."""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import urlsplit

from simulated_openstack.aodh.rules import RULES, completed
from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonMapping, JsonObject
from simulated_openstack.service import Call, Service, new_id, precise_timestamp
from simulated_openstack.state import Table

ACTIONS: Final = ("ok_actions", "alarm_actions", "insufficient_data_actions")
SCHEMES: Final = frozenset(
    {"http", "https", "log", "test", "zaqar", "trust+http", "trust+https", "trust+zaqar", "trust+heat"}
)
STATES: Final = ("ok", "alarm", "insufficient data")
SEVERITIES: Final = ("low", "moderate", "critical")
QUERIED: Final = frozenset(
    {"all_projects", "user_id", "project_id", "type", "name", "enabled", "state", "severity"}
)


class Alarms:
    """All alarms. Their state changes by request only."""

    def __init__(self, aodh: Service) -> None:
        """Add the routes."""
        self.table: Table = aodh.cloud.state.table("aodh.alarm", "project_id")
        add = aodh.router.add
        add("GET", "/v2/alarms", self.index)
        add("POST", "/v2/alarms", self.post)
        add("GET", "/v2/alarms/{id_}", self.show)
        add("PUT", "/v2/alarms/{id_}", self.put)
        add("DELETE", "/v2/alarms/{id_}", self.delete)
        add("GET", "/v2/alarms/{id_}/state", self.state)
        add("PUT", "/v2/alarms/{id_}/state", self.set_state)

    def index(self, call: Call) -> Response:
        """List the alarms of the project that the conditions of the query select."""
        query = call.request
        conditions = dict(zip(query.values("q.field"), query.values("q.value"), strict=False))
        if unknown := conditions.keys() - QUERIED:
            raise ApiError(400, f"Invalid input for field/attribute field. Value: '{unknown}'.")
        rows = self.table.where("project_id", conditions.pop("project_id", call.caller.project_id))
        found = [row for row in rows if all(str(row.get(key)) == value for key, value in conditions.items())]
        return Response(200, [_view(row) for row in found])

    def post(self, call: Call) -> Response:
        """Create an alarm."""
        now = precise_timestamp()
        owner = {"project_id": call.caller.project_id, "user_id": call.caller.user_id}
        times = {"timestamp": now, "state_timestamp": now, "state_reason": "Not evaluated yet"}
        row = {"id": new_id(), **_alarm(call.body, call.caller.project_id), **owner, **times}
        return Response(201, _view(self.table.save(row)))

    def show(self, call: Call, id_: str) -> Response:
        """Return an alarm."""
        return Response(200, _view(self._found(call, id_)))

    def put(self, call: Call, id_: str) -> Response:
        """Replace an alarm."""
        row = self._found(call, id_)
        values = _alarm(call.body, row["project_id"])
        if values["state"] != row["state"]:
            values |= {"state_timestamp": precise_timestamp(), "state_reason": "Manually set via API"}
        kept = ("id", "project_id", "user_id", "state_timestamp", "state_reason")
        replaced = {name: row[name] for name in kept} | values | {"timestamp": precise_timestamp()}
        return Response(200, _view(self.table.save(replaced)))

    def delete(self, call: Call, id_: str) -> Response:
        """Delete an alarm."""
        self.table.remove(self._found(call, id_)["id"])
        return Response(204)

    def state(self, call: Call, id_: str) -> Response:
        """Return the state of an alarm."""
        return Response(200, json.dumps(self._found(call, id_)["state"]).encode())

    def set_state(self, call: Call, id_: str) -> Response:
        """Set the state of an alarm."""
        row = self._found(call, id_)
        if call.body not in STATES:
            raise ApiError(400, "state invalid")
        row |= {"state": call.body, "state_reason": "Manually set via API"}
        self.table.save(row)
        return Response(200, json.dumps(call.body).encode())

    def _found(self, call: Call, id_: str) -> JsonObject:
        row = self.table.get(id_)
        if row is None or (row["project_id"] != call.caller.project_id and not call.caller.is_admin):
            raise ApiError(404, f"Alarm {id_} not found")
        return row


def _alarm(body: Any, project_id: str) -> JsonObject:
    """Return the alarm of a request with its defaults.

    Raises:
        ApiError: the alarm is not valid.
    """
    given: JsonMapping = body if isinstance(body, dict) else {}
    for name in ("name", "type"):
        if not given.get(name):
            raise ApiError(
                400, f"Invalid input for field/attribute {name}. Value: 'None'. Mandatory field missing."
            )
    kind = str(given["type"])
    _one_of("type", kind, tuple(sorted(RULES)))
    values = {
        "name": given["name"],
        "type": kind,
        "description": given.get("description") or f"{kind} alarm rule",
        "enabled": given.get("enabled", True),
        "repeat_actions": given.get("repeat_actions", False),
        "severity": given.get("severity") or "low",
        "state": given.get("state") or "insufficient data",
        "time_constraints": [_time_constraint(one) for one in given.get("time_constraints") or ()],
        f"{kind}_rule": completed(kind, given.get(f"{kind}_rule"), project_id),
    }
    _one_of("severity", values["severity"], SEVERITIES)
    _one_of("state", values["state"], STATES)
    for name in ACTIONS:
        values[name] = list(dict.fromkeys(given.get(name) or ()))
        for action in values[name]:
            if urlsplit(action).scheme not in SCHEMES:
                raise ApiError(400, f"Unsupported action {action}")
    return values


def _time_constraint(given: JsonMapping) -> JsonObject:
    default = f"Time constraint at {given.get('start')} lasting for {given.get('duration')} seconds"
    return {"timezone": "", **given, "description": given.get("description") or default}


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ApiError(
            400,
            f"Invalid input for field/attribute {name}. Value: '{value}'. Value should be one of:"
            f" {', '.join(allowed)}",
        )


def _view(row: JsonObject) -> JsonObject:
    return {"alarm_id" if name == "id" else name: value for name, value in row.items()}
