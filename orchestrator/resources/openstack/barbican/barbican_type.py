"""The base class of Barbican's types: secrets, orders and containers, which never change.

The physical id is the URL of the object. Barbican keeps no request token: the object of a create request
without an answer is found by its name, its description and its time of creation. Without a property `name`
the name is the physical name, which is unique.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from orchestrator.clients.openstack.platform_services.key_manager import KeyManager
from orchestrator.json_types import JsonMapping
from orchestrator.resources.base import Context, Observation
from orchestrator.resources.openstack.collection_type import CollectionType, Status
from orchestrator.resources.openstack.connection import openstack
from orchestrator.resources.openstack.creation_times import is_created_by


class BarbicanType(CollectionType):
    """An object of Barbican. Every change replaces it."""

    service = "barbican"
    endpoint_type = "key-manager"
    status = Status(
        "status",
        pending=frozenset({"PENDING"}),
        poll_seconds=2.0,
        reason="the status is {}",
        fails_deletes=False,
    )
    compared: ClassVar[tuple[str, ...]] = ("name",)  # members that tell an object from another

    def failure(self, ctx: Context, actual: JsonMapping) -> Observation:
        """Return the observation of an object in error."""
        return Observation(exists=True, error=f'Went to status ERROR due to "{actual.get("error_reason")}"')

    def is_same(self, ctx: Context, found: JsonMapping) -> bool:
        """Return whether an object belongs to the template."""
        desired = self.new_values(ctx, ctx.properties)
        return all(found.get(name) == desired.get(name) for name in self.compared)

    def find(self, ctx: Context, token: str) -> str | Sequence[str] | None:
        """Return an object with the name and the values that is not older than the request.

        Only a single object: a further object may belong to another user of the project.
        """
        name = {"name": ctx.properties.get("name") or ctx.physical_name} if self.collection.by_name else {}
        objects = self.api(ctx).search(self.collection, **name)
        found = [one for one in objects if self.is_same(ctx, one) and is_created_by(ctx, one.get("created"))]
        return str(found[0][self.collection.id_key]) if found else None


def barbican(ctx: Context) -> KeyManager:
    """Return Barbican, called with the stack's credential."""
    return openstack(ctx).key_manager
