"""A resource, operated by a test like by the engine."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.engine.physical_names import physical_name
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.lookups.finder import CloudFinder
from orchestrator.resources.base import Context, Created, Observation, ResourceType
from orchestrator.resources.verbs.contexts import operation_context
from orchestrator.resources.verbs.values import found_ids
from orchestrator.testing.samples import Sample, full_properties, is_changed_in_place


class Operated:
    """A resource of a type: the state of its row, and calls of the verbs in the engine's manner."""

    def __init__(self, kind: ResourceType, properties: JsonMapping, sample: Sample | None = None) -> None:
        """`properties` are as a template has them, functions evaluated."""
        self.kind, self.sample = kind, sample or Sample(kind.name)
        self.properties = full_properties(kind, properties)
        self.uuid, self.attempt = uuid.uuid4(), 1
        self.physical_id = ""
        self.objects: dict[str, Context] = {}  # created or found, with the context of that time
        self.ctx = self.sample.prepare_context(
            operation_context(
                name="a",
                physical_name=physical_name("stack", "a", self.uuid, kind.physical_name_limit),
                token=f"{self.uuid}-1",
                action="CREATE",
                properties=self._read(self.properties),
                deadline_seconds=self.sample.deadline_seconds,
            )
        )
        if self.ctx.cloud is not None:
            self.ctx = replace(self.ctx, properties=self._read(self.properties, self.ctx.cloud))

    def _read(self, given: JsonMapping, cloud: Cloud | None = None) -> JsonObject:
        """Return properties as the verbs receive them, in a cloud with ids in place of names."""
        finder = None
        if cloud is not None:
            seconds = self.sample.deadline_seconds
            finder = CloudFinder(cloud, self.ctx.project_id, deadline_seconds=seconds)
        properties, faults = self.kind.read_properties(given, resolve=finder)
        assert faults == []
        return properties

    def create(self) -> Created:
        """Create it and store the returned data."""
        self.ctx = replace(self.ctx, action="CREATE", step="")
        created = self.kind.create(self.ctx, self.ctx.properties)
        self.adopt(created.physical_id)
        self.ctx = replace(self.ctx, data=dict(created.data))
        return created

    def adopt(self, physical_id: str) -> None:
        """Take an object that was created or found for it."""
        self.physical_id = physical_id
        self.objects[physical_id] = self.ctx

    def create_again(self) -> Created:
        """Create it under a new token, like after the deletion of a failed object."""
        self.attempt += 1
        self.ctx = replace(self.ctx, token=f"{self.uuid}-{self.attempt}", data={})
        return self.create()

    def update(self, **changes: object) -> Created:
        """Change properties in place."""
        self.properties = {**self.properties, **changes}
        before, given = self.ctx.properties, self._read(self.properties, self.ctx.cloud)
        changed = frozenset(name for name in {*before, *given} if before.get(name) != given.get(name))
        self.ctx = replace(self.ctx, action="UPDATE", step="", properties=given)
        updated = self.kind.update(self.ctx, self.physical_id, given, changed)
        self.physical_id = updated.physical_id
        if updated.data:
            self.ctx = replace(self.ctx, data=dict(updated.data))
        return updated

    def pause(self, action: str) -> None:
        """Request SUSPEND or RESUME."""
        self.ctx = replace(self.ctx, action=action, step="")
        verb = self.kind.suspend if action == "SUSPEND" else self.kind.resume
        verb(self.ctx, self.physical_id)

    def snapshot(self) -> JsonMapping:
        """Request a copy under its own token."""
        self.ctx = replace(self.ctx, action="SNAPSHOT", step="", token=f"{self.uuid}-s1")
        return self.kind.snapshot(self.ctx, self.physical_id)

    def release(self) -> None:
        """Request that it gives up what a replacement needs."""
        self.ctx = replace(self.ctx, action="DELETE" if self.kind.deletes_first else "RELEASE", step="")
        self.kind.release(self.ctx, self.physical_id)

    def reclaim(self) -> None:
        """Request that it takes back what it has given up."""
        self.ctx = replace(self.ctx, action="RECLAIM", step="")
        self.kind.reclaim(self.ctx, self.physical_id, self.ctx.properties)

    def delete(self) -> None:
        """Request deletion."""
        self.ctx = replace(self.ctx, action="DELETE", step="")
        self.kind.delete(self.ctx, self.physical_id)

    def advance(self, step: str) -> None:
        """Carry out a step of the operation."""
        self.ctx = replace(self.ctx, step=step)
        advanced = self.kind.advance(self.ctx, self.physical_id, self.ctx.properties, step)
        if advanced is not None:
            self.physical_id = advanced.physical_id
            if advanced.data:
                self.ctx = replace(self.ctx, data=dict(advanced.data))

    def observe(self, action: str | None = None, elapsed: float = 0.0) -> Observation:
        """Observe it, `elapsed` seconds after the start of the operation."""
        ctx = replace(self.ctx, action=action or self.ctx.action, elapsed_seconds=elapsed)
        return self.kind.observe(ctx, self.physical_id)

    def settled(self) -> Observation:
        """Observe until the operation is complete, with its steps, and return the last observation."""
        elapsed, deadline = 0.0, time.monotonic() + self.sample.patience_seconds
        observation = self.observe()
        while not self._over(observation):
            if observation.step:
                self.advance(observation.step)
            self.sample.finish(self)
            elapsed += observation.retry_after or 0.0
            observation = self.observe(elapsed=elapsed)
            if self._over(observation):
                break
            assert time.monotonic() < deadline, f"the operation does not end: {observation}"
            if self.kind.calls_out:
                pause = observation.retry_after or self.sample.pause_seconds
                time.sleep(0.0 if observation.step else min(pause, self.sample.pause_seconds))
        return observation

    def updatable(self) -> str | None:
        """Return a property that is changed in place; None if there is none."""
        names = (name for name in self.kind.properties if is_changed_in_place(self.kind, self.sample, name))
        return next(names, None)

    def clean_up(self) -> None:
        """Delete all objects of an external type that still exist, also that of a create that has failed.

        Raises:
            AssertionError: an object still exists.
        """
        if not self.kind.calls_out:
            return
        tokens = {ctx.token: ctx for ctx in (self.ctx, *self.objects.values())} if self.kind.can_find else {}
        for token, ctx in tokens.items():
            for found in found_ids(self.kind.find(ctx, token)):
                self.objects.setdefault(found, ctx)
        for physical_id, ctx in self.objects.items():
            self.ctx, self.physical_id = replace(ctx, action="DELETE"), physical_id
            if self.observe().exists:
                self.delete()
                assert not self.settled().exists, f"{physical_id} still exists"

    def _over(self, observation: Observation) -> bool:
        if observation.error:
            return True
        match self.ctx.action:
            case "DELETE":
                return not observation.exists
            case "RELEASE":
                return (observation.released and not observation.step) or not observation.exists
        return observation.ready or not observation.exists


def is_fine(observation: Observation) -> bool:
    """Return whether an object is in its desired state."""
    return (observation.exists, observation.ready, observation.error) == (True, True, "")
