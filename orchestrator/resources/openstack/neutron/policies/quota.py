"""OS::Neutron::Quota: limits of a project.

The physical id is that of the project. A delete returns the project to the default limits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from orchestrator.json_types import JsonMapping
from orchestrator.resources.base import Context, Created, Fault, Observation, Property, Value
from orchestrator.resources.openstack.neutron.base import network
from orchestrator.resources.openstack.neutron.relation import NeutronRelation
from orchestrator.resources.openstack.neutron.written_values import unspecified
from orchestrator.schema.constraints import Custom, Range
from orchestrator.schema.translation import Resolve
from orchestrator.template.definition import ResourceDefinition

LIMITS: Final = {
    "subnet": "subnets",
    "network": "networks",
    "floatingip": "floating IPs",
    "security_group_rule": "rules of security groups",
    "security_group": "security groups",
    "router": "routers",
    "port": "ports",
    "subnetpool": "subnet pools",
    "rbac_policy": "RBAC policies",
}


class Quota(NeutronRelation):
    """Limits of a project in Neutron. Only administrators may set them."""

    name = "OS::Neutron::Quota"
    support_version = "8.0.0"
    properties = {
        "project": Property(
            "string", "Name or id of the project.", required=True, constraints=(Custom("keystone.project"),)
        ),
        **{
            name: Property(
                "integer",
                f"Maximum number of {objects}, -1 for no limit.",
                update_allowed=True,
                constraints=(Range(min=-1),),
            )
            for name, objects in LIMITS.items()
        },
    }
    translation = (Resolve(("project",), "keystone.project"),)

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
    ) -> Sequence[Fault]:
        """A limit is required."""
        return unspecified(name, resources, sorted(LIMITS))

    def physical_id(self, props: Mapping[str, Value]) -> str:
        """Return the id of the project."""
        return str(props["project"])

    def connect(self, ctx: Context, props: Mapping[str, Value]) -> None:
        """Set the limits."""
        limits = {name: props[name] for name in LIMITS if props.get(name) is not None}
        network(ctx).set_quota(props["project"], limits)

    def find(self, ctx: Context, token: str) -> str | None:
        """Return the project if it has these limits."""
        actual = self.connection(ctx, self.physical_id(ctx.properties)) or {}
        wanted = {name: ctx.properties[name] for name in LIMITS if name in ctx.properties}
        return self.physical_id(ctx.properties) if wanted.items() <= actual.items() else None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the limits. A project always has some, so that a delete ends at once."""
        return Observation(exists=False) if ctx.action == "DELETE" else super().observe(ctx, physical_id)

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Set the limits again; a limit that is removed stays as it is."""
        self.connect(ctx, props)
        return Created(physical_id)

    def disconnect(self, ctx: Context, physical_id: str) -> None:
        """Return to the default limits."""
        network(ctx).reset_quota(physical_id)

    def connection(self, ctx: Context, physical_id: str) -> JsonMapping | None:
        """Return the limits."""
        actual = network(ctx).quota(physical_id)
        return {name: actual[name] for name in LIMITS if name in actual}
