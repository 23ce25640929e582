"""Aodh's API: alarms."""

from __future__ import annotations

from typing import ClassVar

from orchestrator.clients.openstack.service_api import ServiceApi
from orchestrator.json_types import JsonMapping, JsonObject


class Alarming(ServiceApi):
    """Aodh, called as a credential."""

    service: ClassVar[str] = "aodh"
    service_type: ClassVar[str] = "alarm"

    def create_alarm(self, alarm: JsonMapping) -> JsonObject:
        """Create an alarm."""
        return self.post("/alarms", alarm)

    def alarm(self, alarm_id: str) -> JsonObject | None:
        """Return an alarm, None if it does not exist."""
        return self.find_one(f"/alarms/{alarm_id}")

    def alarm_ids_named(self, name: str) -> list[str]:
        """Return the alarms of the project with a name. The answer is a list, not an object."""
        query = {"q.field": "name", "q.op": "eq", "q.value": name}
        listed = self.exchange("GET", "/alarms", query=query).json()
        return [alarm["alarm_id"] for alarm in listed or ()]

    def replace_alarm(self, alarm_id: str, alarm: JsonMapping) -> JsonObject:
        """Replace an alarm: omitted fields receive their defaults."""
        return self.put(f"/alarms/{alarm_id}", alarm)

    def delete_alarm(self, alarm_id: str) -> bool:
        """Delete an alarm. Return whether it existed."""
        return self.delete(f"/alarms/{alarm_id}")
