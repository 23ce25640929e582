"""OS::Heat::None: stands where a real type would, and is nothing (docs/internals/resource-types.md §A4).

Put in the place of a real type whose thing is there already, it makes nothing: the thing is left as it is,
its attributes are null, and what deletes the resource deletes the thing
(`operations/reconcile/step_executor.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import uuid4

from orchestrator.resources.base import (
    NOTHING_TYPE,
    Change,
    Context,
    Created,
    Observation,
    ResourceType,
    Value,
)


class NoneResource(ResourceType):
    """Accepts any property, has every attribute as null, never changes."""

    name = NOTHING_TYPE
    calls_out = False
    any_properties = True
    support_version = "5.0.0"

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Take a random id."""
        return Created(physical_id=str(uuid4()))

    def find(self, ctx: Context, token: str) -> str | None:
        """Return nothing: it is made in our own row or not at all."""
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """It is there until it is deleted."""
        return Observation(exists=ctx.action != "DELETE")

    def change(
        self, before: Mapping[str, Value], after: Mapping[str, Value], changed: frozenset[str]
    ) -> Change:
        """Keep it, even if everything changes."""
        return "keep"

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Nothing to change."""
        return Created(physical_id)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Nothing to remove."""

    def has_attribute(self, name: str) -> bool:
        """Any name is fine; all are null."""
        return True
