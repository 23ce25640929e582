"""The base class of Neutron's types whose resource is not its own object.

Such a resource connects two objects, or is a part of an object. Its physical id is made of their ids, so that
a create request without an answer is found without a token. After a refused request the connection is not
searched: it belongs to another stack or user.
"""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.json_types import JsonMapping
from orchestrator.resources.base import Context, Created, Observation, ResourceType, Value
from orchestrator.resources.openstack.conflicts import temporary_conflicts
from orchestrator.resources.openstack.neutron.base import POLL_SECONDS


class NeutronRelation(ResourceType):
    """A connection of objects, or a part of an object."""

    service = "neutron"
    endpoint_type = "network"
    finds_by_token = False
    shares_objects = True
    undone_in_place = True

    def physical_id(self, props: Mapping[str, Value]) -> str:
        """Return the physical id of a resource with these properties."""
        raise NotImplementedError(self.name)

    def connect(self, ctx: Context, props: Mapping[str, Value]) -> None:
        """Request the connection."""
        raise NotImplementedError(self.name)

    def disconnect(self, ctx: Context, physical_id: str) -> None:
        """Request the end of the connection; a missing connection is no error."""
        raise NotImplementedError(self.name)

    def connection(self, ctx: Context, physical_id: str) -> JsonMapping | None:
        """Return the actual properties of the connection, None if it does not exist."""
        raise NotImplementedError(self.name)

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Request the connection."""
        with temporary_conflicts():
            self.connect(ctx, props)
        return Created(self.physical_id(props))

    def find(self, ctx: Context, token: str) -> str | None:
        """Return the physical id if the connection exists."""
        physical_id = self.physical_id(ctx.properties)
        return None if self.connection(ctx, physical_id) is None else physical_id

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the connection."""
        actual = self.connection(ctx, physical_id)
        if actual is None:
            return Observation(exists=False)
        if ctx.action == "DELETE":
            return Observation(exists=True, ready=False, retry_after=POLL_SECONDS)
        return Observation(exists=True, properties=actual)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """End the connection; while it is in use, the request is repeated."""
        with temporary_conflicts():
            self.disconnect(ctx, physical_id)
