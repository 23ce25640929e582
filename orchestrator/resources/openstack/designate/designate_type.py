"""Declarations that Designate's types share.

Designate answers before its name servers know a change: the status is PENDING until they do. A zone has a
unique name, a record set a unique name and type in its zone: they find the object of a create request without
an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestrator.clients.openstack.platform_services.dns import Dns
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Context, Observation, Property, ResourceType, Value
from orchestrator.resources.openstack.connection import openstack
from orchestrator.schema.constraints import Length, Range

POLL_SECONDS: Final = 3.0
TTL: Final = Property(
    "integer", "Time to live in seconds.", update_allowed=True, constraints=(Range(1, 2147483647),)
)
DESCRIPTION: Final = Property("string", "Description.", update_allowed=True, constraints=(Length(max=160),))


class DesignateType(ResourceType):
    """An object of Designate."""

    service = "designate"
    endpoint_type = "dns"
    live_show = True
    support_version = "8.0.0"

    def raw(self, ctx: Context, physical_id: str) -> JsonObject | None:
        """Return Designate's view of the object, None if it does not exist."""
        raise NotImplementedError(self.name)

    def observed_properties(self, ctx: Context, found: JsonMapping) -> JsonObject:
        """Return the actual values of given properties."""
        raise NotImplementedError(self.name)

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the object."""
        found = self.raw(ctx, physical_id)
        if found is None or found.get("status") == "DELETED":
            return Observation(exists=False)
        status = found.get("status")
        if status == "ERROR":
            kind = self.name.rpartition("::")[2]
            reason = f'Went to status ERROR due to "Error in {kind if kind != "Zone" else "zone"}"'
            return Observation(exists=True, error=reason, error_kind="ResourceInError", replaceable=True)
        return Observation(
            exists=True,
            ready=status != "PENDING",
            retry_after=POLL_SECONDS,
            reason=f"the status is {status}",
            properties=self.observed_properties(ctx, found),
        )

    def read_attributes(self, ctx: Context, physical_id: str, names: frozenset[str]) -> Mapping[str, Value]:
        """Return live attributes, and the object as `show`; null without the object."""
        found = self.raw(ctx, physical_id) or {}
        return {name: found.get(name) for name in names - {"show"}} | {"show": found}


def designate(ctx: Context) -> Dns:
    """Return Designate, called with the stack's credential."""
    return openstack(ctx).dns
