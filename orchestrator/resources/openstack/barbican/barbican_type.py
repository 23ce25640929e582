"""The common verbs of Barbican's types: secrets, orders and containers, which never change.

The physical id is the URL of the object. Barbican keeps no request token: the object of a create request
without an answer is found by its name, its description and its time of creation. Without a property `name`
the name is the physical name, which is unique.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from orchestrator.clients.openstack.platform_services.key_manager import KeyManager, Kind
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Context, Created, Observation, ResourceType, Value
from orchestrator.resources.openstack.connection import openstack
from orchestrator.resources.openstack.creation_times import is_created_by

POLL_SECONDS = 2.0


class BarbicanType(ResourceType):
    """An object of Barbican. Every change replaces it."""

    service = "barbican"
    endpoint_type = "key-manager"
    live_show = True
    kind: ClassVar[Kind]
    compared: ClassVar[tuple[str, ...]] = ("name",)  # members that tell an object from another

    def values(self, ctx: Context, props: Mapping[str, Value]) -> JsonObject:
        """Return the object of the template."""
        raise NotImplementedError(self.name)

    def failure(self, ctx: Context, found: JsonMapping) -> Observation:
        """Return the observation of an object in error."""
        return Observation(exists=True, error=f'Went to status ERROR due to "{found.get("error_reason")}"')

    def is_same(self, ctx: Context, found: JsonMapping) -> bool:
        """Return whether an object is that of the template."""
        desired = self.values(ctx, ctx.properties)
        return all(found.get(name) == desired.get(name) for name in self.compared)

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Request the object."""
        return Created(barbican(ctx).create(self.kind, self.values(ctx, props)))

    def find(self, ctx: Context, token: str) -> str | Sequence[str] | None:
        """Return an object with the name and the values that is not older than the request.

        Only a single object: a further object may belong to another user of the project.
        """
        objects = barbican(ctx).each(self.kind, ctx.properties.get("name") or ctx.physical_name)
        found = [one for one in objects if self.is_same(ctx, one) and is_created_by(ctx, one.get("created"))]
        return str(found[0][self.kind.ref_key]) if found else None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the object."""
        found = barbican(ctx).find(self.kind, physical_id)
        if found is None:
            return Observation(exists=False)
        status = found.get("status")
        if ctx.action != "DELETE" and status == "ERROR":
            return self.failure(ctx, found)
        return Observation(
            exists=True,
            ready=status != "PENDING",
            retry_after=POLL_SECONDS,
            reason=f"the status is {status}",
            attributes=self.attribute_values(found),
        )

    def attribute_values(self, found: JsonMapping) -> JsonObject:
        """Return the recorded attributes."""
        names = [name for name, attribute in self.attributes.items() if not attribute.live]
        return {name: found.get(name) for name in names}

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Delete the object."""
        barbican(ctx).remove(self.kind, physical_id)

    def read_attributes(self, ctx: Context, physical_id: str, names: frozenset[str]) -> Mapping[str, Value]:
        """Return the description as `show`."""
        return {"show": barbican(ctx).find(self.kind, physical_id)}


def barbican(ctx: Context) -> KeyManager:
    """Return Barbican, called with the stack's credential."""
    return openstack(ctx).key_manager


def given(props: Mapping[str, Value]) -> JsonObject:
    """Return the properties that have values."""
    return {name: value for name, value in props.items() if value is not None}
