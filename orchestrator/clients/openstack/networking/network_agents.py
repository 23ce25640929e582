"""Neutron's agents: the calls of administrators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orchestrator.clients.openstack.object_collections import Collections
from orchestrator.errors import ProviderConflict


@dataclass(frozen=True, slots=True)
class Agents:
    """The agents that objects of a collection are scheduled to."""

    path: str  # of the objects
    listing: str  # the agents of an object
    scheduled: str  # the objects of an agent
    key: str  # of an object in a request


DHCP_AGENTS: Final = Agents("/networks", "dhcp-agents", "dhcp-networks", "network_id")
L3_AGENTS: Final = Agents("/routers", "l3-agents", "l3-routers", "router_id")


class NetworkAgents(Collections):
    """The agents of networks and routers."""

    def agents(self, kind: Agents, object_id: str) -> set[str]:
        """Return the ids of the agents of an object."""
        answer = self.get(f"{kind.path}/{object_id}/{kind.listing}")
        return {agent["id"] for agent in answer.get("agents", ())}

    def add_agent(self, kind: Agents, agent_id: str, object_id: str) -> None:
        """Schedule an object to an agent, unless it already is."""
        try:
            self.post(f"/agents/{agent_id}/{kind.scheduled}", {kind.key: object_id})
        except ProviderConflict:
            return

    def remove_agent(self, kind: Agents, agent_id: str, object_id: str) -> None:
        """Remove an object from an agent, if it is scheduled to it."""
        try:
            self.delete(f"/agents/{agent_id}/{kind.scheduled}/{object_id}")
        except ProviderConflict:
            return
