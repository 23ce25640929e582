"""AWS::IAM::User: a user with access to some of a stack's resources (docs/internals/resource-types.md
§A10).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.resources.base import (
    Context,
    Created,
    Fault,
    Grant,
    Observation,
    Property,
    ResourceType,
    Value,
)
from orchestrator.template.definition import ResourceDefinition

POLICY = "OS::Heat::AccessPolicy"


class IamUser(ResourceType):
    """A user of this stack, who authenticates with access keys."""

    name = "AWS::IAM::User"
    calls_out = False
    claimed_first = True
    properties = {
        "Path": Property("string", "Not used."),
        "Groups": Property("list", "Not used."),
        "LoginProfile": Property(
            "map",
            "A login profile for the user. Not used: users have keys.",
            schema={"Password": Property("string", "Not used.")},
        ),
        "Policies": Property(
            "list",
            "Names of access policies, all of which must allow access; empty allows all resources.",
        ),
    }

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
    ) -> Sequence[Fault]:
        """Require that every policy is a resource of this template."""
        is_invalid = any(_is_wrong(policy, resources) for policy in _named(properties))
        return (
            [Fault(f"The Referenced Attribute ({name} Policies) is incorrect.", "Policies")]
            if is_invalid
            else []
        )

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Create the user under the physical name."""
        user_id = ctx.token.rpartition("-")[0].replace("-", "")
        return Created(user_id, access=Grant(user=ctx.physical_name, policies=tuple(_named(props))))

    def find(self, ctx: Context, token: str) -> str | None:
        """Return None: the user exists only in our own rows."""
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """It is there until it is deleted; keys name it by its name."""
        return Observation(exists=ctx.action != "DELETE", reference_id=ctx.physical_name)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Nothing to delete: the access is revoked with the resource."""


def _named(properties: Mapping[str, Value]) -> list[str]:
    """Return the policies given by name; inline policies are ignored, as in Heat."""
    policies: Any = properties.get("Policies") or ()
    return [policy for policy in policies if isinstance(policy, str)]


def _is_wrong(policy: str, resources: Mapping[str, ResourceDefinition]) -> bool:
    definition = resources.get(policy)
    return definition is None or (definition.type != POLICY and definition.type.startswith(("OS::", "AWS::")))
