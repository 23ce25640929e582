"""OS::Heat::AccessPolicy: which resources of its stack a user may read
(docs/internals/resource-types.md §A10).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.resources.base import (
    Context,
    Created,
    Fault,
    Observation,
    Property,
    ResourceType,
    Value,
)
from orchestrator.template.definition import ResourceDefinition


class AccessPolicy(ResourceType):
    """Names the resources that a user with this policy may read and signal."""

    name = "OS::Heat::AccessPolicy"
    calls_out = False
    properties = {
        "AllowedResources": Property(
            "list", "Names of resources in the same stack to which the policy grants access.", required=True
        )
    }

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
    ) -> Sequence[Fault]:
        """Each must be there."""
        allowed = properties.get("AllowedResources") or ()
        return [
            Fault(f"AccessPolicy resource {allowed_name} not in stack")
            for allowed_name in allowed
            if isinstance(allowed_name, str | int | float) and str(allowed_name) not in resources
        ]

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Nothing to create: users read the properties."""
        return Created(ctx.physical_name)

    def find(self, ctx: Context, token: str) -> str | None:
        """Return None: the resource exists only as our own row."""
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """It is there until it is deleted; users name it as the template does."""
        return Observation(exists=ctx.action != "DELETE", reference_id=ctx.name)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Nothing to delete."""
