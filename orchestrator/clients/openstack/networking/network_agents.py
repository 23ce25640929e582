"""Neutron's agents: the calls of administrators."""

from __future__ import annotations

from orchestrator.clients.openstack.object_collections import Collections
from orchestrator.errors import ProviderConflict


class NetworkAgents(Collections):
    """The agents of networks and routers."""

    def dhcp_agents(self, network_id: str) -> list[str]:
        """Return the ids of the DHCP agents of a network."""
        path = f"/networks/{network_id}/dhcp-agents"
        return [agent["id"] for agent in self.get(path).get("agents", ())]

    def add_dhcp_agent(self, agent_id: str, network_id: str) -> None:
        """Schedule a network to a DHCP agent, unless it already is."""
        try:
            self.post(f"/agents/{agent_id}/dhcp-networks", {"network_id": network_id})
        except ProviderConflict:
            return

    def remove_dhcp_agent(self, agent_id: str, network_id: str) -> None:
        """Remove a network from a DHCP agent, if it is scheduled to it."""
        try:
            self.delete(f"/agents/{agent_id}/dhcp-networks/{network_id}")
        except ProviderConflict:
            return

    def l3_agents(self, router_id: str) -> list[str]:
        """Return the ids of the L3 agents of a router."""
        path = f"/routers/{router_id}/l3-agents"
        return [agent["id"] for agent in self.get(path).get("agents", ())]

    def add_l3_agent(self, agent_id: str, router_id: str) -> None:
        """Schedule a router to an L3 agent, unless it already is."""
        try:
            self.post(f"/agents/{agent_id}/l3-routers", {"router_id": router_id})
        except ProviderConflict:
            return

    def remove_l3_agent(self, agent_id: str, router_id: str) -> None:
        """Remove a router from an L3 agent, if it is scheduled to it."""
        try:
            self.delete(f"/agents/{agent_id}/l3-routers/{router_id}")
        except ProviderConflict:
            return
