"""One resource, operated by a test as the engine would."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.engine.names import physical_name
from orchestrator.resources.base import Context, Created, Observation, ResourceType

# Properties with which one of each type can be made: nothing more than what is required.
PROPERTIES: dict[str, dict[str, Any]] = {"OS::Heat::Value": {"value": {"a": [1]}}}


@dataclass
class Operated:
    """One resource of a type: its row, so to speak, and the verbs called the way the engine calls them."""

    kind: ResourceType
    properties: dict[str, Any]
    ctx: Context = field(init=False)
    physical_id: str = ""

    def __post_init__(self) -> None:
        made = uuid.uuid4()
        given, faults = self.kind.read_properties(self.properties)
        assert faults == []
        self.ctx = Context(
            name="a",
            physical_name=physical_name("stack", "a", made),
            token=f"{made}-1",
            action="CREATE",
            properties=given,
            deadline_seconds=5.0,
        )

    def create(self) -> Created:
        """Create it and keep what it says to keep."""
        created = self.kind.create(self.ctx, self.ctx.properties)
        self.physical_id = created.physical_id
        self.ctx = replace(self.ctx, data=dict(created.data))
        return created

    def update(self, **changes: Any) -> Created:
        """Change properties in place."""
        given, faults = self.kind.read_properties({**self.properties, **changes})
        assert faults == []
        before = self.ctx.properties
        changed = frozenset(name for name in before | given if before.get(name) != given.get(name))
        self.ctx = replace(self.ctx, action="UPDATE", properties=given)
        updated = self.kind.update(self.ctx, self.physical_id, given, changed)
        self.ctx = replace(self.ctx, data=dict(updated.data))
        return updated

    def delete(self) -> None:
        """Ask for its removal."""
        self.ctx = replace(self.ctx, action="DELETE")
        self.kind.delete(self.ctx, self.physical_id)

    def observe(self, action: str | None = None, elapsed: float = 0.0) -> Observation:
        """Look at it, `elapsed` seconds into the operation."""
        ctx = replace(self.ctx, action=action or self.ctx.action, elapsed_seconds=elapsed)
        return self.kind.observe(ctx, self.physical_id)
