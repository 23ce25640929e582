"""Changes that the name servers carry out after a while."""

from __future__ import annotations

from simulated_openstack.environment import Environment
from simulated_openstack.json_types import JsonObject
from simulated_openstack.service import precise_timestamp
from simulated_openstack.state import Table


class Changes:
    """Pending changes of the rows of a table. The fault of the same name as the kind lets them fail."""

    def __init__(self, cloud: Environment, kind: str, table: Table) -> None:
        """Register the change."""
        self.cloud, self.kind, self.table = cloud, kind, table
        cloud.schedule.register(f"designate.{kind}", self._done)

    def begin(self, row: JsonObject, action: str) -> JsonObject:
        """Save a row whose change is pending."""
        row |= {"status": "PENDING", "action": action, "updated_at": precise_timestamp()}
        fault = self.cloud.faults.action(self.kind, row["name"])
        seconds = self.cloud.delays.dns + fault.delay
        self.cloud.schedule.after(seconds, f"designate.{self.kind}", row["id"], action, bool(fault.error))
        return self.table.save(row)

    def _done(self, id_: str, action: str, failed: bool) -> None:
        row = self.table.get(id_)
        if row is None or row["action"] != action:
            return
        if failed:
            self.table.save(row | {"status": "ERROR"})
        elif action == "DELETE":
            self.table.remove(id_)
        else:
            self.table.save(row | {"status": "ACTIVE", "action": "NONE"})
