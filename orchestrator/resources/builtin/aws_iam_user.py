"""AWS::IAM::User: who may read and signal some of a stack's resources
(docs/internals/resource-types.md §A10).
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
    """A user of this stack alone, who acts by access keys."""

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
            "list", "Names of access policies, all of which must allow a resource; without any, all are."
        ),
    }

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
    ) -> Sequence[Fault]:
        """Each policy must be one of this template."""
        wrong = any(_is_wrong(policy, resources) for policy in _named(properties))
        return (
            [Fault(f"The Referenced Attribute ({name} Policies) is incorrect.", "Policies")] if wrong else []
        )

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Make the user; its name is the physical one."""
        user_id = ctx.token.rpartition("-")[0].replace("-", "")
        return Created(user_id, access=Grant(user=ctx.physical_name, policies=tuple(_named(props))))

    def find(self, ctx: Context, token: str) -> str | None:
        """Return nothing: it is made in our own rows or not at all."""
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """It is there until it is deleted; keys name it by its name."""
        return Observation(exists=ctx.action != "DELETE", reference_id=ctx.physical_name)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Nothing to remove: its access goes with it."""


def _named(properties: Mapping[str, Value]) -> list[str]:
    """Return the policies that are named; what is written out in place is overlooked, as Heat does."""
    given: Any = properties.get("Policies") or ()
    return [policy for policy in given if isinstance(policy, str)]


def _is_wrong(policy: str, resources: Mapping[str, ResourceDefinition]) -> bool:
    found = resources.get(policy)
    return found is None or (found.type != POLICY and found.type.startswith(("OS::", "AWS::")))
