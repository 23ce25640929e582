"""Networks and routers that administrators schedule to agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from orchestrator.clients.openstack.networking.network_agents import L3_AGENTS, Agents
from orchestrator.json_types import JsonMapping
from orchestrator.resources.base import Context, Created, Value
from orchestrator.resources.openstack.neutron.base import NeutronType, network

STEP = "set_agents"


class ScheduledType(NeutronType):
    """An object with agents, which are set in a step after its create."""

    agents_property: ClassVar[str]
    agents: ClassVar[Agents]

    def next_step(self, ctx: Context, actual: JsonMapping) -> str:
        """Schedule a new object to its agents."""
        step, wanted = super().next_step(ctx, actual), ctx.properties.get(self.agents_property)
        if step or ctx.action != "CREATE" or not wanted:
            return step
        return "" if network(ctx).agents(self.agents, actual["id"]) == set(wanted) else STEP

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        """Set the tags or the agents of a new object."""
        if step != STEP:
            return super().advance(ctx, physical_id, props, step)
        self._set_agents(ctx, physical_id, props)
        return None

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Change the agents, then the object."""
        if self.agents_property in changed:
            self._set_agents(ctx, physical_id, props)
        return super().update(ctx, physical_id, props, changed)

    def _set_agents(self, ctx: Context, physical_id: str, props: Mapping[str, Value]) -> None:
        """Add missing agents and remove others. A router has one agent at a time, unless it is highly
        available: others are removed first.
        """
        neutron, kind = network(ctx), self.agents
        wanted, current = set(props.get(self.agents_property) or ()), neutron.agents(kind, physical_id)
        if kind is L3_AGENTS and not ctx.properties.get("ha"):
            for agent_id in sorted(current - wanted):
                neutron.remove_agent(kind, agent_id, physical_id)
        for agent_id in sorted(wanted - current):
            neutron.add_agent(kind, agent_id, physical_id)
        left = neutron.agents(kind, physical_id) if kind is L3_AGENTS else current
        for agent_id in sorted(left - wanted):
            neutron.remove_agent(kind, agent_id, physical_id)
