"""The engine's calls of a type's verbs, without database and tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Created, Observation, ResourceType

MAX_VISITS = 20


class Resource:
    """A resource of a type: what its row has, and the operations on it."""

    def __init__(self, kind: ResourceType, cloud: Cloud, **properties: Any) -> None:
        """`properties` are those of the template."""
        self.kind, self.given, self.physical_id = kind, properties, ""
        self.ctx = Context(
            name="it",
            physical_name="stack-it-abcdef",
            token="00000000-1",
            action="CREATE",
            properties=self._converted(),
            project_id="project-of-stack",
            cloud=cloud,
        )

    def _converted(self) -> JsonObject:
        values, faults = self.kind.read_properties(self.given)
        assert faults == []
        return values

    def create(self) -> Observation:
        """Create it; return the final observation."""
        self._record(self.kind.create(self._as("CREATE"), self.ctx.properties))
        return self.settle()

    def update(self, **changes: Any) -> Observation:
        """Change properties in place; None removes one."""
        before = self.ctx.properties
        self.given = {name: value for name, value in {**self.given, **changes}.items() if value is not None}
        after = self._converted()
        changed = frozenset(name for name in {*before, *after} if before.get(name) != after.get(name))
        assert self.kind.change(before, after, changed) == "update"
        self.ctx = replace(self.ctx, properties=after)
        self._record(self.kind.update(self._as("UPDATE"), self.physical_id, after, changed))
        return self.settle()

    def delete(self) -> None:
        """Delete it, until it does not exist."""
        self.kind.delete(self._as("DELETE"), self.physical_id)
        assert not self.settle().exists

    def check(self) -> Observation:
        """Observe it outside of operations."""
        return self.kind.observe(self._as("CHECK"), self.physical_id)

    def observe(self, action: str) -> Observation:
        """Observe it once."""
        return self.kind.observe(self._as(action), self.physical_id)

    def settle(self) -> Observation:
        """Observe it, and carry out its steps, until the operation is complete."""
        for _ in range(MAX_VISITS):
            observation = self.kind.observe(self.ctx, self.physical_id)
            if observation.step:
                step = self.kind.advance(self.ctx, self.physical_id, self.ctx.properties, observation.step)
                if step is not None:
                    self._record(step)
                continue
            is_ready = observation.ready and self.ctx.action != "DELETE"
            if observation.error or not observation.exists or is_ready:
                return observation
        raise AssertionError(f"the operation does not end: {observation}")

    def show(self) -> Mapping[str, Any]:
        """Return the attribute `show`."""
        names = frozenset({"show"})
        shown: Mapping[str, Any] = self.kind.read_attributes(self.ctx, self.physical_id, names)["show"]
        return shown

    def _as(self, action: str) -> Context:
        self.ctx = replace(self.ctx, action=action)
        return self.ctx

    def _record(self, created: Created) -> None:
        self.physical_id = created.physical_id
        if created.data:
            self.ctx = replace(self.ctx, data=dict(created.data))
