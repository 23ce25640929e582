"""OS::Nova::ServerGroup (docs/internals/resource-types.md §C 19).

Nova keeps no token. `find` recognizes the group of a lost create by its name, its policy and that it has no
members: the physical name is unique, and a given name may belong to several groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Created, Observation, Property, Value
from orchestrator.resources.openstack.nova.base import NovaType, compute
from orchestrator.schema.constraints import AllowedValues, Range


class ServerGroup(NovaType):
    """A group of servers with a policy for their placement on hosts."""

    name = "OS::Nova::ServerGroup"
    support_version = "2014.2"
    properties: ClassVar[Mapping[str, Property]] = {
        "name": Property("string", "The name of the group."),
        "policies": Property(
            "list",
            "The policy: a list with a single item.",
            default=["anti-affinity"],
            constraints=(
                AllowedValues(("anti-affinity", "affinity", "soft-anti-affinity", "soft-affinity")),
            ),
            schema=Property("string", "A policy."),
        ),
        "rules": Property(
            "map",
            "Rules of the policy.",
            schema={
                "max_server_per_host": Property(
                    "integer", "Largest number of members on a host.", constraints=(Range(min=1),)
                )
            },
        ),
    }

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Create the group."""
        name = props.get("name") or ctx.physical_name
        return Created(compute(ctx).groups.create(name, _policy(props), props.get("rules"))["id"])

    def find(self, ctx: Context, token: str) -> str | None:
        """Return the empty group with the name and the policy."""
        name, policy = ctx.properties.get("name") or ctx.physical_name, _policy(ctx.properties)
        return next(
            (
                str(group["id"])
                for group in compute(ctx).groups.listed()
                if group["name"] == name
                and (group.get("policies") or [group.get("policy")]) == [policy]
                and not group.get("members")
            ),
            None,
        )

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the group."""
        return Observation(exists=self.raw(ctx, physical_id) is not None, ready=ctx.action != "DELETE")

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Delete the group; its servers remain."""
        compute(ctx).groups.delete(physical_id)

    def raw(self, ctx: Context, physical_id: str) -> JsonObject | None:
        """Return nova's view of the group."""
        return compute(ctx).groups.get(physical_id)


def _policy(props: Mapping[str, Value]) -> str:
    return str((props.get("policies") or ["anti-affinity"])[0])
