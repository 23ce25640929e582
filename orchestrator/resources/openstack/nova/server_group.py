"""OS::Nova::ServerGroup (docs/internals/resource-types.md §C 19).

Nova keeps no token. `find` recognizes the group of a lost create by its name, its policy and that it has no
members: the physical name is unique, and a given name may belong to several groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from orchestrator.clients.openstack.compute import GROUP_RULES, SERVER_GROUPS
from orchestrator.resources.base import Context, Created, Property, Value
from orchestrator.resources.openstack.collection_type import APART, CollectionType, Field
from orchestrator.resources.openstack.creation_marks import EqualValues
from orchestrator.schema.constraints import AllowedValues, Range


class ServerGroup(CollectionType):
    """A group of servers with a policy for their placement on hosts."""

    name = "OS::Nova::ServerGroup"
    support_version = "2014.2"
    service = "nova"
    endpoint_type = "compute"
    collection = SERVER_GROUPS
    mark = EqualValues((), ("name", "policies"), unused="members")
    fields = {"policies": Field(to_api=lambda policies: (policies or ["anti-affinity"])[:1]), "rules": APART}
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
        """Create the group; rules require a newer nova."""
        if not props.get("rules"):
            return super().create(ctx, props)
        values = self.new_values(ctx, props)
        values |= {"policy": values.pop("policies")[0], "rules": props["rules"]}
        created = self.api(ctx).create(replace(SERVER_GROUPS, microversion=GROUP_RULES), values)
        return Created(str(created["id"]))
