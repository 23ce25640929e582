"""Aodh's API: alarms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

from orchestrator.clients.openstack.object_collections import Collection, Collections
from orchestrator.json_types import JsonObject

ALARMS: Final = Collection("/alarms", "", "", id_key="alarm_id")


class Alarming(Collections):
    """Aodh, called as a credential. An update replaces an alarm: omitted fields receive their defaults."""

    service: ClassVar[str] = "aodh"
    service_type: ClassVar[str] = "alarm"

    def search(
        self,
        collection: Collection,
        *,
        parent: str = "",
        fields: Sequence[str] = (),  # noqa: ARG002 - of neutron
        **filters: Any,
    ) -> Iterator[JsonObject]:
        """Yield the alarms of the project with a value. The answer is a list, not an object."""
        ((name, value),) = filters.items()
        query = {"q.field": name, "q.op": "eq", "q.value": value}
        return iter(self.exchange("GET", collection.of(parent=parent), query=query).json() or ())
