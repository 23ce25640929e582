"""Servers in the continuous observation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from orchestrator.resources.base import Context, Value
from orchestrator.resources.openstack.nova.base import NovaType, compute
from orchestrator.resources.openstack.nova.server import request


class ListedServer(NovaType):
    """A server that is observed with the list of all servers."""

    lists: ClassVar[str] = "servers"

    def list_objects(self, ctx: Context) -> Iterable[tuple[str, Value]]:
        """Yield the servers of the project."""
        return compute(ctx).all_observed("/servers/detail", "servers")

    def chosen(self, ctx: Context) -> Mapping[str, Value]:
        """Return the generated name."""
        return {"name": request.server_name(ctx, {})}
