"""OS::Heat::None: a placeholder without any effect (docs/internals/resource-types.md §A4).

If it replaces the type of an existing resource, that resource is left unchanged and its attributes are null.
Deleting the placeholder deletes the shadowed resource (`operations/reconcile/create_delete_steps.py`).
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
        """Return None: the resource exists only as our own row."""
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """It is there until it is deleted."""
        return Observation(exists=ctx.action != "DELETE")

    def change(
        self, before: Mapping[str, Value], after: Mapping[str, Value], changed: frozenset[str]
    ) -> Change:
        """Keep the resource, whichever properties change."""
        return "keep"

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Nothing to update."""
        return Created(physical_id)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Nothing to delete."""

    def has_attribute(self, name: str) -> bool:
        """Accept any name; all attributes are null."""
        return True
