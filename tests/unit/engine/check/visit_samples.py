"""Sample visits and types for the tests of a check."""

from __future__ import annotations

from typing import Any

from orchestrator.engine.check.visit import DefinitionView, ResourceView, ResourceVisit, StackView
from orchestrator.resources.base import Context, ResourceType

STACK = StackView(1, "stack-uuid", "s", "p", 1, 7, None, "UPDATE", "IN_PROGRESS", 1, 60.0)
RESOURCE = ResourceView(
    5,
    "uuid",
    "a",
    "A::Type",
    "CREATE",
    "COMPLETE",
    "a-1",
    None,
    {},
    {},
    {},
    None,
    attempt=1,
    op=None,
    op_seconds=None,
    lost_seconds=None,
    value_digest="d",
)
NEW = RESOURCE._replace(action="INIT", physical_id=None, attempt=0, value_digest=None)


class External(ResourceType):
    """A type with a provider, which cannot find a lost create."""

    name = "A::Type"


class Findable(External):
    """A type with a provider that can find a lost create."""

    flight_seconds = 30.0

    def find(self, ctx: Context, token: str) -> str | None:
        return None


class Local(External):
    """A type without a provider."""

    calls_out = False


def visit(
    resource: ResourceView = RESOURCE,
    *,
    kind: str = "update",
    body: dict[str, Any] | None = None,
    hooks: tuple[str, ...] = (),
    traversal: int = 7,
    **stack: Any,
) -> ResourceVisit:
    """Return a visit of traversal 7; `stack` are fields of the stack."""
    definition = DefinitionView(3, {"type": "A::Type"} if body is None else body, "digest", (), {})
    return ResourceVisit(
        1, kind, traversal, "local", "a", 0, 0, STACK._replace(**stack), resource, definition, hooks=hooks
    )
