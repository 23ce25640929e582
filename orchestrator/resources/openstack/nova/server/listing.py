"""Servers in the continuous observation, and the repair of those in error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from orchestrator.errors import ProviderConflict
from orchestrator.resources.base import Context, Value
from orchestrator.resources.openstack.nova.base import NovaType, compute
from orchestrator.resources.openstack.nova.server import request, state


class ListedServer(NovaType):
    """A server that is observed with the list of all servers."""

    lists: ClassVar[str] = "servers"

    def list_objects(self, ctx: Context) -> Iterable[tuple[str, Value]]:
        """Yield the servers of the project."""
        return compute(ctx).all_observed("/servers/detail", "servers")

    def chosen(self, ctx: Context) -> Mapping[str, Value]:
        """Return the generated name."""
        return {"name": request.server_name(ctx, {})}

    def recover(self, ctx: Context, physical_id: str) -> None:
        """Reboot a server in error, which its owner may do; nova's other remedies are for administrators."""
        try:
            compute(ctx).act(physical_id, "reboot", {"type": "HARD"})
        except ProviderConflict:
            if not state.task_of(compute(ctx).current_server(physical_id) or {}):
                raise
