"""A resource, operated by a test like by the engine."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace
from typing import Final

from orchestrator.engine.physical_names import physical_name
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Context, Created, Observation, ResourceType
from orchestrator.testing.samples import Sample, full_properties

PATIENCE_SECONDS: Final = 10.0  # for external objects; for local types the clock is simulated
MAX_SLEEP_SECONDS: Final = 0.05


class Operated:
    """A resource of a type: the state of its row, and calls of the verbs in the engine's manner."""

    def __init__(self, kind: ResourceType, properties: JsonMapping, sample: Sample | None = None) -> None:
        """`properties` are as a template has them, functions evaluated."""
        self.kind, self.sample = kind, sample or Sample(kind.name)
        self.properties = full_properties(kind, properties)
        self.uuid, self.attempt = uuid.uuid4(), 1
        self.physical_id = ""
        self.ctx = self.sample.prepare_context(
            Context(
                name="a",
                physical_name=physical_name("stack", "a", self.uuid, kind.physical_name_limit),
                token=f"{self.uuid}-1",
                action="CREATE",
                properties=self._read(self.properties),
                deadline_seconds=5.0,
            )
        )

    def _read(self, given: JsonMapping) -> JsonObject:
        observation, faults = self.kind.read_properties(given)
        assert faults == []
        return observation

    def create(self) -> Created:
        """Create it and store the returned data."""
        self.ctx = replace(self.ctx, action="CREATE")
        created = self.kind.create(self.ctx, self.ctx.properties)
        self.physical_id = created.physical_id
        self.ctx = replace(self.ctx, data=dict(created.data))
        return created

    def create_again(self) -> Created:
        """Create it under a new token, like after the deletion of a failed object."""
        self.attempt += 1
        self.ctx = replace(self.ctx, token=f"{self.uuid}-{self.attempt}", data={})
        return self.create()

    def update(self, **changes: object) -> Created:
        """Change properties in place."""
        self.properties = {**self.properties, **changes}
        before, given = self.ctx.properties, self._read(self.properties)
        changed = frozenset(name for name in {*before, *given} if before.get(name) != given.get(name))
        self.ctx = replace(self.ctx, action="UPDATE", properties=given)
        updated = self.kind.update(self.ctx, self.physical_id, given, changed)
        self.physical_id = updated.physical_id
        if updated.data:
            self.ctx = replace(self.ctx, data=dict(updated.data))
        return updated

    def pause(self, action: str) -> None:
        """Request SUSPEND or RESUME."""
        self.ctx = replace(self.ctx, action=action)
        verb = self.kind.suspend if action == "SUSPEND" else self.kind.resume
        verb(self.ctx, self.physical_id)

    def delete(self) -> None:
        """Request deletion."""
        self.ctx = replace(self.ctx, action="DELETE")
        self.kind.delete(self.ctx, self.physical_id)

    def observe(self, action: str | None = None, elapsed: float = 0.0) -> Observation:
        """Observe it, `elapsed` seconds after the start of the operation."""
        ctx = replace(self.ctx, action=action or self.ctx.action, elapsed_seconds=elapsed)
        return self.kind.observe(ctx, self.physical_id)

    def settled(self) -> Observation:
        """Observe until the operation is complete, and return the last observation."""
        elapsed, deadline = 0.0, time.monotonic() + PATIENCE_SECONDS
        observation = self.observe()
        while not self._over(observation):
            self.sample.finish(self)
            elapsed += observation.retry_after or 0.0
            observation = self.observe(elapsed=elapsed)
            if self._over(observation):
                break
            assert time.monotonic() < deadline, f"the operation does not end: {observation}"
            if self.kind.calls_out:
                time.sleep(min(observation.retry_after or MAX_SLEEP_SECONDS, MAX_SLEEP_SECONDS))
        return observation

    def _over(self, observation: Observation) -> bool:
        if observation.error:
            return True
        return (
            not observation.exists
            if self.ctx.action == "DELETE"
            else observation.ready or not observation.exists
        )
